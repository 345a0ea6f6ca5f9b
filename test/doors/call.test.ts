import { describe, expect, test } from 'vitest'
import type { Operation } from '../../src/operations/operation.ts'
import { call } from '../../src/operations/call.ts'
import { acquire, handOffLock, lockStatus, release, renew } from '../../src/operations/locks.ts'
import * as tasks from '../../src/operations/tasks.ts'
import { plant } from '../../src/core/planted.ts'
import {
  callerOf,
  expectRefusal,
  MachineSim,
  openSqlite,
  temporaryFolder,
} from '../support/helpers.ts'

const DAY_MS = 24 * 3_600_000
const ada = callerOf('ada')
const bob = callerOf('bob')

function begin() {
  const machine = new MachineSim()
  const store = openSqlite(temporaryFolder(), machine)
  const ask = (
    operation: unknown,
    input: Record<string, unknown>,
    caller = ada,
    signal?: AbortSignal,
    // oxlint-disable-next-line typescript/no-explicit-any -- answers of every operation
  ): Promise<any> => call(store, operation as Operation, input, caller, signal)
  return { machine, store, ask }
}

const X = { names: ['x'], ttl_seconds: 60 }
const r = (request_id: string) => ({ request_id })

describe('a request id has one effect, and gets the same reply', () => {
  test('a lease that is asked for again is the same lease, with its present times', async () => {
    const { machine, store, ask } = begin()
    const first = await ask(acquire, { ...X, ...r('1') })
    machine.advance(20_000)
    await ask(renew, { name: 'x', fence: first.fence, ttl_seconds: 300 })
    const again = await ask(acquire, { ...X, ...r('1') })
    expect(again).toMatchObject({ fence: first.fence, lock_id: first.lock_id })
    expect(again.expires_in_seconds).toBe(300)
    expect(Date.parse(again.expires_at)).toBe(machine.wallMs() + 300_000)
    await store.close()
  })

  test('a claim that is asked for again opens no second run', async () => {
    const { store, ask } = begin()
    await ask(tasks.create, { title: 'one' })
    await ask(tasks.create, { title: 'two' })
    const first = await ask(tasks.claim, r('1'))
    const again = await ask(tasks.claim, r('1'))
    expect(again).toMatchObject({ task: { id: first.task.id }, run: first.run })
    expect(again.lease.fence).toBe(first.lease.fence)
    const { items } = await ask(tasks.list, { status: 'in_progress' })
    expect(items).toHaveLength(1)
    await store.close()
  })

  test('release, hand-off and status are done once, however often they are asked for', async () => {
    const { store, ask } = begin()
    const { fence } = await ask(acquire, X)
    const handed = await ask(handOffLock, { name: 'x', fence, to: 'bob', ...r('h') })
    expect((await ask(handOffLock, { name: 'x', fence, to: 'bob', ...r('h') })).fence).toBe(
      handed.fence,
    )
    const freed = await ask(release, { name: 'x', ...r('f') }, bob)
    expect(await ask(release, { name: 'x', ...r('f') }, bob)).toEqual(freed)
    await expectRefusal(ask(release, { name: 'x', ...r('g') }, bob), 'lease_expired')
    await store.close()
  })

  test('several at once in one batch have one effect', async () => {
    const { store, ask } = begin()
    const asked = Array.from({ length: 8 }, () => ask(tasks.create, { title: 'once', ...r('1') }))
    const ids = (await Promise.all(asked)).map(({ id }) => id)
    expect(new Set(ids).size).toBe(1)
    expect((await ask(tasks.list, {})).items).toHaveLength(1)
    await store.close()
  })

  test('it belongs to one caller and one operation', async () => {
    const { store, ask } = begin()
    const mine = await ask(tasks.create, { title: 'same', ...r('1') })
    const theirs = await ask(tasks.create, { title: 'same', ...r('1') }, bob)
    expect(theirs.id).not.toBe(mine.id)
    expect(await ask(acquire, { ...X, ...r('1') })).toMatchObject({ name: 'x' })
    await store.close()
  })
})

describe('what a request id does not cover', () => {
  test('other input under the same id is invalid', async () => {
    const { store, ask } = begin()
    await ask(acquire, { ...X, ...r('1') })
    await expectRefusal(ask(acquire, { ...X, names: ['y'], ...r('1') }), 'invalid')
    await expectRefusal(ask(acquire, { ...X, ttl_seconds: 61, ...r('1') }), 'invalid')
    expect(await ask(lockStatus, { name: 'y' })).toMatchObject({ is_locked: false })
    await store.close()
  })

  test('a grant that has died since is lease_expired, and never granted anew', async () => {
    const { machine, store, ask } = begin()
    const { fence } = await ask(acquire, { ...X, ...r('1') })
    machine.advance(60_000)
    await expectRefusal(ask(acquire, { ...X, ...r('1') }), 'lease_expired')
    const taken = await ask(acquire, X, bob)
    await expectRefusal(ask(acquire, { ...X, ...r('1') }), 'lease_expired')
    expect(taken.fence).toBeGreaterThan(fence)
    expect((await ask(lockStatus, { name: 'x' })).lock_holder).toBe('bob')
    await store.close()
  })

  test('refusals are not remembered: the same id may succeed later', async () => {
    const { store, ask } = begin()
    const { fence } = await ask(acquire, X, bob)
    await expectRefusal(ask(acquire, { ...X, ...r('1') }), 'held')
    await ask(release, { name: 'x', fence }, bob)
    expect(await ask(acquire, { ...X, ...r('1') })).toMatchObject({ holder: 'ada' })
    await store.close()
  })

  test('it is remembered for a day, and forgotten after that', async () => {
    const { machine, store, ask } = begin()
    const first = await ask(tasks.create, { title: 'once', ...r('1') })
    machine.advance(DAY_MS - 1)
    expect((await ask(tasks.create, { title: 'once', ...r('1') })).id).toBe(first.id)
    machine.advance(2_000)
    await ask(acquire, X)
    const anew = await ask(tasks.create, { title: 'once', ...r('1') })
    expect(anew.id).not.toBe(first.id)
    await store.close()
  })
})

describe('a wait that is asked for again', () => {
  test('rejoins its ticket in the place it had', async () => {
    const { machine, store, ask } = begin()
    const { fence } = await ask(acquire, X, bob)
    const wait = { ...X, wait_seconds: 30 }
    const lost = new AbortController()
    const first = ask(acquire, { ...wait, ...r('1') })
    await joined('ada')
    machine.advance(1)
    const other = ask(acquire, wait, callerOf('cy'), lost.signal)
    await joined('ada', 'cy')
    const again = ask(acquire, { ...wait, ...r('1') })
    await joined('ada', 'cy')
    await ask(release, { name: 'x', fence }, bob)
    const [one, two] = await Promise.all([first, again])
    expect(one).toMatchObject({ holder: 'ada' })
    expect(two.fence).toBe(one.fence)
    lost.abort()
    await expectRefusal(other, 'held')
    await store.close()

    async function joined(...agents: string[]): Promise<void> {
      await expect
        .poll(async () => {
          const { waiters } = await ask(lockStatus, { name: 'x' })
          return waiters.map(({ agent }: { agent: string }) => agent)
        })
        .toEqual(agents)
    }
  })

  test('a longer or shorter patience is the same request', async () => {
    const { store, ask } = begin()
    const first = await ask(acquire, { ...X, wait_seconds: 5, ...r('1') })
    expect(await ask(acquire, { ...X, wait_seconds: 9, ...r('1') })).toMatchObject({
      fence: first.fence,
    })
    await store.close()
  })
})

describe('the check for one effect', () => {
  test('fails when request ids are ignored (planted S7)', async () => {
    const { store, ask } = begin()
    plant('S7')
    try {
      const first = await ask(tasks.create, { title: 'once', ...r('1') })
      expect((await ask(tasks.create, { title: 'once', ...r('1') })).id).not.toBe(first.id)
    } finally {
      plant(undefined)
      await store.close()
    }
  })
})
