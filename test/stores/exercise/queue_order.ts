import { describe, expect } from 'vitest'
import { callerOf } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** R19, R21: places in a queue, and what comes next within it. */
export function exerciseQueueOrder(begin: Begin): void {
  const test = queueTests(begin)

  describe('the queue of a user', () => {
    test('gives each task the place in which it came', async ({ verbs, machine }) => {
      expect(await verbs.enqueue({ id: 'a' })).toMatchObject({ position: 1, task: { id: 'a' } })
      machine.advance(10)
      expect(await verbs.enqueue({ id: 'b' })).toMatchObject({ position: 2 })
      expect(await verbs.enqueue({ id: 'x', user: 'ben' })).toMatchObject({ position: 1 })
      expect(await verbs.enqueue({ id: 'y', user: null })).toMatchObject({ position: 1 })
    })

    test('puts a higher priority in front, and counts places from there', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b', 'c']) await verbs.enqueue({ id })
      expect(await verbs.enqueue({ id: 'up', priority: 6 })).toMatchObject({ position: 1 })
      expect(await verbs.enqueue({ id: 'low', priority: 1 })).toMatchObject({ position: 5 })
      expect(await verbs.enqueue({ id: 'd' })).toMatchObject({ position: 5 })
      expect(await verbs.position('low')).toBe(6)
      expect(await scene.order()).toEqual(['up', 'a', 'b', 'c', 'd', 'low'])
      expect(await verbs.position('a')).toBe(0)
    })

    test('is first come, first served even within one batch', async (scene) => {
      const { verbs } = scene
      const ids = ['z', 'm', 'a', 'q', 'b']
      const added = await Promise.all(ids.map((id) => verbs.enqueue({ id })))
      expect(added.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5])
      expect(await scene.order()).toEqual(ids)
    })

    test('tells places from both ends of a long queue', async ({ verbs }) => {
      const ids = Array.from({ length: 40 }, (_, i) => `t${i}`)
      await Promise.all(ids.map((id) => verbs.enqueue({ id })))
      for (const at of [0, 1, 19, 20, 38, 39]) expect(await verbs.position(`t${at}`)).toBe(at + 1)
    })

    test('counts tasks that wait for others, and starts them in time', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      await verbs.enqueue({ id: 'b', depends_on: ['a'] })
      await verbs.enqueue({ id: 'c' })
      expect(await verbs.position('c')).toBe(3)
      await scene.claim('a')
      await verbs.settings({ user_max: null })
      expect(await scene.drain()).toEqual(['c'])
      await scene.end('a')
      expect(await scene.drain()).toEqual(['b'])
    })

    test('has an old task overtake a higher priority in the end', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'old', priority: 5 })
      machine.advance(601_000)
      await verbs.enqueue({ id: 'new', priority: 6 })
      expect(await scene.order()).toEqual(['old', 'new'])
    })
  })

  describe('a group of the queue', () => {
    test('once begun goes on, before what has a higher priority', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'g1', group: 'g', priority: 6 })
      await verbs.enqueue({ id: 'x' })
      await verbs.enqueue({ id: 'g2', group: 'g', priority: 2 })
      await verbs.enqueue({ id: 'g3', group: 'g', priority: 3, project: 'api' })
      await scene.claim('g1')
      await verbs.enqueue({ id: 'urgent', priority: 9 })
      await scene.end('g1')
      expect(await scene.order()).toEqual(['g3', 'g2', 'urgent', 'x'])
    })

    test('goes on right after its first task, with nothing enqueued in between', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'g1', group: 'g', priority: 6 })
      await verbs.enqueue({ id: 'x', priority: 5 })
      await verbs.enqueue({ id: 'g2', group: 'g', priority: 4 })
      expect(await scene.order()).toEqual(['g1', 'g2', 'x'])
    })

    test('of one user is not continued by another user', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', group: 'g' })
      await verbs.enqueue({ id: 'b', user: 'ben' })
      await verbs.enqueue({ id: 'c', user: 'ben', group: 'g' })
      await scene.claim('a')
      expect(await scene.drain()).toEqual(['b'])
    })

    test('that cannot go on lets others of its user through', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'g1', group: 'g', priority: 6 })
      await verbs.enqueue({ id: 'g2', group: 'g', depends_on: ['g1'] })
      await verbs.enqueue({ id: 'x' })
      await scene.claim('g1')
      await scene.end('g1', 1)
      expect(await scene.order()).toEqual(['x'])
    })
  })

  describe('an edit of a task that waits in the queue', () => {
    const editor = { ...callerOf('editor'), admin: true }

    test('of its priority moves it within the queue', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b', 'c']) await verbs.enqueue({ id })
      await verbs.edit('c', 1, { priority: 9 }, editor)
      expect(await verbs.position('c')).toBe(1)
      expect(await verbs.status()).toMatchObject({ pending: { high: 1, normal: 2, total: 3 } })
      await verbs.edit('c', 2, { priority: 0 }, editor)
      expect(await verbs.position('c')).toBe(3)
      expect(await scene.order()).toEqual(['a', 'b', 'c'])
    })

    test('of its user moves it to the other queue', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      expect(await scene.next()).toBeUndefined()
      await verbs.edit('b', 1, { user: 'ben' }, editor)
      await scene.check()
      expect(await verbs.status()).toMatchObject({ pending: { by_user: { ben: 1 } } })
      expect(await scene.next()).toBe('b')
    })

    test('of its project or group takes it off a limit that is full', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 0 })
      await verbs.limit({ group: 'g', max: 0 })
      for (const id of ['a', 'b']) await verbs.enqueue({ id, group: 'g' })
      expect(await scene.next()).toBeUndefined()
      await verbs.edit('b', 1, { project: 'api' }, editor)
      await scene.check()
      expect(await scene.next()).toBeUndefined()
      await verbs.edit('b', 2, { group: null }, editor)
      await scene.check()
      expect(await scene.next()).toBe('b')
    })

    test('of its dependencies takes it out of its lane and back', async (scene) => {
      const { verbs } = scene
      await verbs.add('x', ADMIN, { id: 'first' })
      await verbs.enqueue({ id: 'a' })
      await verbs.edit('a', 1, { depends_on: ['first'] }, editor)
      expect(await scene.next()).toBeUndefined()
      await verbs.edit('a', 2, { depends_on: [] }, editor)
      expect(await scene.next()).toBe('a')
    })

    test('that assigns it keeps it from dispatchers', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      await verbs.edit('a', 1, { assigned_to: 'ada' }, editor)
      expect(await scene.next()).toBeUndefined()
      expect(await verbs.position('a')).toBe(1)
    })
  })
}
