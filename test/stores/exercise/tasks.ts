import { describe, expect, test } from 'vitest'
import { getTask, listTask, showTask } from '../../../src/core/tasks/task.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const ADMIN = callerOf('root', { admin: true })

/** R11, R15, R16: what a task says, and who may change it. */
export function exerciseTasks(begin: Begin): void {
  describe('a task', () => {
    test('gets a short number, or the id that its creator gives it', async () => {
      const { verbs } = begin()
      expect(await verbs.add('first', ada)).toMatchObject({ id: '1', status: 'todo', version: 1 })
      await verbs.add('named', ada, { id: '2' })
      expect(await verbs.add('third', ada)).toMatchObject({ id: '3' })
    })

    test('keeps every field as it was given', async () => {
      const { verbs } = begin()
      const fields = {
        body: 'do it\nwell',
        project: 'web',
        user: 'alice',
        priority: 7,
        group: 'g',
        labels: ['x', 'y'],
        depends_on: [],
        assigned_to: 'bob',
        metadata: { ra_mode: 'full', nested: { a: [1, null] } },
      }
      const { id } = await verbs.add('title', ada, fields)
      expect(await verbs.task(id)).toMatchObject({ title: 'title', created_by: 'ada', ...fields })
    })

    test('keeps a body of any length whole, and lists its beginning', async () => {
      const { verbs, store } = begin()
      const apart = () => store.read((view) => view.get('task_text', 't')?.rest.length ?? 0)
      const shown = () => store.read((view) => showTask(view, getTask(view, 't')).body)
      const listed = () => store.read((view) => listTask(view, getTask(view, 't')))
      const long = `${'x'.repeat(4_095)}𝄞${'y'.repeat(100_000)}`
      await verbs.add('x', ada, { id: 't', body: long })
      expect(await shown()).toBe(long)
      // Half of a character is no text: the cut is behind it.
      expect(await listed()).toMatchObject({ body: long.slice(0, 4_097), body_left_out: 100_000 })
      expect(await apart()).toBe(100_000)
      await verbs.edit('t', 1, { title: 'y' }, ada)
      expect(await shown()).toBe(long)
      await verbs.edit('t', 2, { body: 'z'.repeat(4_097) }, ada)
      expect(await shown()).toBe('z'.repeat(4_097))
      expect(await listed()).not.toHaveProperty('body_left_out')
      expect(await apart()).toBe(0)
      await verbs.edit('t', 3, { body: 'z'.repeat(4_098) }, ada)
      expect(await shown()).toBe('z'.repeat(4_098))
      expect(await listed()).toMatchObject({ body_left_out: 2 })
    })

    test('is refused under an id that is taken, with the task that has it', async () => {
      const { verbs } = begin()
      await verbs.add('one', ada, { id: 't' })
      const no = await expectRefusal(verbs.add('two', bob, { id: 't' }), 'conflict')
      expect(no.details['task']).toMatchObject({ title: 'one' })
    })

    test('is refused with a dependency that does not exist, itself included', async () => {
      const { verbs } = begin()
      await expectRefusal(verbs.add('x', ada, { depends_on: ['nope'] }), 'not_found')
      await expectRefusal(verbs.add('x', ada, { id: 'x', depends_on: ['x'] }), 'not_found')
      expect(await verbs.eventTypes()).toEqual([])
    })

    test('is not ready when its lock was taken before it existed', async () => {
      const { verbs } = begin()
      await verbs.take('task:t', ada)
      await verbs.add('x', ada, { id: 't' })
      expect(await verbs.ready()).toEqual([])
      await verbs.release('task:t', ada)
      expect(await verbs.ready()).toEqual(['t'])
    })
  })

  describe('an edit', () => {
    test('states the version it read, and raises it', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      const edited = await verbs.edit('t', 1, { title: 'y', body: 'z' }, bob)
      expect(edited).toMatchObject({ title: 'y', body: 'z', version: 2 })
    })

    test('of an old version is refused with the present task, and nothing is lost', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.edit('t', 1, { title: 'ada was here' }, ada)
      const no = await expectRefusal(verbs.edit('t', 1, { title: 'bob too' }, bob), 'conflict')
      expect(no.message).toBe('task was modified by another agent (version mismatch)')
      expect(no.details).toMatchObject({
        version: 1,
        current_version: 2,
        task: { title: 'ada was here', version: 2 },
      })
      expect(await verbs.task('t')).toMatchObject({ title: 'ada was here' })
    })

    test('is accepted from exactly one of many who read the same version', async () => {
      const { verbs, beside } = begin()
      const writers = [verbs, beside()]
      await verbs.add('x', ada, { id: 't' })
      const edits = Array.from({ length: 20 }, (_, i) => {
        return writers[i % 2]!.edit('t', 1, { title: `by ${i}` }, callerOf(`agent-${i}`))
      })
      const settled = await Promise.allSettled(edits)
      expect(settled.filter((one) => one.status === 'fulfilled')).toHaveLength(1)
      expect(await verbs.task('t')).toMatchObject({ version: 2 })
    })

    test('is for the holder alone while the lock is held', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      const { fence } = await verbs.take('task:t', ada)
      const no = await expectRefusal(verbs.edit('t', 1, { title: 'y' }, bob), 'held')
      expect(no.message).toContain('Task is locked by ada')
      await verbs.edit('t', 1, { title: 'y' }, ada, fence)
    })

    test('of a done task is refused, except to an admin', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.claim('t', ada)
      const { task } = await verbs.move('t', 'done', ada)
      await expectRefusal(verbs.edit('t', task.version, { title: 'y' }, ada), 'illegal_move')
      await verbs.edit('t', task.version, { title: 'y' }, ADMIN)
    })

    test('of the priority moves a task among the ready ones', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 'a' })
      await verbs.add('x', ada, { id: 'b' })
      expect(await verbs.ready()).toEqual(['a', 'b'])
      await verbs.edit('b', 1, { priority: 6 }, ada)
      expect(await verbs.ready()).toEqual(['b', 'a'])
      await verbs.edit('b', 2, { priority: 5 }, ada)
      expect(await verbs.ready()).toEqual(['a', 'b'])
    })

    test('of project, labels or assignment moves a task between lists', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't', project: 'web', labels: ['ui'] })
      await verbs.edit('t', 1, { project: 'api', labels: ['db', 'db'] }, ada)
      expect(await verbs.ready('project:web')).toEqual([])
      expect(await verbs.ready('label:ui')).toEqual([])
      expect(await verbs.ready('project:api')).toEqual(['t'])
      expect(await verbs.ready('label:db')).toEqual(['t'])
      await verbs.edit('t', 2, { assigned_to: 'bob' }, ada)
      expect(await verbs.ready()).toEqual([])
      expect(await verbs.ready('agent:bob')).toEqual(['t'])
    })

    test('of dependencies is counted anew, and may not make a task wait for itself', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 'a' })
      await verbs.add('x', ada, { id: 'b', depends_on: ['a'] })
      await verbs.add('x', ada, { id: 'c', depends_on: ['b'] })
      const no = await expectRefusal(verbs.edit('a', 1, { depends_on: ['c'] }, ada), 'invalid')
      expect(no.details['loop']).toEqual(['a', 'c', 'b', 'a'])
      await expectRefusal(verbs.edit('a', 1, { depends_on: ['a'] }, ada), 'invalid')
      await verbs.edit('c', 1, { depends_on: ['a', 'a'] }, ada)
      expect(await verbs.task('c')).toMatchObject({ unmet: 1 })
      await verbs.edit('b', 1, { depends_on: [] }, ada)
      expect(await verbs.ready()).toEqual(['a', 'b'])
      await verbs.claim('a', ada)
      await verbs.move('a', 'done', ada)
      expect(await verbs.ready()).toEqual(['b', 'c'])
    })
  })

  test('tasks of users and of none are ready in one order, found by every filter', async () => {
    const { verbs } = begin()
    const add = (id: string, user: string | null, more: object) =>
      verbs.add('x', ada, { id, ...(user !== null && { user }), ...more })
    await add('low', 'ann', { priority: 1 })
    await add('own', null, { priority: 4, labels: ['ui'] })
    await add('high', 'ann', { priority: 8, project: 'web' })
    await add('mid', 'ann', { priority: 5, labels: ['ui'] })
    await add('ben', 'ben', { priority: 6, labels: ['ui'] })
    expect(await verbs.ready()).toEqual(['high', 'ben', 'mid', 'own', 'low'])
    expect(await verbs.ready('label:ui')).toEqual(['ben', 'mid', 'own'])
    await verbs.edit('low', 1, { priority: 9 }, ada)
    expect(await verbs.ready()).toEqual(['low', 'high', 'ben', 'mid', 'own'])
    const claimed = await verbs.nextOf(3, bob, { label: 'ui' })
    expect(claimed.map(({ task }) => task.id)).toEqual(['ben', 'mid', 'own'])
    expect(await verbs.ready()).toEqual(['low', 'high'])
    expect(await verbs.nextOf(3, bob)).toEqual([])
    await verbs.move('mid', 'done', bob)
    expect((await verbs.nextOf(3, bob)).map(({ task }) => task.id)).toEqual(['low'])
    await verbs.release('task:low', bob)
    expect(await verbs.ready()).toEqual(['low', 'high'])
  })

  test('done that is said again changes nothing, also by one who holds the lock', async () => {
    const { verbs } = begin()
    await verbs.add('x', ada, { id: 't' })
    await verbs.claim('t', ada)
    await verbs.move('t', 'done', ada)
    const done = await verbs.task('t')
    const { fence } = await verbs.take('task:t', ada)
    await verbs.move('t', 'done', ada, fence)
    expect(await verbs.task('t')).toEqual(done)
  })

  describe('a manual lock on a task', () => {
    test('opens no run and leaves its status alone, but takes it off the ready list', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      const { fence } = await verbs.take('task:t', ada, { ttl_ms: 90_000 })
      expect(await verbs.task('t')).toMatchObject({
        status: 'todo',
        assignee: null,
        lock_fence: fence,
        version: 1,
      })
      expect(await verbs.runs('t')).toEqual([])
      expect(await verbs.ready()).toEqual([])
      await verbs.release('task:t', ada, fence)
      expect(await verbs.ready()).toEqual(['t'])
      expect(await verbs.task('t')).toMatchObject({ version: 1 })
    })

    test('lets only the holder change status, release or edit', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.take('task:t', ada)
      await expectRefusal(verbs.move('t', 'in_progress', bob), 'held')
      await expectRefusal(verbs.move('t', 'done', bob), 'held')
      await expectRefusal(verbs.release('task:t', bob), 'held')
      await expectRefusal(verbs.claim('t', bob), 'held')
      const { lease } = await verbs.move('t', 'in_progress', ada)
      expect(lease).toMatchObject({ holder: 'ada' })
      expect(await verbs.runs('t')).toMatchObject([{ id: 't.1', status: 'running' }])
    })

    test('does not get its holder a task that is assigned to another', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't', assigned_to: 'bob' })
      await verbs.take('task:t', ada)
      await expectRefusal(verbs.move('t', 'in_progress', ada), 'forbidden')
    })
  })
}
