import { describe, expect, onTestFinished, test } from 'vitest'
import { beat } from '../../src/operations/agents.ts'
import { call } from '../../src/operations/call.ts'
import * as locks from '../../src/operations/locks.ts'
import type { Operation } from '../../src/operations/operation.ts'
import * as reservations from '../../src/operations/reservations.ts'
import * as runs from '../../src/operations/runs.ts'
import * as tasks from '../../src/operations/tasks.ts'
import {
  callerOf,
  expectRefusal,
  MachineSim,
  openSqlite,
  temporaryFolder,
} from '../support/helpers.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const PROCESS = { host: 'elsewhere', seat: 'another', pid: 42, start: 1 }
/** As a runner makes one. */
const GROUP = { ...PROCESS, pid: 43, mark: '0123456789abcdef0123456789abcdef' }

function begin() {
  const machine = new MachineSim()
  const store = openSqlite(temporaryFolder(), machine)
  onTestFinished(() => store.close())
  const ask = (
    operation: unknown,
    input: Record<string, unknown>,
    caller = ada,
    // oxlint-disable-next-line typescript/no-explicit-any -- answers of every operation
  ): Promise<any> => call(store, operation as Operation, input, caller)
  return { machine, store, ask }
}

type Ask = ReturnType<typeof begin>['ask']

const X = { name: 'x', ttl_seconds: 60 }

/** Every operation that answers with a lease: how to come to ask it, and what it is asked with. */
const GRANTS: [string, unknown, (ask: Ask) => Promise<Record<string, unknown>>][] = [
  ['lock.acquire', locks.acquire, async () => X],
  [
    'lock.renew',
    locks.renew,
    async (ask) => ({ name: 'x', fence: (await ask(locks.acquire, X)).fence }),
  ],
  [
    'lock.hand_off',
    locks.handOffLock,
    async (ask) => ({ name: 'x', fence: (await ask(locks.acquire, X)).fence, to: 'cy' }),
  ],
  [
    'lock.name_group',
    locks.nameGroupOfLock,
    async (ask) => ({ name: 'x', fence: (await ask(locks.acquire, X)).fence, group: GROUP }),
  ],
  [
    'task.claim',
    tasks.claim,
    async (ask) => ({ id: (await ask(tasks.create, { title: 't' })).id, ttl_seconds: 60 }),
  ],
  [
    'task.claim of the next',
    tasks.claim,
    async (ask) => {
      await ask(tasks.create, { title: 't' })
      return { ttl_seconds: 60 }
    },
  ],
  [
    'task.claim of several',
    tasks.claim,
    async (ask) => {
      for (const title of ['t', 'u', 'v']) await ask(tasks.create, { title })
      return { max: 2, ttl_seconds: 60 }
    },
  ],
  [
    'task.status in_progress',
    tasks.setStatus,
    async (ask) => ({
      id: (await ask(tasks.create, { title: 't' })).id,
      status: 'in_progress',
      ttl_seconds: 60,
    }),
  ],
  ['reserve.add', reservations.add, async () => ({ paths: ['a/**'], ttl_seconds: 60 })],
  [
    'reserve.touch',
    reservations.touch,
    async () => ({ paths: ['a'], mode: 'auto', ttl_seconds: 60 }),
  ],
  [
    'run.start',
    runs.start,
    async (ask) => {
      const { id } = await ask(tasks.create, { title: 't' })
      const { lease, run } = await ask(tasks.claim, { id, ttl_seconds: 60, process: PROCESS })
      return { id: run.id, fence: lease.fence, process: PROCESS, group: GROUP }
    },
  ],
]

describe('a grant that is asked for again under its request id', () => {
  for (const [name, operation, ready] of GRANTS) {
    test(`${name}: is the same while it lives, and lease_expired once it has died`, async () => {
      const { machine, ask } = begin()
      const admin = (operation as Operation).role === 'admin'
      const input = { ...(await ready(ask)), request_id: 'r' }
      const askIt = () => ask(operation, input, { ...ada, admin })
      await askIt()
      machine.advance(10_000)
      const again = await askIt()
      const parts = [...(again.items ?? []), ...(again.reserved ?? []), ...(again.claims ?? [])]
      const leases = [again, again.lease, ...parts, ...parts.map(({ lease }) => lease)]
      for (const lease of leases.filter((each) => each?.lock_id && each.expires_in_seconds)) {
        const left_ms = Date.parse(lease.expires_at) - machine.wallMs()
        expect(lease.expires_in_seconds, 'its present times').toBeCloseTo(left_ms / 1000, 0)
        expect(left_ms).toBeLessThanOrEqual(60_000)
      }
      machine.advance(75_000)
      const refused = await expectRefusal(askIt(), 'lease_expired')
      expect(refused.details['reason']).not.toBe('never held')
    })
  }

  test('task.claim of several: all of them again, then those that are left', async () => {
    const { machine, ask } = begin()
    for (const title of ['a', 'b', 'c']) await ask(tasks.create, { title, body: 'b'.repeat(9_000) })
    const input = { max: 2, ttl_seconds: 60, request_id: 'r' }
    const first = await ask(tasks.claim, input)
    expect(first.claims).toHaveLength(2)
    expect(first).toMatchObject(first.claims[0])
    expect(await ask(tasks.claim, input)).toEqual(first)
    await expectRefusal(ask(tasks.claim, { ...input, max: 3 }), 'invalid')
    const { task, lease } = first.claims[0]
    await ask(tasks.setStatus, { id: task.id, status: 'done', fence: lease.fence })
    const again = await ask(tasks.claim, input)
    expect(again.claims).toEqual([first.claims[1]])
    expect(again).toMatchObject(first.claims[1])
    machine.advance(60_000)
    await expectRefusal(ask(tasks.claim, input), 'lease_expired')
  })

  test('task.status: a move that gave the lock back is an effect, and stays one', async () => {
    const { ask } = begin()
    const { id } = await ask(tasks.create, { title: 't' })
    const { lease } = await ask(tasks.claim, { id })
    const done = { id, status: 'done', fence: lease.fence, request_id: 'd' }
    const first = await ask(tasks.setStatus, done)
    expect(await ask(tasks.setStatus, done)).toEqual(first)
  })

  test('reserve.touch: of what the caller has nothing is written, and no id is taken', async () => {
    const { store, ask } = begin()
    const touch = { paths: ['a'], mode: 'auto' }
    await ask(reservations.touch, { ...touch, request_id: 'r' })
    const before = await store.head()
    for (const paths of [['a'], []])
      await ask(reservations.touch, { ...touch, paths, request_id: 's' })
    expect(await store.head()).toEqual(before)
    await expectRefusal(
      ask(reservations.touch, { ...touch, paths: [], request_id: 'r' }),
      'invalid',
    )
  })

  test('agent.heartbeat: what has died since is not among the leases any more', async () => {
    const { machine, ask } = begin()
    await ask(locks.acquire, X)
    await ask(locks.acquire, { name: 'long', ttl_seconds: 3600 })
    expect((await ask(beat, { request_id: 'b' })).items).toHaveLength(2)
    machine.advance(100_000)
    const { items } = await ask(beat, { request_id: 'b' })
    expect(items.map((lease: { name: string }) => lease.name)).toEqual(['long'])
    expect(items[0].expires_in_seconds).toBe(3500)
  })
})

describe('other input under a request id that is still waiting is invalid', () => {
  test('for a lock: at once, and the one that waits keeps its place', async () => {
    const { store, ask } = begin()
    const { fence } = await ask(locks.acquire, X, bob)
    const wait = { ...X, wait_seconds: 30, request_id: 'w' }
    const waiting = ask(locks.acquire, wait)
    await expect
      .poll(async () => (await ask(locks.lockStatus, { name: 'x' })).waiters)
      .toHaveLength(1)
    await expectRefusal(ask(locks.acquire, { ...wait, name: 'y' }), 'invalid')
    await expectRefusal(ask(locks.acquire, { ...wait, ttl_seconds: 61 }), 'invalid')
    await expectRefusal(ask(locks.acquire, { ...wait, name: 'y', wait_seconds: 0 }), 'invalid')
    expect(await ask(locks.lockStatus, { name: 'y' })).toMatchObject({ is_locked: false })
    await ask(locks.release, { name: 'x', fence }, bob)
    expect(await waiting).toMatchObject({ holder: 'ada', name: 'x' })
    expect((await ask(locks.acquire, wait)).fence).toBe((await waiting).fence)
    expect(await store.read((view) => view.get('ticket', 'ada\nlock.acquire\nw'))).toBeUndefined()
  })

  test('for a task by id, and for the next one', async () => {
    const { ask } = begin()
    const { id } = await ask(tasks.create, { title: 't' })
    const { lease } = await ask(tasks.claim, { id }, bob)
    for (const which of [{ id }, {}]) {
      const wait = { ...which, wait_seconds: 30, request_id: `w${which.id}` }
      const waiting = ask(tasks.claim, wait)
      await expectRefusal(ask(tasks.claim, { ...wait, ttl_seconds: 61 }), 'invalid')
      await expectRefusal(ask(tasks.claim, { ...wait, project: 'p', wait_seconds: 0 }), 'invalid')
      if ('id' in which) await ask(tasks.setStatus, { id, status: 'todo', fence: lease.fence }, bob)
      else await ask(tasks.create, { title: 'another' })
      expect(await waiting).toMatchObject({ lease: { holder: 'ada' } })
    }
  })

  test('a wait that ended without a grant leaves its id free', async () => {
    const { ask } = begin()
    await ask(locks.acquire, X, bob)
    await ask(tasks.create, { title: 't', id: '1' })
    await ask(tasks.claim, { id: '1' }, bob)
    const w = { wait_seconds: 0.05, request_id: 'w' }
    await expectRefusal(ask(locks.acquire, { ...X, ...w }), 'held')
    expect(await ask(locks.acquire, { ...X, name: 'y', ...w })).toMatchObject({ name: 'y' })
    await expectRefusal(ask(tasks.claim, { id: '1', ...w }), 'held')
    expect(await ask(tasks.claim, { project: 'none', ...w })).toMatchObject({ task: null })
    expect(await ask(tasks.claim, { ttl_seconds: 9, ...w })).toMatchObject({ task: null })
  })
})

test('the same input is the same in whatever order its keys come', async () => {
  const { ask } = begin()
  const once = { request_id: 'r1', title: 't' }
  const first = await ask(tasks.create, {
    ...once,
    metadata: { a: 1, b: { c: 2, d: [3, { e: 4, f: 5 }] } },
  })
  const other = { metadata: { b: { d: [3, { f: 5, e: 4 }], c: 2 }, a: 1 } }
  expect(await ask(tasks.create, { ...other, ...once })).toMatchObject({ id: first.id })
  const moved = { metadata: { b: { d: [{ f: 5, e: 4 }, 3], c: 2 }, a: 1 } }
  await expectRefusal(ask(tasks.create, { ...moved, ...once }), 'invalid')
})
