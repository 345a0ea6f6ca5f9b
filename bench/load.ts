import { connect, type Socket } from 'node:net'
import { newRequestId } from '../src/machine/digest.ts'

/**
 * Posts over many connections that are kept open, each waiting for its answer before it asks again:
 * `load URL PATH IDS SECONDS`, with a connection for each of the `LEASEHOLD_TOKENS`. With IDS
 * `true` every request has a request id. Prints how many were answered per second.
 *
 * Speaks HTTP by itself: with `node:http` on both sides, the side that asks would be the slower.
 */
export async function load(args: string[]): Promise<void> {
  const [url, path, ids, seconds] = args as [string, string, string, string]
  const secrets = (process.env['LEASEHOLD_TOKENS'] ?? '').split(',')
  const start_ms = performance.now()
  const until_ms = start_ms + Number(seconds) * 1000
  const counts = await Promise.all(
    secrets.map((secret) => {
      return ask({ url: new URL(path, url), secret, ids: ids === 'true' }, until_ms)
    }),
  )
  const answered = counts.reduce((a, b) => a + b, 0)
  console.log(JSON.stringify({ rate: (answered / (performance.now() - start_ms)) * 1000 }))
}

interface Asked {
  url: URL
  secret: string
  ids: boolean
}

async function ask({ url, secret, ids }: Asked, until_ms: number): Promise<number> {
  const socket = connect(Number(url.port), url.hostname)
  socket.setNoDelay(true)
  const answers = answersOf(socket)
  let answered = 0
  while (performance.now() < until_ms) {
    const request_id = ids ? newRequestId() : undefined
    const body = JSON.stringify({ ttl_seconds: 3600, request_id })
    socket.write(
      `POST ${url.pathname} HTTP/1.1\r\nHost: ${url.host}\r\nAuthorization: Bearer ${secret}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    )
    const { value: answer } = await answers.next()
    if (!answer?.startsWith('HTTP/1.1 200 ')) throw new Error(`answered: ${answer}`)
    if (answer.includes('"task":null')) throw new Error('the store ran out of ready tasks')
    answered += 1
  }
  socket.destroy()
  return answered
}

/** Whole answers, one by one. All of ours state their length. */
async function* answersOf(socket: Socket): AsyncGenerator<string, undefined> {
  let text = ''
  for await (const part of socket.setEncoding('latin1')) {
    text += String(part)
    const head = text.indexOf('\r\n\r\n')
    if (head < 0) continue
    const length = /\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1]
    if (length === undefined) throw new Error(`an answer without a length: ${text}`)
    if (text.length < head + 4 + Number(length)) continue
    const answer = text
    text = ''
    yield answer
  }
  return undefined
}
