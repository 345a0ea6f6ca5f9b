import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { type EventMark, type Keep, lastToGo } from '../../src/stores/event_age.ts'
import { checkPostgres, prunePostgres } from '../../src/stores/postgres/care.ts'
import { checkSqlite } from '../../src/stores/sqlite/care.ts'
import { pruneSqlite } from '../../src/stores/sqlite/prune.ts'
import { callerOf, MachineSim, openFile, openSqlite, temporaryFolder, Verbs } from '../helpers.ts'
import { openPostgres, postgresUrl } from '../postgres.ts'

const DAY_MS = 24 * 3600_000
const EVER = Number.POSITIVE_INFINITY

describe('which events are old', () => {
  const marks: EventMark[] = [
    { position: 10, at_ms: 1_000 },
    { position: 20, at_ms: 5_000 },
  ]
  const last = (keep: Keep, now_ms: number) => lastToGo(keep, { position: 25, now_ms }, marks)

  it('is said by marks that are old enough, and by how many there are', () => {
    expect(last({ events: 100, age_ms: 5_000 }, 5_999)).toBe(-75)
    expect(last({ events: 100, age_ms: 5_000 }, 6_000)).toBe(10)
    expect(last({ events: 100, age_ms: 5_000 }, 10_000)).toBe(20)
    expect(last({ events: 3, age_ms: 5_000 }, 10_000)).toBe(22)
  })
})

const sqlite = () => {
  const dir = temporaryFolder()
  const machine = new MachineSim()
  const path = join(dir, 'leasehold.db')
  const prune = (keep: Keep) => pruneSqlite(path, keep, 1_000, machine)
  return { dir, machine, store: openSqlite(dir, machine), prune, check: () => checkSqlite(path) }
}

async function storeWithEvents(locks: number) {
  const made = sqlite()
  const verbs = new Verbs(made.store)
  for (let i = 0; i < locks; i += 1) await verbs.acquire([`lock-${i}`], callerOf('a'), {})
  return { ...made, verbs }
}

describe('pruning events', () => {
  it('keeps the newest, and a chain that still verifies', async () => {
    const { store, prune, check } = await storeWithEvents(20)
    const before = await store.head()
    expect(await prune({ events: 5, age_ms: EVER })).toBe(before.position - 5)
    expect(check()).toMatchObject({ ok: true, events: 5 })
    expect((await store.events(0, 100)).map((event) => event.position)).toEqual([
      ...Array.from({ length: 5 }, (_, i) => before.position - 4 + i),
    ])
    await store.close()
  })

  it('forgets by age as well, and goes on recording behind the checkpoint', async () => {
    const { store, verbs, machine, prune, check } = await storeWithEvents(3)
    const keep = { events: 1_000, age_ms: 30 * DAY_MS }
    expect(await prune(keep), 'seen for the first time').toBe(0)
    machine.advance(20 * DAY_MS)
    await verbs.acquire(['fresh'], callerOf('b'), {})
    expect(await prune(keep)).toBe(0)
    machine.advance(10 * DAY_MS)
    expect(await prune(keep)).toBe(3)
    expect(check().ok).toBe(true)
    expect((await store.events(0, 100)).at(0)).toMatchObject({ position: 4 })
    await verbs.acquire(['another'], callerOf('b'), {})
    expect(check().ok).toBe(true)
    await store.close()
  })

  it('does nothing when there is nothing old', async () => {
    const { store, prune } = await storeWithEvents(3)
    expect(await prune({ events: 1_000, age_ms: EVER })).toBe(0)
    await store.close()
  })

  for (const [how, jump_ms] of [
    ['behind', -400 * DAY_MS],
    ['ahead', 400 * DAY_MS],
  ] as const) {
    it(`forgets no fresh event for a wall clock that was ${how} for a moment`, async () => {
      const { store, verbs, machine, prune } = await storeWithEvents(6)
      machine.jumpWall(jump_ms)
      await verbs.acquire(['odd'], callerOf('b'), {})
      const keep = { events: 1_000, age_ms: 30 * DAY_MS }
      expect(await prune(keep)).toBe(0)
      machine.jumpWall(-jump_ms)
      for (let i = 0; i < 6; i += 1) await verbs.acquire([`late-${i}`], callerOf('b'), {})
      expect(await prune(keep)).toBe(0)
      expect(await store.events(0, 100)).toHaveLength((await store.head()).position)
      await store.close()
    })
  }

  it('goes by marks on PostgreSQL too', async () => {
    const dir = temporaryFolder()
    const store = openPostgres(dir, new MachineSim())
    const verbs = new Verbs(store)
    for (let i = 0; i < 3; i += 1) await verbs.acquire([`lock-${i}`], callerOf('a'), {})
    const where = { url: postgresUrl(dir), folder: dir, busy_timeout_ms: 5_000 }
    expect(await prunePostgres(where, { events: 1_000, age_ms: DAY_MS })).toBe(0)
    await verbs.acquire(['fresh'], callerOf('b'), {})
    const marked = await store.head()
    expect(await prunePostgres(where, { events: 1_000, age_ms: 0 })).toBe(marked.position)
    const { problems, events } = await checkPostgres(where)
    expect(problems.filter((each) => !/fsync/.test(each))).toEqual([])
    expect(events).toBe(0)
    await store.close()
  })

  it('goes by number in a file, whatever the wall clock says', async () => {
    const machine = new MachineSim()
    const store = openFile(temporaryFolder(), machine)
    const verbs = new Verbs(store)
    await verbs.acquire(['a'], callerOf('a'), {})
    machine.jumpWall(-400 * DAY_MS)
    await verbs.acquire(['b'], callerOf('a'), {})
    expect(await store.events(0, 10)).toHaveLength((await store.head()).position)
    await store.close()
  })
})
