import { describe, expect } from 'vitest'
import { ada, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** R21: no lane stays parked on a limit with room, and none is looked at without. */
export function exerciseQueueLanes(begin: Begin): void {
  const test = queueTests(begin)

  describe('a lane of the queue', () => {
    test('parked on a full project wakes when that has room', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      for (const user of ['ann', 'ben', 'cat']) await verbs.enqueue({ id: user, user })
      await verbs.enqueue({ id: 'x', user: 'cat', project: 'api' })
      expect(await scene.drain()).toEqual(['ann', 'x'])
      await scene.check()
      await scene.end('ann')
      expect(await scene.drain()).toEqual(['ben'])
      await scene.end('x')
      await scene.end('ben')
      expect(await scene.drain()).toEqual(['cat'])
    })

    test('whose user is busy when it wakes leaves the room to another', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      await verbs.enqueue({ id: 'w0', user: 'aaa' })
      await verbs.enqueue({ id: 'w1', user: 'ann' })
      await verbs.enqueue({ id: 'w2', user: 'ben' })
      expect(await scene.drain()).toEqual(['w0'])
      await verbs.take('user:ann', ada)
      await scene.end('w0')
      expect(await scene.drain()).toEqual(['w2'])
      await scene.end('w2')
      await verbs.release('user:ann', ada)
      expect(await scene.drain()).toEqual(['w1'])
    })

    test('that is drained while it is parked leaves nothing behind', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      for (const user of ['ann', 'ben', 'cat']) await verbs.enqueue({ id: user, user })
      expect(await scene.drain()).toEqual(['ann'])
      await verbs.cancel('ben')
      await scene.check()
      await scene.end('ann')
      expect(await scene.drain()).toEqual(['cat'])
    })

    test('that was woken and then drained does not use up the room', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      for (const user of ['ann', 'ben', 'cat']) await verbs.enqueue({ id: user, user })
      expect(await scene.drain()).toEqual(['ann'])
      await verbs.take('user:ben', ada)
      await scene.end('ann')
      await verbs.enqueue({ id: 'x', user: 'ann', project: 'api' })
      await verbs.pause({ user: 'cat' })
      expect(await scene.drain()).toEqual(['x'])
      await verbs.cancel('ben')
      await verbs.resume({ user: 'cat' })
      expect(await scene.drain()).toEqual(['cat'])
    })

    test('that needs two limits waits for both', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      await verbs.limit({ group: 'g', max: 1 })
      await verbs.enqueue({ id: 'w', user: 'ann' })
      await verbs.enqueue({ id: 'g', user: 'ben', project: 'api', group: 'g' })
      await verbs.enqueue({ id: 'both', user: 'cat', group: 'g' })
      expect(await scene.drain()).toEqual(['w', 'g'])
      await scene.end('w')
      expect(await scene.drain()).toEqual([])
      await scene.check()
      await scene.end('g')
      expect(await scene.drain()).toEqual(['both'])
    })

    test('wakes when its limit is raised, and when it is taken away', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      for (const user of ['ann', 'ben', 'cat', 'dan']) await verbs.enqueue({ id: user, user })
      expect(await scene.drain()).toEqual(['ann'])
      await verbs.limit({ project: 'web', max: 2 })
      expect(await scene.drain()).toEqual(['ben'])
      await verbs.limit({ project: 'web', max: null })
      expect(await scene.drain()).toEqual(['cat', 'dan'])
    })

    test('stays parked while its limit is below what runs', async (scene) => {
      const { verbs } = scene
      for (const user of ['ann', 'ben', 'cat']) await verbs.enqueue({ id: user, user })
      await verbs.register('d', { slots_max: 2 })
      expect(await scene.drain()).toEqual(['ann', 'ben'])
      await verbs.limit({ project: 'web', max: 1 })
      await scene.end('ann')
      expect(await scene.drain()).toEqual([])
      await scene.end('ben')
      expect(await scene.drain()).toEqual(['cat'])
    })

    test('of a project that nobody serves wakes when a dispatcher for it comes', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', project: 'ios' })
      await verbs.enqueue({ id: 'b' })
      expect(await scene.drain()).toEqual(['b'])
      await scene.end('b')
      expect(await scene.drain()).toEqual([])
      await verbs.register('mac', { projects: ['ios'] })
      await scene.check()
      expect(await scene.drain('mac')).toEqual(['a'])
    })

    test('of a project whose dispatcher is gone wakes when that is back', async (scene) => {
      const { verbs, machine } = scene
      const process = machine.spawn()
      await verbs.register('mac', { projects: ['ios'], process })
      await verbs.enqueue({ id: 'a', project: 'ios' })
      machine.kill(process)
      machine.advance(1_000)
      expect(await scene.drain()).toEqual([])
      expect(await verbs.explain('a')).toEqual(['unserved'])
      await verbs.register('mac', { projects: ['ios'], process: machine.spawn() })
      expect(await scene.drain('mac')).toEqual(['a'])
    })

    test('that another dispatcher serves is left to it; others of its user go on', async (s) => {
      const { verbs } = s
      await verbs.register('mac', { projects: ['ios'] })
      await verbs.enqueue({ id: 'a', project: 'ios' })
      await verbs.enqueue({ id: 'b' })
      await verbs.enqueue({ id: 'c', user: 'ben' })
      expect(await s.drain()).toEqual(['b', 'c'])
      await s.end('b')
      expect(await s.drain('mac')).toEqual(['a'])
    })

    test('that wakes late is found, though its user was passed over before', async (scene) => {
      const { verbs } = scene
      await verbs.register('mac', { projects: ['ios'] })
      await verbs.limit({ project: 'web', max: 1 })
      await verbs.enqueue({ id: 'first', user: 'aaa' })
      await scene.claim('first')
      await verbs.enqueue({ id: 'kept', user: 'abe' })
      await verbs.enqueue({ id: 'elsewhere', user: 'ann', project: 'ios', priority: 6 })
      await verbs.enqueue({ id: 'late', user: 'ann' })
      expect(await scene.drain()).toEqual([])
      await verbs.take('user:abe', ada)
      await scene.end('first')
      expect(await scene.drain()).toEqual(['late'])
    })

    test('with a high priority is woken before others', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      await verbs.enqueue({ id: 'first', user: 'aaa' })
      await verbs.enqueue({ id: 'normal', user: 'ann' })
      await verbs.enqueue({ id: 'high', user: 'ben', priority: 9 })
      await verbs.cancel('high')
      expect(await scene.drain()).toEqual(['first'])
      await verbs.retry('high')
      expect(await scene.drain()).toEqual([])
      await scene.end('first')
      expect(await scene.drain()).toEqual(['high'])
    })

    test('of a user with many of them takes no more turns than that of one', async (s) => {
      const { verbs } = s
      await verbs.limit({ project: 'web', max: 1 })
      await verbs.enqueue({ id: 'first', user: 'aaa' })
      for (let i = 0; i < 6; i += 1) {
        await verbs.enqueue({ id: `a${i}`, user: 'ann', group: `g${i}` })
        await verbs.enqueue({ id: `b${i}`, user: 'ben' })
      }
      await verbs.pause({ user: 'ann' })
      await verbs.pause({ user: 'ben' })
      expect(await s.drain()).toEqual(['first'])
      await verbs.resume({ user: 'ann' })
      await verbs.resume({ user: 'ben' })
      expect(await s.drain()).toEqual([])
      await s.end('first')
      const users = (await s.order(8)).map((id) => id[0])
      expect(users.filter((user) => user === 'b')).toHaveLength(4)
    })
  })
}
