import { describe, expect, it } from 'vitest'
import { call } from '../../src/operations/call.ts'
import * as tasks from '../../src/operations/tasks.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import {
  callerOf,
  expectRefusal,
  MachineSim,
  openSqlite,
  temporaryFolder,
} from '../support/helpers.ts'

const open = () => openSqlite(temporaryFolder(), new MachineSim())

const claim = (store: Store, agent: string, more: Record<string, unknown> = {}) =>
  call(store, tasks.claim, { wait_seconds: 60, ...more }, callerOf(agent))

const add = (store: Store, title: string, more: Record<string, unknown> = {}) =>
  call(store, tasks.create, { title, ...more }, callerOf('maker'))

const done = (store: Store, id: string, agent: string) =>
  call(store, tasks.setStatus, { id, status: 'done' }, callerOf(agent))

describe('waiting for a task', () => {
  it('gives tasks to waiters in order of arrival, as they become ready', async () => {
    const store = open()
    const order: string[] = []
    const waits = ['a', 'b', 'c'].map(async (agent) => {
      const { task } = await claim(store, agent)
      order.push(`${agent} ${task?.title}`)
    })
    for (const title of ['one', 'two', 'three']) await add(store, title)
    await Promise.all(waits)
    expect(order).toEqual(['a one', 'b two', 'c three'])
    await store.close()
  })

  it('passes over a waiter whose filter does not fit', async () => {
    const store = open()
    const web = claim(store, 'a', { project: 'web' })
    const any = claim(store, 'b')
    await add(store, 'elsewhere')
    expect((await any).task?.title).toBe('elsewhere')
    await add(store, 'here', { project: 'web' })
    expect((await web).task?.title).toBe('here')
    await store.close()
  })

  it('is woken by a dependency that is done, and by a lock that comes free', async () => {
    const store = open()
    await add(store, 'first', { id: '1' })
    await add(store, 'second', { id: '2', depends_on: ['1'] })
    expect((await claim(store, 'a')).task?.id).toBe('1')
    const same = claim(store, 'c', { id: '1' })
    const next = claim(store, 'b')
    await call(store, tasks.setStatus, { id: '1', status: 'todo' }, callerOf('a'))
    expect((await same).task).toMatchObject({ id: '1', assignee: 'c' })
    await done(store, '1', 'c')
    expect((await next).task?.id).toBe('2')
    await store.close()
  })

  it('ends with nothing when time is up, or with the refusal of a task that is held', async () => {
    const store = open()
    expect(await claim(store, 'a', { wait_seconds: 0.02 })).toEqual({
      task: null,
      lease: null,
      run: null,
    })
    await add(store, 'one', { id: '1' })
    await claim(store, 'a', { id: '1' })
    await expectRefusal(claim(store, 'b', { id: '1', wait_seconds: 0.02 }), 'held')
    await store.close()
  })

  it('does not remember an empty answer: the same request id looks again', async () => {
    const store = open()
    const ask = { wait_seconds: 0, request_id: 'r1' }
    expect((await claim(store, 'a', ask)).task).toBeNull()
    await add(store, 'one')
    const got = await claim(store, 'a', ask)
    expect(got.task?.title).toBe('one')
    expect((await claim(store, 'a', ask)).lease?.fence).toBe(got.lease?.fence)
    await store.close()
  })
})
