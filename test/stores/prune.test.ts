import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { checkSqlite } from '../../src/stores/sqlite/check.ts'
import { pruneSqlite } from '../../src/stores/sqlite/prune.ts'
import { callerOf, MachineSim, openSqlite, temporaryFolder, Verbs } from '../helpers.ts'

const LONG_AGO = new Date(0)

async function storeWithEvents(locks: number) {
  const dir = temporaryFolder()
  const machine = new MachineSim()
  const store = openSqlite(dir, machine)
  const verbs = new Verbs(store)
  for (let i = 0; i < locks; i += 1) await verbs.acquire([`lock-${i}`], callerOf('a'), {})
  return { path: join(dir, 'leasehold.db'), store, verbs, machine }
}

describe('pruning events', () => {
  it('keeps the newest, and a chain that still verifies', async () => {
    const { path, store } = await storeWithEvents(20)
    const before = await store.head()
    expect(await pruneSqlite(path, { events: 5, since: LONG_AGO }, 1_000)).toBe(before.position - 5)
    expect(checkSqlite(path)).toMatchObject({ ok: true, events: 5 })
    expect((await store.events(0, 100)).map((event) => event.position)).toEqual([
      ...Array.from({ length: 5 }, (_, i) => before.position - 4 + i),
    ])
    await store.close()
  })

  it('forgets by age as well, and goes on recording behind the checkpoint', async () => {
    const { path, store, verbs, machine } = await storeWithEvents(3)
    machine.advance(60_000)
    const since = new Date(machine.wallMs() - 1_000)
    expect(await pruneSqlite(path, { events: 1_000, since }, 1_000)).toBeGreaterThan(0)
    expect(checkSqlite(path)).toMatchObject({ ok: true, events: 0 })
    await verbs.acquire(['another'], callerOf('b'), {})
    expect(checkSqlite(path).ok).toBe(true)
    await store.close()
  })

  it('does nothing when there is nothing old', async () => {
    const { path, store } = await storeWithEvents(3)
    expect(await pruneSqlite(path, { events: 1_000, since: LONG_AGO }, 1_000)).toBe(0)
    await store.close()
  })
})
