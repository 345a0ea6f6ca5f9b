import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

/** R13: claiming, by id and by what is next. */
export function exerciseClaims(begin: Begin): void {
  describe('a claim', () => {
    test('is a lease, in_progress, a run and one event, together', async () => {
      const { verbs, store, machine } = begin()
      await verbs.add('x', ada, { id: 't' })
      const { task, lease, run } = await verbs.claim('t', bob, { ttl_ms: 30_000 })
      expect(task).toMatchObject({
        status: 'in_progress',
        assignee: 'bob',
        assigned_at: new Date(machine.wallMs()).toISOString(),
        attempts: 1,
        version: 2,
        run_id: 't.1',
        lock_fence: lease.fence,
      })
      expect(lease).toMatchObject({ name: 'task:t', holder: 'bob', ttl_ms: 30_000 })
      expect(run).toMatchObject({ id: 't.1', agent: 'bob', fence: lease.fence, status: 'running' })
      const events = await store.events(1, 10)
      expect(events).toMatchObject([
        { type: 'task.claimed', task: 't', lock: 'task:t', data: { fence: lease.fence } },
      ])
      expect(await verbs.ready()).toEqual([])
    })

    test('of one task succeeds for exactly one of many', async () => {
      const { verbs, beside } = begin()
      const writers = [verbs, beside()]
      await verbs.add('x', ada, { id: 't' })
      const asked = Array.from({ length: 40 }, (_, i) => {
        return writers[i % 2]!.claim('t', callerOf(`agent-${i}`))
      })
      const settled = await Promise.allSettled(asked)
      expect(settled.filter((one) => one.status === 'fulfilled')).toHaveLength(1)
      expect(await verbs.runs('t')).toHaveLength(1)
    })

    test('says Task is locked by its holder to everyone else', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.claim('t', ada)
      const no = await expectRefusal(verbs.claim('t', bob), 'held')
      expect(no.message).toMatch(/^Task is locked by ada/)
    })

    test('is refused unless the task is todo with its dependencies done', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 'a' })
      await verbs.add('x', ada, { id: 'b', depends_on: ['a'] })
      const no = await expectRefusal(verbs.claim('b', ada), 'illegal_move')
      expect(no.details['waits_for']).toEqual(['a'])
      await verbs.claim('a', ada)
      await verbs.move('a', 'review', ada)
      await expectRefusal(verbs.claim('a', ada), 'illegal_move')
      await expectRefusal(verbs.claim('b', ada), 'illegal_move')
      await expectRefusal(verbs.claim('nope', ada), 'not_found')
    })

    test('of a task assigned to another is forbidden, but open to nested agents', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't', assigned_to: 'bob' })
      await expectRefusal(verbs.claim('t', ada), 'forbidden')
      await expectRefusal(verbs.move('t', 'in_progress', ada), 'forbidden')
      expect(await verbs.next(ada)).toBeUndefined()
      expect(await verbs.next(callerOf('bob/sub'))).toMatchObject({ task: { id: 't' } })
    })

    test('by its holder again keeps the run, under a new fence', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      const first = await verbs.claim('t', ada)
      const second = await verbs.claim('t', ada)
      expect(second.lease.fence).toBeGreaterThan(first.lease.fence)
      expect(second.run).toMatchObject({ id: 't.1', fence: second.lease.fence })
      expect(second.task.attempts).toBe(1)
      expect(await verbs.runs('t')).toHaveLength(1)
      await expectRefusal(verbs.move('t', 'done', ada, first.lease.fence), 'fence_stale')
    })

    test('whose lock its holder acquires again keeps the run, under the new fence', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.claim('t', ada)
      const { fence } = await verbs.take('task:t', ada)
      expect(await verbs.runs('t')).toMatchObject([{ id: 't.1', fence, status: 'running' }])
    })

    test('that expires gives the task back, closes the run and clears the assignee', async () => {
      const { verbs, machine } = begin()
      await verbs.add('x', ada, { id: 't' })
      const { lease } = await verbs.claim('t', ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      expect(await verbs.task('t')).toMatchObject({
        status: 'todo',
        assignee: null,
        assigned_at: null,
        run_id: null,
        lock_fence: null,
      })
      const again = await verbs.next(bob)
      expect(again).toMatchObject({ task: { id: 't', attempts: 2 }, run: { id: 't.2' } })
      await expectRefusal(verbs.move('t', 'done', ada, lease.fence), 'fence_stale')
      expect(await verbs.runs('t')).toMatchObject([
        { id: 't.1', status: 'lost', outcome: 'expired' },
        { id: 't.2', status: 'running' },
      ])
    })

    test('that is released or force-released gives the task back', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.claim('t', ada)
      await verbs.release('task:t', ada)
      expect(await verbs.task('t')).toMatchObject({ status: 'todo', assignee: null })
      await verbs.claim('t', ada)
      await verbs.forceRelease('task:t', callerOf('root', { admin: true }))
      expect(await verbs.task('t')).toMatchObject({ status: 'todo', assignee: null })
      const statuses = (await verbs.runs('t')).map((run) => run.status)
      expect(statuses).toEqual(['cancelled', 'lost'])
    })
  })

  describe('claiming what is next', () => {
    test('answers nothing when nothing is ready', async () => {
      const { verbs } = begin()
      expect(await verbs.next(ada)).toBeUndefined()
      expect(await verbs.eventTypes()).toEqual([])
    })

    test('takes the highest priority first, and the oldest of those', async () => {
      const { verbs, machine } = begin()
      for (const [id, priority] of [
        ['a', 5],
        ['b', 9],
        ['c', 5],
        ['d', 9],
      ] as const) {
        await verbs.add('x', ada, { id, priority })
        machine.advance(1_000)
      }
      const order: (string | undefined)[] = []
      for (let i = 0; i < 5; i += 1) order.push((await verbs.next(ada))?.task.id)
      expect(order).toEqual(['b', 'd', 'a', 'c', undefined])
    })

    test('lets a task that waited ten minutes go before one step of priority', async () => {
      const { verbs, machine } = begin()
      await verbs.add('x', ada, { id: 'old' })
      machine.advance(600_001)
      await verbs.add('x', ada, { id: 'new', priority: 6 })
      expect(await verbs.ready()).toEqual(['old', 'new'])
    })

    test('keeps to the filter: project, label, least priority', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 'a', priority: 9 })
      await verbs.add('x', ada, { id: 'b', priority: 3, project: 'web', labels: ['ui'] })
      await verbs.add('x', ada, { id: 'c', priority: 4, project: 'web', labels: ['db'] })
      const idOf = async (filter: object) => (await verbs.next(ada, filter))?.task.id
      expect(await idOf({ project: 'web', label: 'ui', priority: 4 })).toBeUndefined()
      expect(await idOf({ project: 'web', label: 'ui' })).toBe('b')
      expect(await idOf({ label: 'ui' })).toBeUndefined()
      expect(await idOf({ priority: 5 })).toBe('a')
      expect(await idOf({ priority: 5 })).toBeUndefined()
      expect(await idOf({ project: 'web' })).toBe('c')
    })

    test('finds tasks assigned to the agent among all others, by rank', async () => {
      const { verbs, machine } = begin()
      await verbs.add('x', ada, { id: 'open' })
      machine.advance(1)
      await verbs.add('x', ada, { id: 'mine', priority: 8, assigned_to: 'ada' })
      machine.advance(1)
      await verbs.add('x', ada, { id: 'web', priority: 9, assigned_to: 'ada', project: 'web' })
      expect(await verbs.next(ada, { project: 'web' })).toMatchObject({ task: { id: 'web' } })
      expect(await verbs.next(bob)).toMatchObject({ task: { id: 'open' } })
      expect(await verbs.next(ada)).toMatchObject({ task: { id: 'mine' } })
    })

    test('passes over a task whose lock is promised to a waiter', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.take('task:t', ada)
      await verbs.wait('task:t', bob, 'T1')
      await verbs.release('task:t', ada)
      expect(await verbs.next(ada)).toBeUndefined()
      await verbs.wait('task:t', bob, 'T1')
    })

    test('gives every one of many tasks to exactly one agent', async () => {
      const { verbs, beside } = begin()
      const writers = [verbs, beside()]
      for (let i = 0; i < 30; i += 1) await verbs.add('x', ada, { id: `t${i}` })
      const asked = Array.from({ length: 40 }, (_, i) => {
        return writers[i % 2]!.next(callerOf(`agent-${i}`))
      })
      const got = (await Promise.all(asked)).flatMap((claim) => claim?.task.id ?? [])
      expect(got).toHaveLength(30)
      expect(new Set(got).size).toBe(30)
    })

    test('takes as many as asked for in one step, or all there are', async () => {
      const { verbs, store } = begin()
      for (let i = 0; i < 5; i += 1) await verbs.add('x', ada, { id: `t${i}`, priority: 9 - i })
      await verbs.take('task:t1', bob)
      const commits: string[][] = []
      store.onCommit((events) => void commits.push(events.map(({ type }) => type)))
      const ids = async () => (await verbs.nextOf(3, ada)).map(({ task }) => task.id)
      expect(await ids()).toEqual(['t0', 't2', 't3'])
      expect(await ids()).toEqual(['t4'])
      expect(await ids()).toEqual([])
      const claimed = (count: number) => Array.from({ length: count }, () => 'task.claimed')
      expect(commits).toEqual([claimed(3), claimed(1)])
      const fences = await Promise.all(
        ['t0', 't2', 't3', 't4'].map(async (id) => (await verbs.lease(`task:${id}`))!.fence),
      )
      expect(fences).toEqual(fences.toSorted((a, b) => a - b))
      expect(new Set(fences).size).toBe(4)
    })

    test('by many agents that take several each gives no task to two', async () => {
      const { verbs, beside } = begin()
      const writers = [verbs, beside()]
      for (let i = 0; i < 30; i += 1) await verbs.add('x', ada, { id: `t${i}` })
      const asked = Array.from({ length: 10 }, (_, i) => {
        return writers[i % 2]!.nextOf(4, callerOf(`agent-${i}`))
      })
      const got = (await Promise.all(asked)).flat().map(({ task }) => task.id)
      expect(got).toHaveLength(30)
      expect(new Set(got).size).toBe(30)
    })

    test('becomes possible when the last dependency is done, and not before', async () => {
      const { verbs } = begin()
      await verbs.add('x', ada, { id: 'a' })
      await verbs.add('x', ada, { id: 'b' })
      await verbs.add('x', ada, { id: 'c', depends_on: ['a', 'b', 'a'], priority: 9 })
      expect(await verbs.ready()).toEqual(['a', 'b'])
      for (const id of ['a', 'b']) {
        await verbs.claim(id, ada)
        expect(await verbs.ready()).not.toContain('c')
        await verbs.move(id, 'done', ada)
      }
      expect(await verbs.ready()).toEqual(['c'])
      await verbs.move('a', 'todo', callerOf('root', { admin: true }))
      expect(await verbs.ready()).toEqual(['a'])
    })
  })
}
