import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { Json } from '../doors/serving.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { type Dispatching, dispatching, HELD, script } from '../support/dispatching.ts'
import { until } from '../support/processes.ts'

/** The cause of this kind, as soon as there is one. */
const caused = (all: Dispatching, kind: string): Promise<Json> =>
  until(`something is stuck by ${kind}`, async () => {
    const { items } = await all.daemon.ok('stuck.get', { limit: 200 })
    return items.find((cause: Json) => cause.kind === kind)
  })

const healthOf = async (all: Dispatching) => (await all.daemon.ok('stuck.get')).health

/** The cause says what `explain` says of the task that it names first. */
async function inWordsOfExplain(all: Dispatching, { why }: Json, id: string): Promise<void> {
  const { sentence } = await all.daemon.ok('task.explain', { id })
  expect(why).toBe(sentence)
}

const AGENTS = { held: script(HELD), missing: { command: ['/nowhere/to/be/found'] } }
const PROJECTS = {
  web: { agent: 'held' },
  infra: { agent: 'held', limit: 1 },
  api: { agent: 'missing' },
}

test('why nothing happens is told by its root, in the words of explain', async () => {
  const all = dispatching({ agents: AGENTS, projects: PROJECTS, busy_timeout_ms: 100 })
  await all.serve()
  const { daemon } = all
  expect(await daemon.ok('stuck.get')).toMatchObject({
    health: { state: 'ok', why: '' },
    items: [],
    more: 0,
  })

  // Paused.
  await daemon.ok('queue.pause')
  await all.add('ada-1', 'ada')
  const paused = await caused(all, 'paused')
  expect(paused).toMatchObject({ severity: 'bad', tasks: 1 })
  expect(paused.about).toEqual([
    { kind: 'user', id: 'ada' },
    { kind: 'task', id: 'ada-1' },
  ])
  expect(paused.what).toBe('The whole queue is paused: 1 task waits')
  await inWordsOfExplain(all, paused, 'ada-1')
  expect(await healthOf(all)).toEqual({ state: 'paused', why: paused.what })
  const [{ operation, input }] = paused.actions
  await daemon.ok(operation, input)
  await all.seen('start', 1)
  expect(await healthOf(all)).toEqual({ state: 'ok', why: '' })

  // The user is busy.
  await all.add('ada-2', 'ada')
  const busy = await caused(all, 'user_busy')
  expect(busy.what).toBe('3 slots are free, but 1 task waits for user ada')
  expect(busy.about).toEqual([
    { kind: 'task', id: 'ada-1' },
    { kind: 'user', id: 'ada' },
    { kind: 'task', id: 'ada-2' },
  ])
  await inWordsOfExplain(all, busy, 'ada-2')
  expect(busy.actions.map((each: Json) => each.operation)).toEqual(['queue.cancel', 'queue.limit'])

  // A limit is full.
  await all.add('ben-1', 'ben', { project: 'infra' })
  await all.seen('start', 2)
  await all.add('cem-1', 'cem', { project: 'infra' })
  const full = await caused(all, 'limit_full')
  expect(full.what).toBe('2 slots are free, but 1 task waits for infra (1 of 1)')
  await inWordsOfExplain(all, full, 'cem-1')

  // No dispatcher serves the project.
  await all.add('dan-1', 'dan', { project: 'elsewhere' })
  const unserved = await caused(all, 'unserved')
  expect(unserved.what).toBe('1 task waits because no dispatcher serves project elsewhere')
  await inWordsOfExplain(all, unserved, 'dan-1')
  expect((await healthOf(all)).state).toBe('degraded')
  const { items: alerts } = await daemon.ok('alert.list')
  expect(alerts).toMatchObject([{ id: unserved.id, rule: 'unserved', message: unserved.what }])
  await daemon.ok('queue.cancel', { id: 'dan-1' })

  // The agent's program is missing.
  await all.add('eve-1', 'eve', { project: 'api' })
  const missing = await caused(all, 'agent_missing')
  expect(missing.what).toMatch(
    /^Task eve-1 could not be started: "could not start: .*\/nowhere\/to/,
  )
  await inWordsOfExplain(all, missing, 'eve-1')
  expect(missing.actions).toEqual([
    { says: 'Retry task eve-1', operation: 'queue.retry', input: { id: 'eve-1' }, admin: false },
  ])

  // The holder is gone, and its lease lasts until its TTL. Another waits.
  await daemon.ok('lock.acquire', { names: ['git:web'], agent: 'docs-writer', ttl_seconds: 6 })
  await daemon.ok('lock.acquire', { names: ['db'], agent: 'docs-writer', ttl_seconds: 600 })
  const waiting = ['git:web', 'db'].map((name, i) =>
    daemon.post('lock.acquire', { names: [name], agent: `w${i}`, wait_seconds: 60 }),
  )
  const silent = await caused(all, 'holder_silent')
  expect(silent.what).toMatch(
    /^docs-writer holds db and git:web, and was not heard of for \d+ s; 2 agents wait, the/,
  )
  expect(silent.why).toMatch(/git:web: docs-writer holds it until 2/)
  await Promise.all([
    daemon.ok('lock.force_release', { name: 'db' }),
    daemon.ok('lock.force_release', { name: 'git:web' }),
    ...waiting,
  ])

  // Somebody was let go to break a deadlock.
  await daemon.ok('lock.acquire', { names: ['x'], agent: 'ann', ttl_seconds: 600 })
  await daemon.ok('lock.acquire', { names: ['y'], agent: 'bob', ttl_seconds: 600 })
  const ask = { names: ['y'], agent: 'ann', wait_seconds: 60 }
  const wait = daemon.post('lock.acquire', ask)
  await until('ann waits', async () => (await daemon.ok('lock.waiters')).items.length > 0)
  const refused = await daemon.post('lock.acquire', { names: ['x'], agent: 'bob', wait_seconds: 9 })
  expect(refused.json.error.code).toBe('deadlock')
  const deadlock = await caused(all, 'deadlock')
  expect(deadlock).toMatchObject({ what: 'bob was let go, to break a deadlock' })
  expect(deadlock.why).toBe(refused.json.error.message)
  await daemon.ok('lock.force_release', { name: 'y' })
  expect((await wait).status).toBe(200)

  // The store cannot be written.
  const db = openDatabase(join(all.place.state, 'leasehold.db'), { readOnly: false })
  onTestFinished(() => db.close())
  db.exec('PRAGMA busy_timeout = 5000')
  db.exec('BEGIN IMMEDIATE')
  expect((await daemon.post('lock.release', { name: 'x', agent: 'ann' })).status).toBe(503)
  const trouble = await caused(all, 'store_trouble')
  expect((await healthOf(all)).why).toBe(trouble.what)
  db.exec('ROLLBACK')
  await daemon.ok('lock.release', { name: 'x', agent: 'ann' })

  // Everything that is stuck, in a terminal.
  const { out } = await all.place.cli(['stuck'])
  expect(out).toContain(full.what)
  expect(out).toContain('Task eve-1 failed: its last run')
  expect((await all.place.cli(['top'])).out).toContain('STUCK')

  // No project is configured any more, then there is no dispatcher.
  all.write('go')
  all.configure({ agents: AGENTS, projects: {} })
  await until('nothing runs', async () => {
    return (await daemon.ok('queue.status')).active.slots_used === 0
  })
  await all.add('fay-1', 'fay')
  const bare = await caused(all, 'no_project')
  expect(bare.what).toMatch(/^\d tasks? waits?, and no project is configured$/)
  await daemon.stop()
  // Without a daemon the command looks at the store itself.
  const { items, health } = await all.place.ok(['stuck'])
  const none = items.find(({ kind }: Json) => kind === 'no_dispatcher')
  expect(health).toEqual({ state: 'degraded', why: none.what })
  expect(none.what).toMatch(/^\d tasks? waits? for a dispatcher, and none is running$/)
  expect(none.next).toBe('Start one: leasehold up')
  expect(none.since).not.toBeNull()
})
