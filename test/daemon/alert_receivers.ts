import { once } from 'node:events'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer, type IncomingHttpHeaders } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { onTestFinished } from 'vitest'
import type { Sandbox } from '../support/processes.ts'

export interface Posted {
  headers: IncomingHttpHeaders
  body: string
  notice: { id: string; state: string; rule: string; subject: string; message: string }
}

/** Somebody who is told. Refuses the first so many notices, or all about one subject. */
export async function receiver(refuses: number | string = 0) {
  const posted: Posted[] = []
  let refused = 0
  const server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8').on('data', (text: string) => (body += text))
    request.on('end', () => {
      const notice = JSON.parse(body) as Posted['notice']
      if (typeof refuses === 'number' ? refused < refuses : notice.subject === refuses) {
        refused += 1
        response.writeHead(500).end()
        return
      }
      posted.push({ headers: request.headers, body, notice })
      response.end('thanks')
    })
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`
  const told = () => posted.map(({ notice }) => `${notice.state} ${notice.rule} ${notice.subject}`)
  return { url, posted, told, refused: () => refused }
}

export function configure(place: Sandbox, alerts: object, more: object = {}): void {
  mkdirSync(place.state, { mode: 0o700 })
  writeFileSync(join(place.state, 'config.json'), JSON.stringify({ alerts, ...more }))
}

/** A command that keeps what it was told; it fails as long as a file is there. */
export function keeper(place: Sandbox) {
  const [file, broken] = [place.path('told.jsonl'), place.path('broken')]
  const script = `if (fs.existsSync(process.argv[2])) process.exit(3)
    process.stdin.pipe(fs.createWriteStream(process.argv[1], { flags: 'a' }))`
  const told = () =>
    (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : []).map(
      (line) => (JSON.parse(line) as Posted['notice']).subject,
    )
  return { command: [process.execPath, '-e', script, file, broken], broken, told }
}
