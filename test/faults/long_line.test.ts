import { describe, expect, test } from 'vitest'
import { call } from '../../src/operations/call.ts'
import * as locks from '../../src/operations/locks.ts'
import { machine } from '../../src/machine/machine.ts'
import { ownProcess } from '../../src/machine/process.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { send, servingPlace, startDaemon } from '../doors/serving.ts'
import { callerOf, openSqlite, temporaryFolder } from '../support/helpers.ts'
import { openPostgres } from '../support/postgres.ts'
import { until } from '../support/processes.ts'

const isLong = process.env['FAULTS'] === 'long'

/** How those who wait reach the lock. */
interface Door {
  take(agent: string, wait_seconds: number): Promise<{ fence: number }>
  release(agent: string, fence: number): Promise<unknown>
  waiting(): Promise<number>
}

/** `count` agents wait for one lock that is held; then it goes from one to the next. */
async function serveLine(door: Door, count: number, at_once = count) {
  const { fence } = await door.take('first', 0)
  const began = performance.now()
  const order: string[] = []
  const wait = async (i: number) => {
    const got = await door.take(`w${i}`, 600)
    order.push(`w${i}`)
    await door.release(`w${i}`, got.fence)
  }
  const waits: Promise<void>[] = []
  while (waits.length < count) {
    const to = Math.min(count, waits.length + at_once)
    while (waits.length < to) waits.push(wait(waits.length))
    await until(`${to} have joined`, async () => (await door.waiting()) === to, 120_000)
  }
  const joined_ms = performance.now() - began
  await door.release('first', fence)
  await Promise.all(waits)
  return { order, joined_ms }
}

function doorTo(store: Store): Door {
  const process = ownProcess()
  const as = (agent: string) => callerOf(agent, { process })
  return {
    take: (agent, wait_seconds) => {
      const ask = { name: 'n', wait_seconds }
      return call(store, locks.acquire, ask, as(agent)) as Promise<{ fence: number }>
    },
    release: (agent, fence) => call(store, locks.release, { name: 'n', fence }, as(agent)),
    waiting: () => store.read((view) => [...view.scan('line_of', 'n')].length),
  }
}

const inOrder = (count: number) => Array.from({ length: count }, (_, i) => `w${i}`)

describe('a long line', () => {
  test.each([
    ['SQLite', openSqlite, isLong ? 10_000 : 2_000],
    ['PostgreSQL', openPostgres, isLong ? 2_000 : 100],
  ] as const)(
    'is joined in time and served in turn on %s',
    async (_, open, count) => {
      const store = open(temporaryFolder(), machine)
      const { order, joined_ms } = await serveLine(doorTo(store), count)
      expect(order).toEqual(inOrder(count))
      expect(joined_ms).toBeLessThan(20_000)
      await store.close()
    },
    300_000,
  )

  test('is joined in time and served, each once, through one daemon', async () => {
    const count = isLong ? 10_000 : 200
    const daemon = await startDaemon(servingPlace())
    const { order } = await serveLine(
      {
        take: (agent, wait_seconds) =>
          daemon.ok('lock.acquire', { name: 'n', wait_seconds, agent }),
        release: (agent, fence) => daemon.ok('lock.release', { name: 'n', fence, agent }),
        waiting: async () => {
          const { text } = await send(daemon.url, '/metrics', { token: daemon.secret })
          return Number(/^leasehold_lock_waiters (\d+)$/m.exec(text)?.[1] ?? 0)
        },
      },
      count,
      // Connections of strangers are few at a time; each is one until its token was read.
      500,
    )
    expect(order.toSorted()).toEqual(inOrder(count).toSorted())
    await daemon.stop()
  }, 600_000)

  test('of many who wait for a hundred locks each and hold one keeps nobody waiting', async () => {
    const store = openSqlite(temporaryFolder(), machine)
    const process = ownProcess()
    const names = Array.from({ length: 100 }, (_, i) => `n${i}`)
    await call(store, locks.acquire, { names }, callerOf('first', { process }))
    const stop = new AbortController()
    const waits = Array.from({ length: isLong ? 400 : 100 }, async (_, i) => {
      const caller = callerOf(`w${i}`, { process })
      await call(store, locks.acquire, { name: `own${i}` }, caller)
      await call(store, locks.acquire, { names, wait_seconds: 600 }, caller, stop.signal)
    })
    const waiting = () => store.read((view) => [...view.scan('tickets', '')].length)
    let worst_ms = 0
    while ((await waiting()) < waits.length) {
      const asked = performance.now()
      await call(store, locks.acquire, { name: 'other' }, callerOf('bystander'))
      worst_ms = Math.max(worst_ms, performance.now() - asked)
    }
    expect(worst_ms).toBeLessThan(5_000)
    stop.abort()
    await Promise.allSettled(waits)
    await store.close()
  }, 60_000)
})
