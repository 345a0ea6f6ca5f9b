import { expect, onTestFinished, test } from 'vitest'
import { clientOf, daemonOn } from '../support/daemons.ts'
import type { Client } from '../../src/index.ts'
import { isBeingWritten } from '../support/being_written.ts'
import { expectRefusal } from '../support/helpers.ts'
import { sandbox, until } from '../support/processes.ts'

/** With a busy machine in mind. Without one patience for all calls, these took 20 s and more. */
const SOON_MS = 6_000

async function paused() {
  const place = sandbox()
  const daemon = await daemonOn(place)
  const { pid } = daemon.running
  const goOn = () => daemon.running.kill('SIGCONT')
  // Not within a transaction: then all others have to wait for it, whoever they ask.
  const pause = async () => {
    for (await daemon.running.stop(); isBeingWritten(place.state); await daemon.running.stop())
      goOn()
  }
  return { place, daemon, pid, pause, goOn }
}

/** The lease of `a` was renewed until well behind the end that it has now. */
async function outlivesTwice(client: Client, ttl_ms: number): Promise<void> {
  const end = async () => {
    const { lock_expires_at } = await client.lock.status({ name: 'a' })
    return lock_expires_at === null ? expect.unreachable() : Date.parse(lock_expires_at)
  }
  const first = await end()
  await until('the lease is renewed', async () => (await end()) > first + ttl_ms)
}

async function soon<T>(asked: Promise<T>): Promise<T> {
  const since = performance.now()
  const got = await asked
  expect(performance.now() - since).toBeLessThan(SOON_MS)
  return got
}

test('commands go to the store beside a paused daemon, and say so', async () => {
  const { place, pid, pause } = await paused()
  await place.ok(['task', 'add', 'One', '--id', '1'])
  await pause()
  const shown = await soon(place.cli(['task', 'show', '1']))
  expect(shown).toMatchObject({ code: 0, out: expect.stringContaining('One') })
  expect(shown.err).toMatch(`the server (PID: ${pid}) is stopped; the store itself was asked`)
  expect(shown.err).toMatch(`kill -CONT ${pid}`)
  await soon(place.ok(['lock', 'acquire', 'a', '--agent', 'ada']))
  const doctor = await soon(place.cli(['doctor']))
  expect(doctor).toMatchObject({ code: 1 })
  expect(doctor.out).toMatch(new RegExp(`FAIL server .*PID: ${pid}\\) is stopped`))
  const up = await soon(place.refused(['up'], 'unavailable', 75))
  expect(up).toMatchObject({ message: `The server (PID: ${pid}) is stopped` })
})

test('whoever has a token alone is told which process is stopped', async () => {
  const { place, pid, pause } = await paused()
  const { token } = await place.ok(['token', 'create', '--role', 'agent', '--agent', 'ada'])
  await pause()
  const env = { LEASEHOLD_TOKEN: token }
  const refusal = await soon(place.refused(['task', 'list'], 'unavailable', 75, { env }))
  expect(refusal.message).toMatch(`(PID: ${pid}) is stopped`)
  expect(refusal.next).toMatch(`kill -CONT ${pid}`)
})

test('a command under a short TTL outlives a pause of the daemon', async () => {
  const { place, pause, goOn } = await paused()
  const body = 'echo begun; read -r go; exit 7'
  const run = place.start(['run', '--lock', 'a', '--ttl', '3s', '--', 'sh', '-c', body])
  await run.said(/begun/)
  await pause()
  const beside = await clientOf({ dir: place.state, embedded: true })
  await outlivesTwice(beside, 3_000)
  const env = { LEASEHOLD_AGENT: 'bob' }
  await place.refused(['lock', 'acquire', 'a'], 'held', 5, { env })
  goOn()
  run.child.stdin!.end('go\n')
  expect(await run.ended).toMatchObject({ code: 7 })
})

test('work under withLock outlives a pause of the daemon', async () => {
  const { place, pause } = await paused()
  const ada = await clientOf({ dir: place.state, agent: 'ada' })
  const bob = await clientOf({ dir: place.state, agent: 'bob', embedded: true })
  const done = await ada.withLock('a', { ttl_seconds: 3 }, async (signal) => {
    await pause()
    await outlivesTwice(bob, 3_000)
    await expectRefusal(bob.lock.acquire({ names: ['a'] }), 'held')
    expect(signal.aborted).toBe(false)
    return 'done'
  })
  expect(done).toBe('done')
})

test('what was asked of a daemon before it was paused is done once', async () => {
  const { place, daemon, pause, goOn } = await paused()
  await pause()
  // Straight into its socket: the ask waits there until the daemon goes on.
  const { token } = await place.ok(['token', 'create', '--role', 'agent', '--agent', 'ada'])
  const late = fetch(new URL('/v1/lock.acquire', daemon.url), {
    method: 'POST',
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
    body: JSON.stringify({ names: ['a'], request_id: 'once' }),
  })
  const acquire = ['lock', 'acquire', 'a', '--agent', 'ada', '--request-id', 'once']
  const { fence } = await place.ok(acquire)
  goOn()
  expect(await (await late).json()).toMatchObject({ name: 'a', fence })
})

test('a call to a server that says nothing ends, and the next one is answered', async () => {
  const { place, daemon, pause, goOn } = await paused()
  const { token } = await place.ok(['token', 'create', '--role', 'agent', '--agent', 'ada'])
  const ada = await clientOf({ url: daemon.url, token, retry_seconds: 1 })
  await ada.task.list({})
  await pause()
  const refusal = await expectRefusal(soon(ada.task.list({})), 'unavailable')
  expect(refusal.message).toMatch(/has not answered/)
  goOn()
  expect(await ada.task.list({})).toMatchObject({ items: [] })
})

test('a waiter leaves a daemon that is paused, and keeps its place', async () => {
  const { place, pause } = await paused()
  const ada = await clientOf({ dir: place.state, agent: 'ada', embedded: true })
  const { fence } = (await ada.lock.acquire({ names: ['a'] })) as { fence: number }
  const wait = ['lock', 'acquire', 'a', '--wait', '50s', '--agent', 'bob']
  const waiting = place.start(['--json', ...wait], { input: '' })
  onTestFinished(() => waiting.kill('SIGKILL'))
  await until('it waits', async () => (await ada.lock.status({ name: 'a' })).waiters.length)
  await pause()
  await ada.lock.release({ name: 'a', fence })
  const ended = await soon(waiting.ended)
  expect(ended).toMatchObject({ code: 0, err: '' })
  expect(ended.json).toMatchObject({ holder: 'bob' })
})
