import { describe, expect, it } from 'vitest'
import { call } from '../../src/operations/call.ts'
import * as locks from '../../src/operations/locks.ts'
import { ownProcess } from '../../src/stores/process.ts'
import { machine } from '../../src/stores/machine.ts'
import type { Store } from '../../src/stores/store.ts'
import { callerOf, openSqlite, temporaryFolder } from '../helpers.ts'

const isLong = process.env['FAULTS'] === 'long'

interface Served {
  order: string[]
  joined_ms: number
  served_ms: number
}

/** `count` agents of this process wait for one lock that is held; then it goes through the line. */
async function serveLine(store: Store, count: number): Promise<Served> {
  const process = ownProcess()
  const as = (agent: string) => callerOf(agent, { process })
  const take = (agent: string, wait_seconds: number) =>
    call(store, locks.acquire, { name: 'n', wait_seconds }, as(agent)) as Promise<{ fence: number }>
  const { fence } = await take('first', 0)
  const began = performance.now()
  const order: string[] = []
  const waits = Array.from({ length: count }, async (_, i) => {
    const got = await take(`w${i}`, 600)
    order.push(`w${i}`)
    await call(store, locks.release, { name: 'n', fence: got.fence }, as(`w${i}`))
  })
  const places = () => store.read((view) => [...view.scan('line_of', 'n')].length)
  while ((await places()) < count) await new Promise((resolve) => setTimeout(resolve, 50))
  const joined = performance.now()
  await call(store, locks.release, { name: 'n', fence }, as('first'))
  await Promise.all(waits)
  return { order, joined_ms: joined - began, served_ms: performance.now() - joined }
}

const inOrder = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`)

describe('a long line', () => {
  const count = isLong ? 10_000 : Number(process.env['COUNT'] ?? 2_000)

  it(`of ${count} is joined and served in turn on SQLite`, async () => {
    const store = openSqlite(temporaryFolder(), machine)
    const { order, joined_ms } = await serveLine(store, count)
    expect(order).toEqual(inOrder(count))
    expect(joined_ms).toBeLessThan(20_000)
    await store.close()
  }, 300_000)
})
