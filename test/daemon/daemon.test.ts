import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { finish, send, servingPlace, startDaemon, startedInTime, unseen } from '../doors/serving.ts'
import { isAlive, type Sandbox, until } from '../support/processes.ts'

const modeOf = (path: string) => statSync(path).mode & 0o777
const serverFile = (place: Sandbox) => join(place.state, 'server.json')

function readServer(place: Sandbox): { pid: number; url: string } {
  return JSON.parse(readFileSync(serverFile(place), 'utf8')) as { pid: number; url: string }
}

describe('serve', () => {
  test('says where it is, for this login only, and takes its files away at the end', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    expect(readServer(place)).toMatchObject({ pid: daemon.running.pid, url: daemon.url })
    expect(daemon.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect(daemon.port).toBeGreaterThan(0)
    for (const name of ['server.json', 'admin.token']) {
      expect(modeOf(join(place.state, name)), name).toBe(0o600)
    }
    expect(modeOf(place.state)).toBe(0o700)
    expect((await send(daemon.url, '/healthz')).json).toEqual({ ok: true })
    expect((await daemon.stop()).code).toBe(0)
    for (const name of ['server.json', 'admin.token']) {
      expect(existsSync(join(place.state, name)), name).toBe(false)
    }
    expect(await place.ok(['lock', 'list'])).toEqual({ items: [], next: null })
  })

  test('is one per store: the second says who serves it, and exits with 75', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const { code, error } = await place.cli(['--json', 'serve', '--port', '0'])
    expect(code).toBe(75)
    expect(error.code).toBe('unavailable')
    expect(error.message).toContain('Another leasehold server is already running on this database')
    expect(error.message).toContain(String(daemon.running.pid))
    expect(error.message).toContain(daemon.url)
    expect(error.details).toEqual({ pid: daemon.running.pid, url: daemon.url })
    expect(readServer(place).pid).toBe(daemon.running.pid)
    expect((await send(daemon.url, '/healthz')).status).toBe(200)
  })

  test('of many that start at once one serves, and the others exit with 75', async () => {
    const place = servingPlace()
    const started = Array.from({ length: 6 }, () => place.start(['--json', 'serve', '--port', '0']))
    const codes: (number | null)[] = []
    for (const each of started) void each.ended.then(({ code }) => codes.push(code))
    await until('five give up', () => codes.length === 5)
    expect(codes).toEqual([75, 75, 75, 75, 75])
    const { pid, url } = await until(
      'one serves',
      () => existsSync(serverFile(place)) && readServer(place),
    )
    expect(isAlive(pid)).toBe(true)
    expect((await send(url, '/readyz')).status).toBe(200)
  })

  test('a port that is taken is a refusal, and holds nothing back', async () => {
    const place = servingPlace()
    const other = createServer().listen(0, '127.0.0.1')
    await until('it listens', () => other.listening)
    const { port } = other.address() as { port: number }
    const { code, error } = await place.cli(['--json', 'serve', '--port', String(port)])
    other.close()
    expect({ code, said: error.message }).toEqual({
      code: 75,
      said: `Port ${port} is in use by node (PID: ${process.pid})`,
    })
    expect(await place.ok(['lock', 'list'])).toEqual({ items: [], next: null })
    const daemon = await startDaemon(place)
    expect((await daemon.stop()).code).toBe(0)
  })

  test('stays the one daemon of its store when that is restored from a backup', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('task.create', { title: 'before', id: '1' })
    await place.ok(['db', 'backup', place.path('copy')])
    await daemon.ok('task.create', { title: 'after', id: '2' })
    await place.ok(['db', 'restore', place.path('copy'), '--yes'])
    await until('the daemon has its lock again', async () => {
      return (await daemon.ok('lock.status', { name: 'leasehold:daemon' })).is_locked
    })
    const { items } = await daemon.ok('task.list')
    expect(items.map(({ id }: { id: string }) => id)).toEqual(['1'])
    expect((await place.cli(['serve', '--port', '0'])).code).toBe(75)
    expect((await daemon.stop()).code).toBe(0)
  })
})

describe('up', () => {
  test('starts the daemon behind, once, and finds the one that runs', async () => {
    const place = servingPlace()
    const first = await place.ok(['up', '--port', '0'])
    expect(isAlive(first.pid)).toBe(true)
    expect(await place.ok(['up', '--port', '0'])).toEqual(first)
    expect((await send(first.url, '/healthz')).status).toBe(200)
    expect(modeOf(join(place.state, 'server.log'))).toBe(0o600)
  })

  test('several at once agree on one daemon', async () => {
    const place = servingPlace()
    const all = await Promise.all(Array.from({ length: 4 }, () => place.ok(['up', '--port', '0'])))
    expect(new Set(all.map(({ pid }) => pid as number)).size).toBe(1)
  })

  test('is not fooled by what a killed daemon left, whoever has its pid now', async () => {
    const place = servingPlace()
    const first = await place.ok(['up', '--port', '0'])
    process.kill(first.pid as number, 'SIGKILL')
    await until('it is gone', () => !isAlive(first.pid as number))
    // This very process has that pid, as far as the file says.
    const stale = JSON.stringify({ ...readServer(place), pid: process.pid })
    writeFileSync(serverFile(place), stale)
    const next = await place.ok(['up', '--port', '0'])
    expect(next.pid).not.toBe(process.pid)
    expect((await send(next.url, '/healthz')).status).toBe(200)
    await finish(place)
  })
})

describe('a graceful stop', () => {
  test('answers what it accepted: waits are told, streams end, nothing hangs', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('lock.acquire', { names: ['x'], agent: 'ada' })
    const waiting = daemon.post('lock.acquire', { names: ['x'], agent: 'bob', wait_seconds: 600 })
    const stream = send(daemon.url, '/v1/events', { token: daemon.secret })
    // Reads nothing: its answer could never be delivered.
    const deaf = daemon.socket()
    deaf.pause()
    deaf.on('error', () => undefined)
    deaf.write(`GET /v1/events HTTP/1.1\r\nHost: 127.0.0.1:${daemon.port}\r\n`)
    deaf.write(`Authorization: Bearer ${daemon.secret}\r\n\r\n`)
    await until('bob waits', async () => {
      return (await daemon.ok('lock.status', { name: 'x' })).waiters.length === 1
    })
    const writes = Array.from({ length: 40 }, (_, i) =>
      daemon.post('task.create', { title: `t${i}` }),
    )
    await Promise.race(writes)
    const { code, ms } = await daemon.stop()
    expect(code).toBe(0)
    expect(ms).toBeLessThan(5_000)
    const { status, json } = await waiting
    expect({ status, code: json.error.code }).toEqual({ status: 503, code: 'unavailable' })
    expect((await stream).status).toBe(200)
    const settled = await Promise.allSettled(writes)
    const { items } = await place.ok(['task', 'list', '--limit', '1000'])
    const titles = new Set(items.map(({ title }: { title: string }) => title))
    for (const [i, each] of settled.entries()) {
      if (each.status === 'fulfilled' && each.value.status === 200)
        expect(titles).toContain(`t${i}`)
    }
    expect(settled.filter(({ status: how }) => how === 'fulfilled').length).toBeGreaterThan(0)
    deaf.destroy()
  })

  test('a command that waits through it goes on waiting on the store, in its place', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await place.ok(['lock', 'acquire', 'x', '--agent', 'ada'])
    const bob = place.start(['--json', 'lock', 'acquire', 'x', '--agent', 'bob', '--wait', '60s'])
    type Waiters = { waiters: { agent: string }[] }
    const agentsOf = ({ waiters }: Waiters) => waiters.map(({ agent }) => agent).join()
    const waiters = async () => agentsOf(await daemon.ok('lock.status', { name: 'x' }))
    await until('bob waits', async () => (await waiters()) === 'bob')
    const cy = place.start(['--json', 'lock', 'acquire', 'x', '--agent', 'cy', '--wait', '60s'])
    await until('cy waits', async () => (await waiters()) === 'bob,cy')
    await daemon.stop()
    await until('both still wait', async () => {
      return agentsOf(await place.ok(['lock', 'status', 'x'])) === 'bob,cy'
    })
    await place.ok(['lock', 'release', 'x', '--agent', 'ada'])
    expect((await bob.ended).json).toMatchObject({ holder: 'bob' })
    await place.ok(['lock', 'release', 'x', '--agent', 'bob'])
    expect((await cy.ended).json).toMatchObject({ holder: 'cy' })
  })
})

describe('after kill -9', () => {
  test('a new daemon serves within 2 s, and knows all that was acknowledged', async () => {
    const place = servingPlace()
    const took: number[] = []
    let daemon = await startDaemon(place)
    for (let round = 0; round < 5; round += 1) {
      await daemon.ok('task.create', { title: `t${round}`, id: `t${round}` })
      await daemon.kill()
      const started = await startedInTime(place)
      daemon = started.daemon
      await daemon.ok('task.get', { id: `t${round}` })
      took.push(started.ms)
    }
    process.stderr.write(`serving again after kill -9: ${took.map(Math.round).join(', ')} ms\n`)
    expect(Math.max(...took)).toBeLessThan(2_000)
  })
})

describe('the sweeper', () => {
  test('frees an expired lock within a second, though nobody asks', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('task.create', { title: 'Work', id: '1' })
    const events = new AbortController()
    const seen = eventTimes(daemon.url, daemon.secret, 'lease.expired', events.signal)
    const { expires_at } = (
      await daemon.ok('task.claim', { id: '1', agent: 'ada', ttl_seconds: 1 })
    ).lease
    const at = await seen
    events.abort()
    expect(at - Date.parse(expires_at as string)).toBeLessThan(1_000)
    const task = await unseen(place, () => place.ok(['task', 'show', '1']))
    expect(task).toMatchObject({ status: 'todo', assignee: null })
  })

  test('returns the lock of a process that died', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const holder = place.start([], { program: ['sleep', '600'] })
    await place.ok(['lock', 'acquire', 'x', '--agent', 'ada', '--pid', String(holder.pid)])
    const events = new AbortController()
    const seen = eventTimes(daemon.url, daemon.secret, 'lease.died', events.signal)
    holder.kill('SIGKILL')
    await holder.ended
    const died = Date.now()
    expect((await seen) - died).toBeLessThan(1_500)
    events.abort()
    expect((await daemon.ok('lock.status', { name: 'x' })).is_locked).toBe(false)
  })
})

/** When the first event of this type was recorded: how soon it is read here is this test's own. */
async function eventTimes(url: string, token: string, type: string, signal: AbortSignal) {
  const headers = { authorization: `Bearer ${token}` }
  const response = await fetch(new URL('/v1/events', url), { headers, signal })
  let text = ''
  const decoder = new TextDecoder()
  for await (const chunk of response.body!) {
    text += decoder.decode(chunk as Uint8Array)
    const [, at] = new RegExp(`^event: ${type}\n[^]*?"at":"([^"]+)"`, 'm').exec(text) ?? []
    if (at !== undefined) return Date.parse(at)
  }
  throw new Error(`the stream ended without ${type}: ${text}`)
}
