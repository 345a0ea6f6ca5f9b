import { readdirSync } from 'node:fs'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { operations } from '../../src/operations/registry.ts'
import { understood } from '../../src/operations/spelling.ts'
import { ROUNDS, Sandbox, until } from '../support/processes.ts'
import { Raw } from './raw.ts'
import { finish, type Reply, send, type Sending, type Served, startDaemon } from './serving.ts'

const MB = 1024 * 1024
const place = new Sandbox()
let daemon: Served
let quiet: number

beforeAll(async () => {
  daemon = await startDaemon(place)
  await daemon.ok('lock.list')
  quiet = openFiles()
})

afterAll(async () => {
  await finish(place)
  await place.close()
})

/** After everything that was done to it: it answers, said nothing of a bug, and has let go. */
afterEach(async () => {
  expect((await daemon.post('lock.list')).status).toBe(200)
  expect(daemon.running.err).toBe('')
  await until('no connection is left open', () => openFiles() <= quiet + 1)
})

const openFiles = () => readdirSync(`/proc/${daemon.running.pid}/fd`).length
const raw = () => new Raw(daemon.socket())
const head = (path = '/v1/task.create', method = 'POST') => [
  `${method} ${path} HTTP/1.1`,
  `Host: 127.0.0.1:${daemon.port}`,
  `Authorization: Bearer ${daemon.secret}`,
  'Content-Type: application/json',
]

function expectRefused(reply: Reply, what: string, status = 400, code = 'invalid'): void {
  expect({ what, status: reply.status, code: reply.json?.error?.code }).toEqual({
    what,
    status,
    code,
  })
  expect(reply.headers['content-type']).toContain('application/json')
}

async function expectOnEveryRoute(what: string, sending: Sending, status = 400, code = 'invalid') {
  await expectOn(operations, what, sending, status, code)
}

async function expectOn(
  routes: readonly { name: string }[],
  what: string,
  sending: Sending,
  status = 400,
  code = 'invalid',
) {
  for (const { name } of routes) {
    expectRefused(await daemon.post(name, {}, sending), `${what}: ${name}`, status, code)
  }
}

/**
 * Deals what is to be tried out among the routes, all of which read a request by the same code:
 * every route gets some of it, and each of it some routes. `npm run faults` gives all to all.
 */
function dealt<Each, Route>(tried: Each[], routes: readonly Route[]): [Each, Route[]][] {
  return tried.map((each, i) => {
    return [each, routes.filter((_, at) => ROUNDS > 1 || at % tried.length === i)]
  })
}

describe('on every route', () => {
  test('what is not a JSON object is refused', async () => {
    const bodies = ['{', '{"a":', 'names=x', '<a/>', 'null', '[]', '"text"', '42', '{"a":1}{"b":2}']
    const bytes = Buffer.from([0xff, 0xfe, 0x00, 0x80])
    const all = [...bodies, '\0', '{a:1}', "{'a':1}", 'NaN', bytes]
    for (const [body, routes] of dealt(all, operations)) {
      await expectOn(routes, JSON.stringify(body), { body })
    }
  })

  test('fields that it does not have are refused, those of every object too', async () => {
    const fields = ['nonsense', '__proto__', 'constructor', 'toString', 'hasOwnProperty']
    for (const [field, routes] of dealt(fields, operations)) {
      await expectOn(routes, field, { body: `{"${field}": {"admin": true}}` })
    }
    const reads = operations.filter(({ effect }) => effect === 'read')
    for (const [field, routes] of dealt(fields, reads)) {
      for (const { name } of routes) {
        const path = `/v1/${name}?${field}=1`
        expectRefused(await send(daemon.url, path, { token: daemon.secret }), path)
      }
    }
  })

  test('fields of another type are refused', async () => {
    const wrong = [null, true, -1, 1.5, '', 'x'.repeat(3000), [], [[]], {}, { a: 1 }, [null]]
    for (const { name, input } of operations) {
      for (const [field, of] of Object.entries(input)) {
        // Some can be understood after all: spelling.test.ts shows which.
        const meant = (value: unknown) => understood({ [field]: of }, { [field]: value })[field]
        for (const value of wrong.filter((each) => !of.schema().safeParse(meant(each)).success)) {
          const reply = await daemon.post(name, { [field]: value })
          const what = `${name} ${field}=${JSON.stringify(value).slice(0, 30)}`
          const code = reply.json?.error?.code as string
          expect({ what, code }).toEqual({ what, code: code === 'too_large' ? code : 'invalid' })
          // What was given is wrong, not missing; other fields may well be.
          expect(reply.json.error.message, what).not.toContain(`${field} is missing`)
          expect(reply.status).toBe(code === 'too_large' ? 413 : 400)
        }
      }
    }
    // Too large for a number: read as Infinity.
    await expectOnEveryRoute('1e400', { body: '{"limit": 1e400, "ttl_seconds": 1e400}' })
    for (const agent of [true, '', {}, 'a\nb', 'a\ud800', 'x'.repeat(300)]) {
      const reply = await daemon.post('lock.acquire', { names: ['x'], agent })
      expectRefused(reply, JSON.stringify(agent))
    }
  })

  test('2 MB are too many, announced or not', async () => {
    // Some operations read that much, for their longest field; and find that too long.
    const long = 'x'.repeat(2 * MB)
    const body = JSON.stringify({ title: long, content: long })
    await expectOnEveryRoute('2 MB', { body }, 413, 'too_large')
    const announced = raw().write(...head(), `Content-Length: ${2 * MB}`, '', '')
    await until('it is refused before it is sent', () => announced.replies[0]?.status === 413)
    announced.socket.destroy()
    const chunked = raw().write(...head(), 'Transfer-Encoding: chunked', '', '')
    await chunked.writeAll(`${(64 * 1024).toString(16)}\r\n${' '.repeat(64 * 1024)}\r\n`, 32)
    await until('it is refused', () => chunked.replies[0]?.json?.error?.code === 'too_large')
    chunked.socket.destroy()
  })

  test('more levels than anybody needs are refused, not followed', async () => {
    const deep = (levels: number) => `${'['.repeat(levels)}${']'.repeat(levels)}`
    const depths = [200_000, ...Array<number>(ROUNDS > 1 ? 1 : 9).fill(10_000)]
    for (const [levels, routes] of dealt(depths, operations)) {
      await expectOn(routes, `${levels} levels`, { body: `{"nonsense": ${deep(levels)}}` })
    }
    for (const levels of [10_000, 200_000]) {
      const body = `{"title": "x", "metadata": {"a": ${deep(levels)}}}`
      expectRefused(await daemon.post('task.create', {}, { body }), `${levels} levels of metadata`)
    }
    const body = `{"title": "x", "metadata": {"a": ${deep(40)}}}`
    expect((await daemon.post('task.create', {}, { body })).status).toBe(200)
  })

  test('beside the operations too: MCP answers with JSON, and goes on', async () => {
    const deep = `${'['.repeat(10_000)}${']'.repeat(10_000)}`
    for (const body of ['{', '\0', 'x'.repeat(2 * MB), `{"a": ${deep}`]) {
      const headers = {
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      }
      const asked = { token: daemon.secret, method: 'POST', headers, body }
      const reply = await send(daemon.url, '/mcp', asked)
      const what = body.slice(0, 10)
      expect([400, 413], what).toContain(reply.status)
      expect(reply.json?.error, what).toBeDefined()
    }
  })

  test('a header of our own that is none is refused', async () => {
    for (const text of ['', '{', 'null', '{}', '[]', '{"admin":1}', '{"admin":true,"process":5}']) {
      const headers = { 'leasehold-caller': text }
      expectRefused(await daemon.post('lock.list', {}, { headers }), text)
    }
  })

  test('an Accept or an encoding that we do not have changes nothing', async () => {
    const headers = { accept: 'text/html', 'accept-encoding': 'br', expect: '100-continue' }
    const reply = await daemon.post('lock.list', {}, { headers })
    expect({ status: reply.status, type: reply.headers['content-type'] }).toEqual({
      status: 200,
      type: 'application/json',
    })
    const packed = { headers: { 'content-encoding': 'gzip' }, body: 'not packed' }
    expectRefused(await daemon.post('lock.list', {}, packed), 'gzip')
  })
})

describe('addresses', () => {
  test('what leads nowhere is not found, however it is written', async () => {
    for (const path of [
      '/v1',
      '/v1/',
      '/v1/nothing',
      '/v1/lock',
      '/v1/lock.acquire/more',
      '/v1/../x',
      '/v1/../../etc/passwd',
      '/v1/%2e%2e/x',
      '/v1/lock.acquire%00',
      '/v1/%00',
      '//',
      '//evil.com/v1/lock.list',
      '/v1//lock.list',
      '/V1/lock.list',
      '/v1/LOCK.LIST',
      '/v1/constructor',
      '/v1/__proto__',
      '/v2/lock.list',
      '/v1/lock.list;x',
      '/v1/%ff',
      '/%',
      `/${'x'.repeat(4000)}`,
    ]) {
      for (const method of ['GET', 'POST']) {
        const reply = await send(daemon.url, path, {
          token: daemon.secret,
          method,
          headers: { 'content-type': 'application/json' },
        })
        const what = `${method} ${path.slice(0, 40)}`
        expect([400, 404], what).toContain(reply.status)
        expect(['invalid', 'not_found'], what).toContain(reply.json?.error?.code)
      }
    }
    // Read as what it says, this one leads to a route.
    expect((await send(daemon.url, '/v1/x/../lock.list', { token: daemon.secret })).status).toBe(
      200,
    )
  })

  test('a target that is no path, and a host that is none', async () => {
    for (const [target, host] of [
      ['http://evil.com/v1/lock.list', 'evil.com'],
      ['*', `127.0.0.1:${daemon.port}`],
      ['lock.list', `127.0.0.1:${daemon.port}`],
      ['/v1\\lock.list', `127.0.0.1:${daemon.port}`],
      ['/v1/lock.list', 'a b'],
      ['/v1/lock.list', '127.0.0.1:99999999'],
      ['/v1/lock.list', 'user:pass@127.0.0.1'],
      ['/v1/lock.list', ''],
    ]) {
      const asked = raw().write(
        `GET ${target} HTTP/1.1`,
        `Host: ${host}`,
        'Connection: close',
        '',
        '',
      )
      const [reply] = await asked.closed()
      expect([400, 403, 404], `${target} ${host}`).toContain(reply?.status)
      expect(['invalid', 'forbidden', 'not_found']).toContain(reply?.json?.error?.code)
    }
    for (const version of ['1.0', '1.1']) {
      const hostless = raw().write(`GET /healthz HTTP/${version}`, 'Connection: close', '', '')
      const [reply] = await hostless.closed()
      expect([400, 403]).toContain(reply?.status)
      expect(['invalid', 'forbidden']).toContain(reply?.json?.error?.code)
    }
    const two = raw().write('GET /healthz HTTP/1.1', 'Host: evil.com', ...head().slice(1), '', '')
    await until('it is answered', () => two.replies.length === 1)
    expect([400, 403]).toContain(two.replies[0]!.status)
    two.socket.destroy()
  })
})

describe('what is hardly HTTP', () => {
  test('huge headers are too large', async () => {
    const asked = raw().write(...head(), '')
    await asked.writeAll(`X-Filler: ${'x'.repeat(1000)}\r\n`, 64)
    const [reply] = await asked.closed()
    expect([reply?.status, reply?.json?.error?.code]).toEqual([413, 'too_large'])
    const address = await send(daemon.url, `/${'x'.repeat(20_000)}`)
    expectRefused(address, 'a huge address', 413, 'too_large')
  })

  test('garbage is refused and the connection ends', async () => {
    for (const text of [
      'garbage\r\n\r\n',
      '\u0016\u0003\u0001\u0002\0\u0001',
      'GET / HTTP/9.9\r\n\r\n',
    ]) {
      const [reply] = await raw().write(text).closed()
      expect([reply?.status, reply?.json?.error?.code], text).toEqual([400, 'invalid'])
    }
    for (const lines of [
      [...head(), 'Content-Length: -5', '', ''],
      [...head(), 'Content-Length: 5', 'Content-Length: 6', '', '{}'],
      [...head(), 'Content-Length: 2', 'Transfer-Encoding: chunked', '', '{}'],
      [...head(), 'Bad Header: x', '', ''],
    ]) {
      const [reply] = await raw()
        .write(...lines)
        .closed()
      expect([reply?.status, reply?.json?.error?.code], lines.join()).toEqual([400, 'invalid'])
    }
  })

  test('garbage behind a request is not taken for its answer', async () => {
    const body = '{"title": "piped"}'
    const length = `Content-Length: ${body.length}`
    const asked = raw().write(...head(), length, '', `${body}garbage\r\n\r\n`)
    for (const [i, { status, json }] of (await asked.closed()).entries()) {
      // Either an answer of its own, or none: the first must never be the refusal of the second.
      if (i === 0) expect([status, json?.title]).toEqual([200, 'piped'])
      else expect([status, json?.error?.code]).toEqual([400, 'invalid'])
    }
  })

  test('requests that are cut off have no effect', async () => {
    const { items: before } = await daemon.ok('task.list', { limit: 1000 })
    const whole = [...head(), 'Content-Length: 18', '', '{"title": "never"}'].join('\r\n')
    for (const at of [10, 60, 150, whole.length - 18, whole.length - 1]) {
      const asked = raw()
      asked.write(whole.slice(0, at)).socket.end()
      await asked.closed()
      const reset = raw()
      await new Promise((resolve) => void reset.socket.write(whole.slice(0, at), resolve))
      reset.socket.resetAndDestroy()
    }
    const { items } = await daemon.ok('task.list', { limit: 1000 })
    expect(items.length).toBe(before.length)
  })

  test('many in a row on one connection are all answered, in order', async () => {
    const one = (i: number) => {
      const body = JSON.stringify({ title: `row ${i}` })
      return [...head(), `Content-Length: ${body.length}`, '', body].join('\r\n')
    }
    const asked = raw()
    asked.write(Array.from({ length: 30 }, (_, i) => one(i)).join(''))
    await until('all are answered', () => asked.replies.length === 30)
    expect(asked.replies.map(({ json }) => json?.title as string)).toEqual(
      Array.from({ length: 30 }, (_, i) => `row ${i}`),
    )
    asked.socket.destroy()
  })
})
