import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { GroupRef } from '../../src/core/rows.ts'
import { operations } from '../../src/operations/registry.ts'
import type { TokenRole } from '../../src/operations/operation.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { sha256 } from '../../src/machine/digest.ts'
import { leaderFact, newMark } from '../../src/machine/group.ts'
import { processRef } from '../../src/machine/process.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { isAlive, Sandbox, until } from '../support/processes.ts'
import { prepare, samplesFor } from './samples.ts'
import {
  finish,
  type Reply,
  send,
  type Sending,
  type Served,
  startDaemon,
  unseen,
} from './serving.ts'

const place = new Sandbox()
const tokens: Record<string, string> = {}
let daemon: Served
let store: Store
let samples: ReturnType<typeof samplesFor>
let asleep: GroupRef | undefined

/** A process group with a mark, as `leasehold run` starts one; another if the last was stopped. */
async function group(): Promise<GroupRef> {
  if (asleep && isAlive(asleep.pid)) return asleep
  const mark = newMark()
  const env = { LEASEHOLD_MARK: mark }
  const { pid } = place.start([], { program: ['setsid', 'sleep', '600'], env })
  await until('it leads a group', () => leaderFact({ ...processRef(pid)!, mark }) === 'alive')
  return (asleep = { ...processRef(pid)!, mark })
}

beforeAll(async () => {
  daemon = await startDaemon(place)
  store = openStore(placeOf({ LEASEHOLD_DIR: place.state }, place.folder))
  samples = samplesFor(await prepare(daemon, await group()))
  tokens['viewer'] = await daemon.token('viewer')
  tokens['agent'] = await daemon.agentToken('ada')
  tokens['admin'] = daemon.secret
  tokens['expired'] = await daemon.token('admin', { ttl_seconds: 2 })
  // Both count once, so that what the daemon remembers of them is put to the test too.
  await daemon.ok('lock.list', {}, { token: tokens['expired'] })
  tokens['revoked'] = await daemon.token('admin')
  const { items } = await daemon.ok('token.list')
  const { id } = (items as { id: string; role: string; expires_at: string | null }[]).findLast(
    ({ role, expires_at }) => role === 'admin' && expires_at === null,
  )!
  await daemon.ok('lock.list', {}, { token: tokens['revoked'] })
  await daemon.ok('token.revoke', { id })
  await until('the token has expired', async () => {
    return (await daemon.post('lock.list', {}, { token: tokens['expired'] })).status === 401
  })
})

afterAll(async () => {
  await store.close()
  await finish(place)
  await place.close()
})

/** Locks that a daemon holds for itself. */
const OURS = /^leasehold:/

const sampleOf = (name: string): object => samples.get(name as never) ?? {}

/** All that an effect would change; the daemon's own leases go on being renewed. */
async function state(): Promise<string> {
  const head = await store.head()
  const rows = await store.read((view) => ({
    leases: [...view.scan('leases_by_expiry', '')].filter(({ name }) => !OURS.test(name)),
    tasks: [...view.scan('tasks', '')],
    tokens: [...view.scan('tokens', '')],
    agents: [...view.scan('agents', '')],
    tickets: [...view.scan('tickets', '')],
    requests: [...view.scan('requests_by_age', '')],
    queue: view.get('queue', 'queue'),
    runs: [...view.scan('tasks_with_status', 'in_progress')].map(({ id }) =>
      view.get('run', `${id}.1`),
    ),
    shares: [...view.scan('shares_waiting', ''), ...view.scan('shares_special', '')].map(
      ({ user, pending, running, paused, weight, max }) => {
        return { user, pending, running, paused, weight, max }
      },
    ),
    // Where a dispatcher puts aside what it does not serve is its own affair.
    limits: [...view.scan('limits', '')].map(({ key, max, used, paused }) => {
      return key.startsWith('unserved:') ? key : { key, max, used, paused }
    }),
  }))
  return JSON.stringify({ position: head.position, fences: head.fences, ...rows })
}

/** Makes the same kind of request of every operation: all must be refused, without effect. */
async function expectAllRefused(
  make: (name: string, input: object) => Promise<Reply>,
  status: number,
  code: string,
  which = operations,
): Promise<void> {
  expect(which.length).toBeGreaterThan(0)
  const before = await state()
  await Promise.all(
    which.map(async ({ name }) => {
      const reply = await make(name, sampleOf(name))
      expect({ name, status: reply.status, code: reply.json?.error?.code }).toEqual({
        name,
        status,
        code,
      })
      const { message, next, details } = reply.json.error
      expect(message, name).not.toBe('')
      expect([typeof next, typeof details], name).toEqual(['string', 'object'])
    }),
  )
  expect(await state()).toBe(before)
}

const post = (sending: Sending) => (name: string, input: object) =>
  daemon.post(name, input, sending)
const writes = operations.filter(({ effect }) => effect === 'write')
const RANK: Record<TokenRole, number> = { viewer: 0, agent: 1, admin: 2 }
const above = (role: TokenRole) => operations.filter((each) => RANK[each.role] > RANK[role])

describe('the samples', () => {
  test('succeed when nothing is wrong, so that only what a test changes refuses them', async () => {
    let scene = await prepare(daemon, await group())
    for (const { name, effect } of operations) {
      if (name === 'lock.name_group') continue
      const input = samplesFor(scene).get(name as never)!
      const reply = await daemon.post(name, { ...input, agent: 'ada' })
      const said = reply.status === 200 ? 'ok' : reply.json.error.code
      expect({ name, said }).toEqual({ name, said: name === 'lock.explain' ? 'not_found' : 'ok' })
      // What was read is as it was; what was written is used up.
      if (effect === 'write') scene = await prepare(daemon, await group())
    }
    await daemon.ok('lock.name_group', { ...scene.held, group: scene.group, agent: 'ada' })
  })
})

describe('who may come in', () => {
  test('nobody without a token that counts', async () => {
    const { token: _, ...secretless } = { token: '' }
    const cases: [string, Sending][] = [
      ['no token', { ...secretless, token: undefined }],
      ['garbage', { token: 'lh_garbage' }],
      ['expired', { token: tokens['expired'] }],
      ['revoked', { token: tokens['revoked'] }],
      ['basic', { token: undefined, headers: { authorization: `Basic ${daemon.secret}` } }],
      ['bare', { token: undefined, headers: { authorization: daemon.secret } }],
      ['two', { token: undefined, headers: { authorization: `Bearer ${daemon.secret} x` } }],
      ['cookie', { token: undefined, headers: { cookie: `token=${daemon.secret}` } }],
    ]
    for (const [, sending] of cases) await expectAllRefused(post(sending), 401, 'unauthorized')
    const [{ hash } = { hash: '' }] = await store.read((view) => [...view.scan('tokens', '')])
    await expectAllRefused(post({ token: hash }), 401, 'unauthorized')
    const inUrl = (name: string, input: object) =>
      send(daemon.url, `/v1/${name}?token=${daemon.secret}&access_token=${daemon.secret}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(input),
      })
    await expectAllRefused(inUrl, 401, 'unauthorized')
  })

  test('a revoked token counts no more: here at once, elsewhere within a second', async () => {
    const idOf = (secret: string) => sha256(secret).slice(0, 12)
    const [one, two] = [await daemon.token('viewer'), await daemon.token('viewer')]
    for (const token of [one, two]) await daemon.ok('lock.list', {}, { token })
    await daemon.ok('token.revoke', { id: idOf(one) })
    expect((await daemon.post('lock.list', {}, { token: one })).status).toBe(401)
    await daemon.ok('lock.list', {}, { token: two })
    await unseen(place, () => place.ok(['token', 'revoke', idOf(two)]))
    const isRefused = async () => {
      return (await daemon.post('lock.list', {}, { token: two })).status === 401
    }
    await until('it is refused', isRefused, 2_000)
  })

  test('a viewer reads, and changes nothing', async () => {
    await expectAllRefused(post({ token: tokens['viewer'] }), 403, 'forbidden', above('viewer'))
    for (const { name } of operations.filter(({ role }) => role === 'viewer')) {
      const { status } = await daemon.post(name, sampleOf(name), {
        token: tokens['viewer'],
      })
      expect({ name, status }).toEqual({ name, status: name === 'lock.explain' ? 404 : 200 })
    }
  })

  test('an agent does nothing that is for admins', async () => {
    await expectAllRefused(post({ token: tokens['agent'] }), 403, 'forbidden', above('agent'))
  })

  test('an agent acts as itself or those nested under it, never as another', async () => {
    const open = operations.filter(({ role }) => role !== 'admin')
    for (const agent of ['bob', 'ad', 'adam', 'ada2', 'admin', 'ADA', ' ada']) {
      const as = (name: string, input: object) =>
        daemon.post(name, { ...input, agent }, { token: tokens['agent'] })
      await expectAllRefused(as, 403, 'forbidden', open)
    }
    for (const agent of ['ada', 'ada/sub', 'ada/sub/deeper']) {
      const names = [`of-${agent}`]
      const got = await daemon.ok('lock.acquire', { names, agent }, { token: tokens['agent'] })
      expect(got.holder).toBe(agent)
    }
    // What only our own command line may say is not believed of an agent.
    const headers = {
      'leasehold-caller': JSON.stringify({ given: true, process: null, under: null, admin: true }),
    }
    await expectAllRefused(
      post({ token: tokens['agent'], headers }),
      403,
      'forbidden',
      above('agent'),
    )
  })

  test('events, too, are for those with a token', async () => {
    for (const token of [undefined, 'garbage', tokens['expired'], tokens['revoked']]) {
      const reply = await send(daemon.url, `/v1/events?token=${daemon.secret}`, { token })
      expect({ status: reply.status, code: reply.json.error.code }).toEqual({
        status: 401,
        code: 'unauthorized',
      })
    }
    const { status, json } = await send(daemon.url, '/mcp', {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    })
    expect({ status, code: json.error.code }).toEqual({ status: 401, code: 'unauthorized' })
  })
})

const OPEN_ROUTES = ['/healthz', '/readyz', '/openapi.json', '/docs', '/', '/nothing']
const OTHER_ROUTES = [...OPEN_ROUTES, '/v1/events', '/mcp']

/** The same headers on the routes that are no operations: refused before anything is looked at. */
async function expectOthersRefused(headers: Record<string, string>, status = 403): Promise<void> {
  for (const path of OTHER_ROUTES) {
    const reply = await send(daemon.url, path, { token: daemon.secret, headers })
    expect({ path, status: reply.status, code: reply.json?.error?.code }).toEqual({
      path,
      status,
      code: status === 403 ? 'forbidden' : 'invalid',
    })
  }
}

describe('from where', () => {
  test('the host must be our own, to the letter', async () => {
    const { port } = daemon
    for (const host of [
      'evil.com',
      `evil.com:${port}`,
      `localhost.evil.com:${port}`,
      `127.0.0.1.evil.com:${port}`,
      `127.0.0.1:${port + 1}`,
      '127.0.0.1',
      'localhost',
      `0.0.0.0:${port}`,
      `127.0.0.1:${port}, evil.com`,
      `localhost:${port}.`,
    ]) {
      const sending = { headers: { host } }
      const first = await daemon.post('lock.list', {}, sending)
      // A host that is none at all is not even read; either way it is refused.
      expect([400, 403], host).toContain(first.status)
      const code = first.status === 403 ? 'forbidden' : 'invalid'
      await expectAllRefused(post(sending), first.status, code)
      await expectOthersRefused({ host }, first.status)
    }
    for (const host of [`127.0.0.1:${port}`, `localhost:${port}`]) {
      expect((await daemon.post('lock.list', {}, { headers: { host } })).status).toBe(200)
    }
  })

  test('the origin, where a browser tells it, must be our own', async () => {
    const { port } = daemon
    for (const origin of [
      'null',
      'http://evil.com',
      `https://127.0.0.1:${port}`,
      `http://localhost.evil.com:${port}`,
      `http://127.0.0.1.evil.com:${port}`,
      `http://127.0.0.1:${port + 1}`,
      'http://127.0.0.1',
      'http://localhost',
      `http://127.0.0.1:${port}/`,
      `http://evil.com#http://127.0.0.1:${port}`,
      'file://',
      '',
    ]) {
      await expectAllRefused(post({ headers: { origin } }), 403, 'forbidden')
      await expectOthersRefused({ origin })
    }
    for (const origin of [`http://127.0.0.1:${port}`, `http://localhost:${port}`]) {
      const { status, headers } = await daemon.post('lock.list', {}, { headers: { origin } })
      expect({ status, cors: headers['access-control-allow-origin'] }).toEqual({
        status: 200,
        cors: undefined,
      })
    }
  })
})

describe('in what form', () => {
  test('a body is JSON by its own word: what a form or a plain page sends is refused', async () => {
    for (const type of [
      'text/plain',
      'text/plain; application/json',
      'application/x-www-form-urlencoded',
      'multipart/form-data; boundary=x',
      'application/jsonp',
      '',
      undefined,
    ]) {
      await expectAllRefused(post({ headers: { 'content-type': type } }), 400, 'invalid')
    }
  })

  const query = (input: object) =>
    Object.entries(input)
      .map(([k, v]) => `${k}=${encodeURIComponent(typeof v === 'string' ? v : JSON.stringify(v))}`)
      .join('&')

  test('nothing is changed by GET, whatever else it says', async () => {
    for (const headers of [{}, { 'x-http-method-override': 'POST' }, { 'x-method': 'POST' }]) {
      const get = (name: string, input: object) =>
        send(daemon.url, `/v1/${name}?${query(input)}`, { token: daemon.secret, headers })
      await expectAllRefused(get, 400, 'invalid', writes)
    }
  })

  test('nothing is changed by HEAD, which takes the way of GET', async () => {
    const before = await state()
    for (const { name } of writes) {
      const path = `/v1/${name}?${query(sampleOf(name))}`
      const { status } = await send(daemon.url, path, { token: daemon.secret, method: 'HEAD' })
      expect({ name, status }).toEqual({ name, status: 400 })
    }
    expect(await state()).toBe(before)
  })

  test('no other method leads anywhere', async () => {
    for (const method of ['PUT', 'DELETE', 'PATCH', 'OPTIONS', 'TRACE', 'PROPFIND']) {
      const other = (name: string, input: object) => daemon.post(name, input, { method })
      await expectAllRefused(other, 404, 'not_found')
      const preflight = await send(daemon.url, '/v1/lock.acquire', {
        method,
        headers: { 'access-control-request-method': 'POST' },
      })
      expect(Object.keys(preflight.headers).join()).not.toContain('access-control')
    }
  })
})

describe('a secret', () => {
  test('stands in no store, log, address or list of processes', async () => {
    const secrets = Object.values(tokens)
    // Another process reads the files: this one has the store open, and SQLite would mind.
    const holders = (secret: string) => {
      const grep = `grep -rlF -e "$SECRET" "${place.state}" || true`
      const env = { ...process.env, SECRET: secret }
      return execFileSync('sh', ['-c', grep], { env, encoding: 'utf8' }).trim()
    }
    for (const secret of secrets) {
      const where = secret === daemon.secret ? join(place.state, 'admin.token') : ''
      expect(holders(secret)).toBe(where)
    }
    const { out, err } = daemon.running
    const argv = place.left().map((pid) => readFileSync(`/proc/${pid}/cmdline`, 'utf8'))
    const events = JSON.stringify(await store.events(0, 10_000))
    for (const secret of secrets) {
      for (const text of [out, err, events, ...argv]) expect(text).not.toContain(secret)
    }
  })

  test('none of this made the daemon say that something broke', () => {
    // It says whom it refused what, and nothing else.
    const lines = daemon.running.err.split('\n').filter(Boolean)
    expect(lines.filter((line) => !line.startsWith('leasehold: refused '))).toEqual([])
    expect(lines.join('\n')).toMatch(/refused \/v1\/lock\.force_release to ada: "lock\.force_rel/)
  })
})
