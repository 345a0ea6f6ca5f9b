import { createHmac } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { type Json, type Served, servingPlace, startDaemon } from '../doors/serving.ts'
import { postgresUrl } from '../support/postgres.ts'
import { until } from '../support/processes.ts'
import { configure, type Posted, receiver } from './alert_receivers.ts'

const SECRET = 'a secret of the test'

/** What was sent is known to have been: nothing is repeated from here on. */
async function allTold(daemon: Served, count = 2): Promise<void> {
  await until(`${count} alerts are told`, async () => {
    const { items } = await daemon.ok('alert.list')
    return items.length === count && items.every((alert: { told: boolean }) => alert.told)
  })
}

test('an expired lock and a lost agent are told once, signed, also over a restart', async () => {
  const place = servingPlace()
  const hook = await receiver(1)
  configure(place, { webhook: { url: hook.url, secret_env: 'HOOK_SECRET' } })
  const env = { HOOK_SECRET: SECRET }
  const first = await startDaemon(place, { env })
  await first.ok('lock.acquire', { names: ['build'], agent: 'ada', ttl_seconds: 1 })
  await allTold(first)
  // The one that was refused is told behind the other.
  expect(hook.told()).toEqual(['raised lock_expired build', 'raised agent_lost ada'])
  expect(hook.refused()).toBe(1)
  for (const { headers, body, notice } of hook.posted) {
    const time = headers['leasehold-timestamp'] as string
    const sum = createHmac('sha256', SECRET).update(`${time}.${body}`).digest('hex')
    expect(headers['leasehold-signature']).toBe(`v1=${sum}`)
    expect(Math.abs(Date.now() / 1000 - Number(time))).toBeLessThan(60)
    expect(headers['leasehold-id']).toBe(notice.id)
  }
  const rules = async () =>
    (await place.ok(['alert', 'list'])).items.map((a: Posted['notice']) => a.rule)
  expect(await rules()).toEqual(['agent_lost', 'lock_expired'])
  await first.kill()
  // Nobody is there to notice this one; the next daemon does, with its first write.
  await place.ok(['lock', 'acquire', 'late', '--agent', 'cyd', '--ttl', '1s'])
  await until('it is over', async () => !(await place.ok(['lock', 'status', 'late'])).is_locked)
  const second = await startDaemon(place, { env })
  await until('it is told', () => hook.posted.length === 4)
  expect(hook.told().slice(2)).toEqual(['raised agent_lost cyd', 'raised lock_expired late'])
  await second.ok('lock.acquire', { names: ['build'], agent: 'ada', ttl_seconds: 60 })
  await until('both are over', () => hook.posted.length >= 6)
  expect(hook.told().slice(4).toSorted()).toEqual([
    'cleared agent_lost ada',
    'cleared lock_expired build',
  ])
  expect(await rules()).toEqual(['agent_lost', 'lock_expired'])
  expect(new Set(hook.posted.map(({ notice }) => notice.id)).size).toBe(6)
})

test('a long wait and an old queue are told to a command, and when they are over', async () => {
  const place = servingPlace()
  const file = place.path('told.jsonl')
  const script = `process.stdin.pipe(fs.createWriteStream(process.argv[1], { flags: 'a' }))`
  const rules = { wait_seconds: 1, queue_age_seconds: 1 }
  configure(place, { command: [process.execPath, '-e', script, file], rules })
  const daemon = await startDaemon(place)
  const told = () =>
    (existsSync(file) ? readFileSync(file, 'utf8').trim().split('\n') : [])
      .map((line) => JSON.parse(line) as Posted['notice'])
      .map(({ state, rule, subject }) => `${state} ${rule} ${subject}`)
      .toSorted()
  await daemon.ok('lock.acquire', { names: ['$(touch x)'], agent: 'ada' })
  const waiting = daemon.ok('lock.acquire', {
    names: ['$(touch x)'],
    agent: 'bob',
    wait_seconds: 60,
  })
  await daemon.ok('queue.add', { prompt: 'Mend it', project: 'web', user: 'alice' })
  await until('both are told', () => told().length === 2)
  expect(told()).toEqual(['raised long_wait bob for $(touch x)', 'raised queue_age task 1'])
  await daemon.ok('lock.release', { name: '$(touch x)', agent: 'ada' })
  await waiting
  await daemon.ok('queue.cancel', { id: '1' })
  await until('both are over', () => told().length === 4)
  expect(told().slice(0, 2)).toEqual([
    'cleared long_wait bob for $(touch x)',
    'cleared queue_age task 1',
  ])
})

test('a store that cannot be written is told, and when it can be again', async () => {
  const place = servingPlace()
  const hook = await receiver()
  const alerts = { webhook: { url: hook.url }, rules: { store_trouble_seconds: 1 } }
  configure(place, alerts, { busy_timeout_ms: 100 })
  const daemon = await startDaemon(place)
  await daemon.ok('lock.acquire', { names: ['a'], agent: 'ada' })
  const db = openDatabase(join(place.state, 'leasehold.db'), { readOnly: false })
  onTestFinished(() => db.close())
  db.exec('PRAGMA busy_timeout = 5000')
  // Another program holds the write lock and makes no progress.
  db.exec('BEGIN IMMEDIATE')
  expect((await daemon.post('lock.release', { name: 'a', agent: 'ada' })).status).toBe(503)
  await until('it is told', () => hook.posted.length === 1)
  expect(hook.told()).toEqual(['raised store_trouble the store'])
  const shown = { id: hook.posted[0]!.notice.id, rule: 'store_trouble', subject: 'the store' }
  await until('that is known here', async () => (await daemon.ok('alert.list')).items[0]?.told)
  expect((await daemon.ok('alert.list')).items).toEqual([expect.objectContaining(shown)])
  expect((await daemon.ok('now.get')).alerts).toEqual([expect.objectContaining(shown)])
  expect((await place.cli(['status'])).out).toContain(hook.posted[0]!.notice.message)
  db.exec('ROLLBACK')
  await daemon.ok('lock.release', { name: 'a', agent: 'ada' })
  await until('it is over', () => hook.posted.length === 2)
  expect(hook.told()[1]).toBe('cleared store_trouble the store')
  expect((await daemon.ok('alert.list')).items).toEqual([])
})

test('of two daemons on one PostgreSQL store one tells, then the other', async () => {
  const [here, there] = [servingPlace(), servingPlace()]
  const hook = await receiver()
  const env = { LEASEHOLD_STORE: postgresUrl(here.state) }
  for (const place of [here, there]) configure(place, { webhook: { url: hook.url } })
  const [one, other] = [await startDaemon(here, { env }), await startDaemon(there, { env })]
  await other.ok('lock.acquire', { names: ['a'], agent: 'ada', ttl_seconds: 1 })
  await allTold(other)
  await one.kill()
  await other.ok('lock.acquire', { names: ['b'], agent: 'bob', ttl_seconds: 1 })
  await until('the other tells', () => hook.posted.length === 4)
  expect(hook.told().toSorted()).toEqual([
    'raised agent_lost ada',
    'raised agent_lost bob',
    'raised lock_expired a',
    'raised lock_expired b',
  ])
  expect(hook.posted[0]!.headers).not.toHaveProperty('leasehold-signature')
})

/** The role passes on when its lease is over, which takes half a minute; or when it is ended. */
const IS_LONG = process.env['FAULTS'] === 'long'
const ROLE = { name: 'leasehold:alerts' }

test('a daemon that is paused loses the role: all is told once, also what it missed', async () => {
  const [here, there] = [servingPlace(), servingPlace()]
  const hook = await receiver()
  const env = { LEASEHOLD_STORE: postgresUrl(here.state) }
  const alerts = { webhook: { url: hook.url }, rules: { recover_seconds: 600 } }
  for (const place of [here, there]) configure(place, alerts)
  const [one, other] = [await startDaemon(here, { env }), await startDaemon(there, { env })]
  await other.running.said(/standing by: leasehold:alerts/)
  const told = (lock: string) => hook.told().filter((each) => each.endsWith(` ${lock}`))
  /** A lock that expires, asked for at that daemon. */
  const lose = (at: Served, lock: string) => {
    return at.ok('lock.acquire', { names: [lock], agent: `of-${lock}`, ttl_seconds: 1 })
  }
  await lose(other, 'a')
  await allTold(other)
  const first = await other.ok('lock.status', ROLE)
  await one.running.stop()
  // Whoever has the role does not hear of this one, and the other has no role yet.
  await lose(other, 'b')
  await until('its agent is lost', async () => {
    const { items } = await other.ok('event.list', {})
    return items.some(({ type, agent }: Json) => type === 'agent.lost' && agent === 'of-b')
  })
  expect(told('b')).toEqual([])
  if (!IS_LONG) await other.ok('lock.force_release', ROLE)
  await until('the other tells', () => told('b').length > 0, 60_000)
  const second = await other.ok('lock.status', ROLE)
  expect(second.lock_holder).not.toBe(first.lock_holder)
  expect(second.fence).toBeGreaterThan(first.fence)
  one.running.kill('SIGCONT')
  await one.running.said(/standing by: leasehold:alerts/)
  await lose(one, 'c')
  await allTold(one, 6)
  await other.kill()
  await lose(one, 'd')
  await allTold(one, 8)
  for (const lock of ['a', 'b', 'c', 'd'])
    expect(told(lock)).toEqual([`raised lock_expired ${lock}`])
  expect(new Set(hook.posted.map(({ notice }) => notice.id)).size).toBe(8)
  expect((await one.ok('lock.status', ROLE)).lock_holder).toBe(first.lock_holder)
}, 120_000)
