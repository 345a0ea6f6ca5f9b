import { readFileSync, writeFileSync } from 'node:fs'
import { createServer, request, type Server } from 'node:http'
import { type AddressInfo, createServer as createBareServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest'
import { clientOf, type Daemon, daemonOn } from '../support/daemons.ts'
import { processRef } from '../../src/machine/process.ts'
import { because, sandbox, type Sandbox, until } from '../support/processes.ts'

const NOBODY = 65_534

/** Takes a port and writes down what it is sent; as another login where that is asked for. */
const SQUATTER = `
const fs = require('node:fs')
require('node:http').createServer((request, response) => {
  fs.appendFileSync(process.argv[2], JSON.stringify(request.headers) + '\\n')
  response.end('{}')
}).listen(Number(process.argv[1]), '127.0.0.1', () => console.log('listening'))`

async function squat(place: Sandbox, { port }: Daemon, uid?: number) {
  const file = place.path('heard')
  writeFileSync(file, '', { mode: 0o666 })
  const as = uid === undefined ? {} : { uid }
  const running = place.start(['-e', SQUATTER, String(port), file], {
    program: [process.execPath],
    cwd: '/',
    ...as,
  })
  onTestFinished(async () => {
    running.kill('SIGKILL')
    await running.ended
  })
  await running.said(/listening/)
  return () => readFileSync(file, 'utf8')
}

/** All of our programs that send the admin's secret when they find a server. */
async function askAll(place: Sandbox): Promise<void> {
  await place.ok(['lock', 'acquire', 'x', '--agent', 'ada'])
  const server = readFileSync(join(place.state, 'server.json'))
  const up = await place.cli(['up', '--link', '--port', '0'])
  expect(up).toMatchObject({ code: 0, out: expect.stringContaining('#link=') as string })
  await place.ok(['down'])
  writeFileSync(join(place.state, 'server.json'), server, { mode: 0o600 })
  // From here on what asks is below an agent.
  const input = JSON.stringify({ session_id: 's', tool_name: 'Bash', tool_input: {} })
  await place.cli(['hook', 'claude', 'pre-tool-use'], { input })
  const client = await clientOf({ dir: place.state, agent: 'bob' })
  expect(await client.lock.status({ name: 'x' })).toMatchObject({ lock_holder: 'ada' })
  await place.refused(['lock', 'list'], 'unavailable', 75, { env: { LEASEHOLD_TOKEN: 'lh_x' } })
}

async function killed(place: Sandbox): Promise<Daemon> {
  const daemon = await daemonOn(place)
  daemon.running.kill('SIGKILL')
  await daemon.running.ended
  return daemon
}

describe('whoever has the port of a server that was killed', () => {
  test('is sent nothing: its process is gone', async () => {
    const place = sandbox()
    const heard = await squat(place, await killed(place))
    await askAll(place)
    expect(heard()).toBe('')
  })

  test('is sent nothing as another login, though a process has that number', async (context) => {
    needsRoot(context)
    const place = sandbox()
    const heard = await squat(place, await killed(place), NOBODY)
    const file = join(place.state, 'server.json')
    const server = JSON.parse(readFileSync(file, 'utf8')) as object
    const { pid, start, seat } = processRef(process.pid)!
    writeFileSync(file, JSON.stringify({ ...server, pid, start, seat }), { mode: 0o600 })
    await askAll(place)
    expect(heard()).toBe('')
  })
})

function needsRoot(context: TestContext): void {
  // reason: only root can start a process as another login
  if (process.getuid?.() !== 0) context.skip(because('not root: no other login to be'))
}

/** False where this machine has no IPv6 at all. */
async function hasSix(): Promise<boolean> {
  const server = createBareServer()
  const opened = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false))
    server.listen(0, '::1', () => resolve(true))
  })
  if (opened) await new Promise((resolve) => void server.close(resolve))
  return opened
}

async function needsSix(context: TestContext): Promise<void> {
  // reason: there is nothing to take where there is no IPv6
  if (!(await hasSix())) context.skip(because('no IPv6 on this machine'))
}

describe('localhost', () => {
  test('is ours in both families, and stops in both', async (context) => {
    await needsSix(context)
    const daemon = await daemonOn(sandbox())
    for (const name of ['[::1]', 'localhost', '127.0.0.1']) {
      const host = `${name}:${daemon.port}`
      expect((await askSix(daemon.port, host)).status, name).toBe(200)
    }
    expect((await askSix(daemon.port, 'evil.com')).status).toBe(403)
    daemon.running.kill('SIGTERM')
    expect((await daemon.running.ended).code).toBe(0)
  })

  test('a port that another has at ::1 is not free', async (context) => {
    await needsSix(context)
    const other: Server = createServer()
    await new Promise<void>((resolve) => void other.listen(0, '::1', () => resolve()))
    onTestFinished(() => void other.close())
    const { port } = other.address() as AddressInfo
    const args = ['serve', '--port', String(port)]
    const refusal = await sandbox().refused(args, 'unavailable', 75)
    expect(refusal.message).toBe(`Port ${port} at ::1 is in use by node (PID: ${process.pid})`)
  })
})

function askSix(port: number, host: string): Promise<{ status: number }> {
  return new Promise((resolve, reject) => {
    const asked = request(
      { host: '::1', port, path: '/healthz', headers: { host }, agent: false },
      (response) => {
        response.resume()
        resolve({ status: response.statusCode ?? 0 })
      },
    )
    asked.on('error', reject)
    asked.end()
  })
}

describe('what ends in logs', () => {
  test('has no link that signs in: neither of serve nor of up', async () => {
    const place = sandbox()
    const serving = place.start(['serve', '--port', '0'], { input: '' })
    await serving.said(/leasehold up --link prints a link/)
    serving.kill('SIGTERM')
    const { out, err } = await serving.ended
    expect(out + err).not.toContain('#link=')
    const up = await place.cli(['up', '--port', '0'])
    expect(up).toMatchObject({ code: 0 })
    const [, pid] = /PID: (\d+)/.exec(up.out)!
    const log = readFileSync(join(place.state, 'server.log'), 'utf8')
    expect(up.out + up.err + log).not.toContain('#link=')
    process.kill(Number(pid), 'SIGTERM')
    await until('it ends', () => place.left().length === 0)
  })

  test('has no password of an address, whatever the address is', async () => {
    const place = sandbox()
    const secret = 'geh:eim'
    const addresses = [
      `mysql://ada:${secret}@db/x`,
      `ada:${secret}@db`,
      `host=db password=${secret}`,
      `postgres://ada:${secret}@127.0.0.1:1/x?password=${secret}`,
      `postgresql://ada:${secret}@:bad:/x`,
    ]
    const commands = [
      ['lock', 'list'],
      ['doctor'],
      ['db', 'check'],
      ['serve', '--port', '0'],
      ['up'],
    ]
    for (const LEASEHOLD_STORE of addresses) {
      const env = { LEASEHOLD_STORE, LEASEHOLD_BUSY_TIMEOUT_MS: '50' }
      for (const args of commands) {
        for (const more of [[], ['--json']]) {
          const { out, err } = await place.cli([...more, ...args], { env })
          expect(out + err, args.join(' ')).not.toContain('eim')
          expect(out + err, args.join(' ')).not.toBe('')
        }
      }
    }
  })
})
