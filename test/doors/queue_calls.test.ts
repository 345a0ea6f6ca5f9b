import { describe, expect, test } from 'vitest'
import { call } from '../../src/operations/call.ts'
import * as locks from '../../src/operations/locks.ts'
import type { Operation } from '../../src/operations/operation.ts'
import * as queue from '../../src/operations/queue.ts'
import { operations } from '../../src/operations/registry.ts'
import * as runs from '../../src/operations/runs.ts'
import * as tasks from '../../src/operations/tasks.ts'
import {
  callerOf,
  expectRefusal,
  MachineSim,
  type Open,
  openFile,
  openSqlite,
  temporaryFolder,
} from '../support/helpers.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const boss = callerOf('boss', { admin: true })
/** As a runner makes one. */
const MARK = '0123456789abcdef0123456789abcdef'
const WEB = { project: 'web', prompt: 'Mend it' }

function begin(open: Open = openSqlite) {
  const machine = new MachineSim()
  const store = open(temporaryFolder(), machine)
  // oxlint-disable-next-line typescript/no-explicit-any -- answers of every operation
  const ask = (operation: unknown, input: object = {}, caller = ada): Promise<any> =>
    call(store, operation as Operation, input as Record<string, unknown>, caller)
  const add = async (user: string, more: object = {}) =>
    (await ask(queue.add, { ...WEB, user, ...more })).task.id as string
  /** A run of `user` whose command, in a group of its own, is at work. */
  const startFor = async (user: string) => {
    const id = await add(user)
    const { run, lease } = await ask(tasks.claim, { id, queued: true, ttl_seconds: 60 })
    const [process, group] = [machine.spawn(), { ...machine.spawnGroup(), mark: MARK }]
    const start = { id: run.id, fence: lease.fence, process, group }
    await ask(runs.start, start, { ...ada, admin: true })
    return { id, run: run.id as string, fence: lease.fence as number, process, group }
  }
  return { machine, store, ask, add, startFor }
}

describe('a task that is enqueued', () => {
  test('is answered with its place, and shown with how it is to be run', async () => {
    const { store, ask } = begin()
    const first = await ask(queue.add, { ...WEB, user: 'alice', time_limit_seconds: 90 })
    expect(Object.keys(first)).toEqual(['task', 'position', 'warnings'])
    expect(first).toMatchObject({
      task: { body: 'Mend it', title: 'Mend it', user: 'alice', project: 'web', status: 'todo' },
      position: 1,
    })
    expect(first.task.queue).toEqual({
      agent_command: null,
      time_limit_seconds: 90,
      retries: 0,
      failed: 0,
      lost: 0,
    })
    expect((await ask(queue.add, { ...WEB, user: 'alice' })).position).toBe(2)
    expect((await ask(queue.add, { ...WEB, user: 'alice', priority: 9 })).position).toBe(1)
    expect((await ask(queue.add, { ...WEB, user: 'bob' })).position).toBe(1)
    expect((await ask(tasks.create, { title: 'Plain' })).queue).toBe(null)
    await store.close()
  })

  test('has the first line of its prompt that says anything as its title', async () => {
    const { store, ask } = begin()
    const titleOf = async (prompt: string) =>
      (await ask(queue.add, { ...WEB, user: 'u', prompt })).task.title as string
    expect(await titleOf('\n \t\r\n  Fix\u0007 \u001b[31mit \r\nnow')).toBe('Fix   [31mit')
    expect(await titleOf(' \n\u0001\n')).toBe('(no text)')
    const long = await titleOf(`${'x'.repeat(198)}🦊🦊 and on`)
    expect(long).toBe(`${'x'.repeat(198)}…`)
    expect(await titleOf('錠'.repeat(500))).toBe(`${'錠'.repeat(199)}…`)
    const begun = performance.now()
    expect(await titleOf(`${'\n'.repeat(2_000_000)}end`)).toBe('end')
    expect(performance.now() - begun).toBeLessThan(1_000)
    await store.close()
  })

  test('leaves no second copy of its prompt behind a request id', async () => {
    const { store, ask } = begin()
    const prompt = 'p'.repeat(1024 * 1024)
    const input = { ...WEB, prompt, user: 'alice', request_id: 'a' }
    const { task } = await ask(queue.add, input)
    const cancel = { id: task.id as string, request_id: 'c' }
    await ask(queue.cancel, cancel)
    await ask(queue.retry, { id: task.id as string, request_id: 'r' })
    expect(await ask(queue.add, input)).toMatchObject({ task: { id: task.id, body: prompt } })
    expect(await ask(queue.cancel, cancel)).toMatchObject({ id: task.id, body: prompt })
    const kept = await store.read((view) => [...view.scan('requests_by_age', '')])
    expect(kept).toHaveLength(3)
    expect(JSON.stringify(kept).length).toBeLessThan(2_000)
    const { items } = await ask(queue.list)
    expect(JSON.stringify(items).length).toBeLessThan(2_000)
    await store.close()
  })
})

test('a list has the beginning of a long prompt, and says what it leaves out', async () => {
  const { store, ask, add } = begin()
  const prompt = 'p'.repeat(2 * 1024 * 1024)
  for (let n = 0; n < 5; n += 1) await add('alice', { prompt, id: `t${n}` })
  const { items } = await ask(tasks.list, {})
  expect(items).toHaveLength(5)
  for (const { body, body_left_out = 0 } of items) {
    expect(body.length).toBeLessThan(5_000)
    expect(body.length + body_left_out).toBe(prompt.length)
  }
  expect((await ask(tasks.get, { id: 't3' })).body === prompt).toBe(true)
  expect((await ask(queue.list)).items).toHaveLength(5)
  await store.close()
})

describe('the status of the queue', () => {
  test('has the fields of the wire, by name', async () => {
    const { store, ask, add, startFor } = begin()
    const { id, fence, group } = await startFor('alice')
    await add('alice', { priority: 8 })
    await add('__proto__')
    const status = await ask(queue.status)
    expect(status.pending).toEqual({
      high: 1,
      normal: 1,
      total: 2,
      by_user: { alice: 1, ['__proto__']: 1 },
    })
    expect(status.active).toEqual({
      slots_used: 0,
      slots_max: 4,
      slots_available: 4,
      by_project: { web: 1 },
      by_user: { alice: 1 },
    })
    expect(status.user_locks).toEqual({
      active: 1,
      details: [
        {
          user: 'alice',
          lock_id: `user:alice#${fence}`,
          task_id: id,
          acquired_at: expect.stringMatching(/Z$/),
          acquired_by_pid: group.pid,
          expires_at: expect.stringMatching(/Z$/),
        },
      ],
    })
    await store.close()
  })

  test('says what is paused', async () => {
    const { store, ask, add } = begin()
    await add('alice')
    await ask(queue.pause, { project: 'web', user: 'alice' }, boss)
    const paused = { paused: false, paused_projects: ['web'], paused_users: ['alice'] }
    expect(await ask(queue.status)).toMatchObject(paused)
    await ask(queue.pause, {}, boss)
    expect(await ask(queue.status)).toMatchObject({ ...paused, paused: true })
    await ask(queue.resume, { project: 'web', user: 'alice' }, boss)
    await ask(queue.resume, {}, boss)
    const none = { paused: false, paused_projects: [], paused_users: [] }
    expect(await ask(queue.status)).toMatchObject(none)
    await store.close()
  })
})

describe('the lock of a busy user', () => {
  test('is shown with the claim that keeps the user busy', async () => {
    const { store, ask, startFor } = begin()
    const { id, fence, group } = await startFor('alice')
    const shown = await ask(locks.lockStatus, { name: 'user:alice' })
    expect(shown).toMatchObject({
      name: 'user:alice',
      is_locked: true,
      lock_holder: 'ada',
      fence,
      lock_id: `user:alice#${fence}`,
      task_id: id,
      pid: group.pid,
      waiters: [],
    })
    const [lock] = (await ask(queue.status)).user_locks.details
    expect([shown.acquired_at, shown.lock_expires_at]).toEqual([lock.acquired_at, lock.expires_at])
    const { items } = await ask(locks.listLocks)
    expect(items).toMatchObject([
      { name: `task:${id}`, fence, holder: 'ada' },
      { name: 'user:alice', fence, holder: 'ada', task_id: id, pid: group.pid },
    ])
    expect(await ask(locks.lockStatus, { name: 'user:bob' })).toMatchObject({
      is_locked: false,
      lock_id: null,
    })
    await store.close()
  })

  test('taken by hand is a lock like any other, and no task is behind it', async () => {
    const { store, ask } = begin()
    await ask(queue.limit, { user: 'alice', max: 2 }, boss)
    const { id } = await ask(tasks.create, { title: 'T', user: 'alice' })
    await ask(tasks.claim, { id }, bob)
    expect(await ask(locks.lockStatus, { name: 'user:alice' })).toMatchObject({ is_locked: false })
    const { fence } = await ask(locks.acquire, { name: 'user:alice' })
    const shown = await ask(locks.lockStatus, { name: 'user:alice' })
    expect(shown).toMatchObject({ is_locked: true, lock_holder: 'ada', fence })
    expect(shown).not.toHaveProperty('task_id')
    const { items } = await ask(locks.listLocks)
    const names = items.map(({ name }: { name: string }) => name)
    expect(names).toEqual([`task:${id}`, 'user:alice'])
    await store.close()
  })

  test('comes in its place whatever the length of the pages', async () => {
    const { machine, store, ask, startFor } = begin()
    // All expire at one instant, then some later: both orders matter.
    for (const user of ['zoë', 'alice', '錠']) await startFor(user)
    await ask(locks.acquire, { names: ['a', 'task:zz', 'tz', 'user', 'v'], ttl_seconds: 60 })
    machine.advance(1_000)
    for (const user of ['carol', 'bob']) await startFor(user)
    const { items: all } = await ask(locks.listLocks)
    const names = (items: { name: string }[]) => items.map(({ name }) => name)
    expect(new Set(names(all)).size).toBe(15)
    for (let limit = 1; limit <= 16; limit += 1) {
      const seen: string[] = []
      for (let after: string | undefined; ;) {
        const page = await ask(locks.listLocks, { limit, ...(after && { after }) })
        seen.push(...names(page.items))
        if (page.next === null) break
        after = page.next
      }
      expect({ limit, seen }).toEqual({ limit, seen: names(all) })
    }
    await store.close()
  })

  test('explains to a waiter who has it, and comes when the run has ended', async () => {
    const { machine, store, ask, startFor } = begin()
    const { run, fence, group, process } = await startFor('alice')
    const got = ask(locks.acquire, { name: 'user:alice', wait_seconds: 60 }, bob)
    await expect
      .poll(async () => (await ask(locks.lockStatus, { name: 'user:alice' })).waiters)
      .toHaveLength(1)
    const { sentence, reasons } = await ask(locks.explainLock, { name: 'user:alice' }, bob)
    expect(sentence).toMatch(/^bob is number 1 of 1 in the line for user:alice; ada holds it until/)
    expect(reasons[0].details).toMatchObject({ holder: 'ada', position: 1 })
    machine.endGroup(group)
    const runner = callerOf('ada', { process })
    await ask(runs.finish, { id: run, fence, exit_code: 0 }, runner)
    expect(await got).toMatchObject({ name: 'user:alice', holder: 'bob' })
    await store.close()
  })

  test('is freed by an admin, which stops the command and cancels the task', async () => {
    const { machine, store, ask, startFor } = begin()
    const { id, group } = await startFor('alice')
    const input = { name: 'user:alice' }
    await expectRefusal(ask(locks.forceReleaseLock, input, bob), 'forbidden')
    const freed = await ask(locks.forceReleaseLock, input, boss)
    expect(freed).toMatchObject({ name: 'user:alice', holder: 'ada', released: true })
    await expect.poll(() => machine.stopped).toEqual([group])
    expect(await ask(tasks.get, { id })).toMatchObject({ status: 'cancelled', lock_until: null })
    await expect
      .poll(async () => (await ask(locks.lockStatus, input)).is_locked as boolean)
      .toBe(false)
    expect((await ask(locks.listLocks)).items).toEqual([])
    await store.close()
  })

  test('is freed by release-user, which cancels what the user is busy with', async () => {
    const { store, ask, add } = begin()
    const id = await add('alice')
    await ask(tasks.claim, { id, queued: true }, bob)
    await expectRefusal(ask(queue.release, { user: 'alice' }, bob), 'forbidden')
    const other = { user: 'alice', task_id: 'another' }
    await expectRefusal(ask(queue.release, other, boss), 'not_found')
    const freed = await ask(queue.release, { user: 'alice', task_id: id }, boss)
    expect(freed).toEqual({ user: 'alice', cancelled: [id], released: true })
    expect(await ask(tasks.get, { id })).toMatchObject({ status: 'cancelled' })
    const name = { name: 'user:alice' }
    expect(await ask(locks.lockStatus, name)).toMatchObject({ is_locked: false })
    await ask(locks.acquire, name)
    const byHand = await ask(queue.release, { user: 'alice' }, boss)
    expect(byHand).toEqual({ user: 'alice', cancelled: [], released: true })
    await store.close()
  })
})

describe('a limit', () => {
  test('is set, told with what is taken of it, and taken away', async () => {
    const { store, ask, startFor } = begin()
    await startFor('alice')
    const none = { project: null, group: null, user: null, weight: null }
    const set = (input: object) => ask(queue.limit, input, boss)
    const web = { ...none, project: 'web', used: 1 }
    expect(await set({ project: 'web', max: 1 })).toEqual({ ...web, max: 1 })
    expect(await set({ project: 'web', max: null })).toEqual({ ...web, max: null })
    expect(await set({ max: 7 })).toEqual({ ...none, max: 7, used: 1 })
    expect(await set({ group: 'g', max: 0 })).toEqual({ ...none, group: 'g', max: 0, used: 0 })
    const alice = { ...none, user: 'alice', used: 1 }
    expect(await set({ user: 'alice', max: 3 })).toEqual({ ...alice, max: 3, weight: 1 })
    expect(await set({ user: 'alice', weight: 2 })).toEqual({ ...alice, max: 3, weight: 2 })
    expect(await set({ user: 'alice', max: null })).toEqual({ ...alice, max: 1, weight: 2 })
    await store.close()
  })

  test('says one thing at a time, and something', async () => {
    const { store, ask } = begin()
    for (const input of [
      {},
      { project: 'web' },
      { user: 'alice' },
      { weight: 2 },
      { project: 'web', weight: 2 },
      { project: 'web', user: 'alice', max: 1 },
      { project: 'web', group: 'g', max: 1 },
    ]) {
      const no = await expectRefusal(ask(queue.limit, input, boss), 'invalid')
      expect(no.actions).toMatchObject([{ operation: 'queue.limit' }])
    }
    await store.close()
  })
})

describe('a file store', () => {
  test('has no queue: it says what has one, and shows an empty one', async () => {
    const { store, ask } = begin(openFile)
    const all = operations.filter(({ needs }) => needs === 'database')
    const needing = all.filter(({ name }) => /^(?:queue|stats)\./.test(name))
    expect(needing.map(({ name }) => name)).toEqual([
      'queue.add',
      'queue.pause',
      'queue.resume',
      'queue.limit',
      'stats.get',
    ])
    for (const operation of needing) {
      const input = operation.name === 'queue.add' ? { ...WEB, user: 'alice' } : {}
      const no = await expectRefusal(ask(operation, input, boss), 'invalid')
      expect(no.message).toContain(operation.name)
      expect(no.next).toContain('LEASEHOLD_STORE')
      expect(operation.refuses).toContain('invalid')
    }
    expect(await ask(queue.list)).toEqual({ items: [], next: null })
    expect(await ask(runs.list)).toEqual({ items: [], next: null })
    expect(await ask(queue.status)).toMatchObject({
      pending: { total: 0 },
      user_locks: { active: 0 },
    })
    expect(await ask(queue.cleanup, {}, boss)).toEqual({ items: [], next: null })
    await store.close()
  })

  test('counts the claims of a user all the same', async () => {
    const { store, ask } = begin(openFile)
    for (const id of ['a', 'b']) await ask(tasks.create, { id, title: id, user: 'alice' })
    await ask(tasks.claim, { id: 'a' })
    await expectRefusal(ask(tasks.claim, { id: 'b' }, bob), 'held')
    expect(await ask(locks.lockStatus, { name: 'user:alice' })).toMatchObject({ task_id: 'a' })
    await store.close()
  })
})
