import { TABLES } from '../../src/core/schema/schema.ts'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { DAY_MS, retentionOf, RETENTION } from '../../src/core/retention.ts'
import { call } from '../../src/operations/call.ts'
import { list } from '../../src/operations/events.ts'
import type { Commit } from '../../src/stores/port.ts'
import { forgetOld } from '../../src/stores/writer/prune.ts'
import { checkSqlite } from '../../src/stores/sqlite/check.ts'
import { SqliteBackend } from '../../src/stores/sqlite/backend.ts'
import { compactSqlite } from '../../src/stores/sqlite/care.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, MachineSim, openSqlite, temporaryFolder, Verbs } from '../support/helpers.ts'
import { KEEP_ALL } from './retention_scene.ts'

const LONG = process.env['FAULTS'] === 'long'
const LOCKS = LONG ? 200_000 : 3_000

/** Notes how many rows and events each commit takes away. */
class Watched extends SqliteBackend {
  readonly removed: number[] = []

  override commit(commit: Commit): 'done' {
    let gone = 0
    for (const table of TABLES) {
      for (const row of commit.changes[table]?.values() ?? []) if (row === null) gone += 1
    }
    if (gone > 0) this.removed.push(gone)
    return super.commit(commit)
  }
}

async function storeWithEvents(locks: number) {
  const dir = temporaryFolder()
  const machine = new MachineSim()
  const store = openSqlite(dir, machine)
  const verbs = new Verbs(store)
  for (let i = 0; i < locks; i += 1) await verbs.acquire([`lock-${i}`], callerOf('a'), {})
  return { path: join(dir, 'leasehold.db'), store, verbs, machine }
}

const forgetEvents = (store: Store, days: number | null, max: number | null) =>
  forgetOld(store, { retention: { ...KEEP_ALL, events: { days, max } } })

describe('pruning events', () => {
  it('keeps the newest, and a chain that still verifies', async () => {
    const { path, store } = await storeWithEvents(20)
    const before = await store.head()
    expect(await forgetEvents(store, null, 5)).toEqual({ events: before.position - 5 })
    expect(checkSqlite(path)).toMatchObject({ ok: true, events: 5 })
    expect((await store.events(0, 100)).map((event) => event.position)).toEqual([
      ...Array.from({ length: 5 }, (_, i) => before.position - 4 + i),
    ])
    await store.close()
  })

  it('is not told twice what is left, page by page from the newest', async () => {
    const { store } = await storeWithEvents(700)
    const { position } = await store.head()
    await forgetEvents(store, null, position - 100)
    const seen: number[] = []
    for (let after: string | undefined; seen.length < position;) {
      const page = await call(store, list, { limit: 1000, after }, callerOf('a'))
      seen.push(...page.items.map((event) => event.position))
      if (page.next === null) break
      after = page.next
    }
    expect(seen).toEqual(Array.from({ length: position - 100 }, (_, i) => position - i))
    await store.close()
  })

  it('forgets by age as well, and goes on recording behind the checkpoint', async () => {
    const { path, store, verbs, machine } = await storeWithEvents(3)
    machine.advance(DAY_MS)
    await verbs.sweep()
    machine.advance(2 * DAY_MS)
    expect((await forgetEvents(store, 1, null)).events).toBeGreaterThan(0)
    expect(checkSqlite(path)).toMatchObject({ ok: true, events: 0 })
    await verbs.acquire(['another'], callerOf('b'), {})
    expect(checkSqlite(path).ok).toBe(true)
    await store.close()
  })

  it('does nothing when there is nothing old', async () => {
    const { store } = await storeWithEvents(3)
    expect(await forgetEvents(store, 1, 1_000)).toEqual({})
    await store.close()
  })

  it('leaves a chain alone that is not the one it looked at', async () => {
    const { path, store } = await storeWithEvents(10)
    await store.write((view) => view.forgetEvents({ position: 5, hash: 'of another store' }))
    expect((await store.events(0, 1))[0]).toMatchObject({ position: 1 })
    expect(checkSqlite(path).ok).toBe(true)
    await store.close()
  })
})

describe('a store with very many lock names', () => {
  it(
    'loses them in small steps; their space is used again, and given back when asked',
    { timeout: LONG ? 600_000 : 30_000 },
    async () => {
      const dir = temporaryFolder()
      const path = join(dir, 'leasehold.db')
      const machine = new MachineSim()
      const backend = new Watched({ path, busy_timeout_ms: 5_000 })
      const store = new Store(backend, machine)
      store.retention = KEEP_ALL
      const verbs = new Verbs(store)
      const ada = callerOf('ada')
      const round = async (n: number) => {
        for (let from = 0; from < LOCKS; from += 500) {
          const names = Array.from({ length: 500 }, (_, i) => `round-${n}-lock-${from + i}`)
          await Promise.all(names.map((name) => verbs.take(name, ada)))
          await Promise.all(names.map((name) => verbs.release(name, ada)))
        }
        machine.advance(40 * DAY_MS)
        backend.removed.length = 0
        const forgotten = await forgetOld(store, { retention: RETENTION })
        expect(forgotten).toMatchObject({ leases: LOCKS })
        // What one commit takes away bounds how long others wait for it.
        expect(Math.max(...backend.removed)).toBeLessThanOrEqual(250)
        return store.counter.sizes()
      }
      const first = await round(1)
      expect(first.rows).toMatchObject({ lease: 0 })
      expect(first.free_bytes).toBeGreaterThan(first.bytes / 2)
      await round(2)
      const third = await round(3)
      expect(third.bytes).toBeLessThan(first.bytes * 1.1)
      compactSqlite(path, 5_000)
      const compact = await store.counter.sizes()
      expect(compact.free_bytes).toBe(0)
      expect(compact.bytes).toBeLessThan(first.bytes / 4)
      expect(checkSqlite(path).ok).toBe(true)
      await store.close()
    },
  )
})

describe('what a configuration says of retention', () => {
  it('has defaults, key by key, and forgets nothing where it cannot be understood', () => {
    expect(retentionOf(undefined)).toEqual(RETENTION)
    expect(retentionOf({ leases: { days: 3 } })).toEqual({
      ...RETENTION,
      leases: { days: 3, max: RETENTION.leases.max },
    })
    for (const wrong of [null, [], 'all', 7]) expect(retentionOf(wrong)).toEqual(KEEP_ALL)
    const general = retentionOf({ days: 5, runs: { days: 9 }, leases: { max: 2 } })
    expect(general).toMatchObject({
      events: { days: 5, max: RETENTION.events.max },
      leases: { days: 5, max: 2 },
      runs: { days: 9 },
      tasks: { days: null, max: null },
    })
    expect(retentionOf({ days: null }).events).toEqual({ ...RETENTION.events, days: null })
    expect(retentionOf({ days: '5' })).toMatchObject({ events: { days: null, max: null } })
    for (const days of ['7', -1, 1.5, 40_000, {}]) {
      const { leases, runs } = retentionOf({ leases: { days } })
      expect(leases).toEqual({ days: null, max: null })
      expect(runs).toEqual(RETENTION.runs)
    }
  })
})
