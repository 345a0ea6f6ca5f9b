import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sha256 } from '../../src/machine/digest.ts'
import { Sandbox } from '../support/processes.ts'
import { finish, type Reply, send, type Sending, type Served, startDaemon } from './serving.ts'

let place: Sandbox
let daemon: Served

beforeAll(async () => {
  place = new Sandbox()
  daemon = await startDaemon(place)
})

afterAll(async () => {
  await finish(place)
  await place.close()
})

const JSON_TYPE = { 'content-type': 'application/json' }

function post(path: string, body: object, sending: Sending = {}): Promise<Reply> {
  const headers = { ...JSON_TYPE, host: hostOf(), ...sending.headers }
  return send(daemon.url, path, {
    method: 'POST',
    body: JSON.stringify(body),
    ...sending,
    headers,
  })
}

const hostOf = () => `127.0.0.1:${daemon.port}`

/** Makes a link as the command line does, and opens it as a browser does. */
async function signIn(role: string, origin: string | undefined = daemon.url) {
  const secret = `secret ${Math.random()}`
  const link = { secret_hash: sha256(secret), role, for_agent: 'web:ada@here' }
  expect((await post('/v1/session/link', link, { token: daemon.secret })).status).toBe(200)
  const reply = await post('/v1/session', { secret }, { headers: { origin } })
  expect(reply.json).toEqual({ role, agent: 'web:ada@here' })
  const [set] = reply.headers['set-cookie'] as unknown as [string]
  return { secret, set, cookie: set.split(';')[0]! }
}

describe('a session', () => {
  test('is a token of its own, in a cookie that scripts and other sites do not get', async () => {
    const { set, cookie } = await signIn('admin')
    expect(set).toMatch(/^leasehold_\d+=lh_[\w-]{43}; Path=\/v1; Max-Age=43200; HttpOnly; SameSite/)
    const headers = { cookie, origin: daemon.url }
    expect((await post('/v1/lock.list', {}, { headers })).status).toBe(200)
    const { items } = await daemon.ok('token.list')
    expect(items.at(-1)).toMatchObject({ role: 'admin', agent: 'web:ada@here', revoked_at: null })
    expect(JSON.stringify(items)).not.toContain(cookie.split('=')[1])
  })

  test('begins with a link once, and never with one that is unknown', async () => {
    const { secret } = await signIn('viewer')
    for (const each of [secret, 'unknown', '', undefined, 7]) {
      const reply = await post('/v1/session', { secret: each }, { headers: { origin: daemon.url } })
      expect({ each, status: reply.status }).toEqual({ each, status: 401 })
      expect(reply.headers['set-cookie']).toBeUndefined()
    }
  })

  test('cannot be given by those who are no admins', async () => {
    const link = { secret_hash: sha256('mine'), role: 'admin', for_agent: 'web:me' }
    const { cookie } = await signIn('viewer')
    const tokens = [undefined, await daemon.token('viewer'), await daemon.agentToken('a')]
    for (const [i, token] of tokens.entries()) {
      const reply = await post('/v1/session/link', link, { token })
      expect(reply.status).toBe(i === 0 ? 401 : 403)
    }
    const headers = { cookie, origin: daemon.url }
    expect((await post('/v1/session/link', link, { headers })).status).toBe(403)
    expect((await post('/v1/session', { secret: 'mine' })).status).toBe(401)
  })

  test('ends for good when it is signed out', async () => {
    const { cookie } = await signIn('admin')
    const headers = { cookie, origin: daemon.url }
    const ended = await post('/v1/session/end', {}, { headers })
    expect(ended.headers['set-cookie']).toEqual([expect.stringMatching(/Max-Age=0/)])
    expect((await post('/v1/lock.list', {}, { headers })).status).toBe(401)
  })

  test('links that nobody opens do not pile up: the oldest goes', async () => {
    for (let i = 0; i <= 100; i += 1) {
      const link = { secret_hash: sha256(`many ${i}`), role: 'viewer', for_agent: 'web:x' }
      await post('/v1/session/link', link, { token: daemon.secret })
    }
    const open = async (i: number) => (await post('/v1/session', { secret: `many ${i}` })).status
    expect([await open(0), await open(1), await open(100)]).toEqual([401, 200, 200])
  })
})

describe('the cookie counts for our own page only', () => {
  test('a change needs the origin of this server, whatever else was sent', async () => {
    const { cookie } = await signIn('admin', undefined)
    const other = `http://127.0.0.1:${daemon.port + 1}`
    const cases: Record<string, string | undefined>[] = [
      {},
      { origin: 'null' },
      { origin: other },
      { origin: 'https://evil.example' },
      { origin: daemon.url, 'sec-fetch-site': 'same-site' },
      { origin: daemon.url, 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of cases) {
      const reply = await post(
        '/v1/lock.acquire',
        { name: 'x' },
        { headers: { cookie, ...headers } },
      )
      expect({ headers, status: reply.status }).toEqual({ headers, status: 403 })
    }
    const status = (await daemon.ok('lock.status', { name: 'x' })).is_locked
    expect(status).toBe(false)
  })

  test('a read from a page of another port is refused too', async () => {
    const { cookie } = await signIn('viewer')
    for (const path of ['/v1/lock.list', '/v1/events', '/v1/session']) {
      const headers = { cookie, host: hostOf(), 'sec-fetch-site': 'same-site' }
      expect((await send(daemon.url, path, { headers })).status, path).toBe(403)
    }
  })

  test('an origin is no way around the form of a request', async () => {
    const { cookie } = await signIn('admin')
    const headers = { cookie, origin: daemon.url, 'content-type': 'text/plain' }
    expect((await post('/v1/lock.acquire', { name: 'x' }, { headers })).status).toBe(400)
    const asked = { headers: { cookie, host: hostOf() } }
    expect((await send(daemon.url, '/v1/lock.acquire?name=x', asked)).status).toBe(400)
  })
})

describe('the files of the dashboard', () => {
  const get = (path: string) => send(daemon.url, path, { headers: { host: hostOf() } })

  test('come with a policy that lets nothing else in, and are kept by their names', async () => {
    const page = await get('/')
    expect(page.headers).toMatchObject({
      'cache-control': 'no-store',
      'content-type': 'text/html; charset=utf-8',
      'x-content-type-options': 'nosniff',
    })
    const policy = String(page.headers['content-security-policy'])
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self'")
    expect(policy).not.toContain('unsafe')
    expect(page.text).not.toMatch(/<script(?![^>]*src=)|<style|style=|\son\w+=/)
    const assets = [...page.text.matchAll(/"(\/assets\/[^"]+)"/g)].map(([, path]) => path!)
    expect(assets.length).toBeGreaterThan(1)
    for (const path of assets) {
      const { status, headers } = await get(path)
      expect({ status, cached: headers['cache-control'] }).toEqual({
        status: 200,
        cached: 'public, max-age=31536000, immutable',
      })
    }
  })

  test('are all there is', async () => {
    for (const path of ['/assets/..%2findex.html', '/assets/%2e%2e/cli.cjs', '/assets/none.js']) {
      expect((await get(path)).status, path).toBe(404)
    }
    const elsewhere = await send(daemon.url, '/', { headers: { host: 'evil.example' } })
    expect(elsewhere.status).toBe(403)
  })
})
