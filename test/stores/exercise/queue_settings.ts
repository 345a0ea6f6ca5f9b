import { describe, expect } from 'vitest'
import { expectRefusal } from '../../support/helpers.ts'
import { ada, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** R20, R21: pauses, and limits and weights that change while things run. */
export function exerciseQueueSettings(begin: Begin): void {
  const test = queueTests(begin)

  describe('a pause of the queue', () => {
    test('as a whole starts nothing more; what runs goes on', async (scene) => {
      const { verbs } = scene
      for (const user of ['ann', 'ben']) await verbs.enqueue({ id: user, user })
      await scene.begun('ann')
      await verbs.pause()
      expect(await scene.next()).toBeUndefined()
      expect(await verbs.nextQueued(ada)).toBeUndefined()
      await scene.end('ann')
      await verbs.resume()
      expect(await scene.next()).toBe('ben')
    })

    test('of a project keeps the others going, and lanes parked on it wake', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'w' })
      await verbs.enqueue({ id: 'v', user: 'ben' })
      await verbs.enqueue({ id: 'p', project: 'api', priority: 2 })
      await verbs.pause({ project: 'web' })
      expect(await scene.drain()).toEqual(['p'])
      await scene.check()
      await scene.end('p')
      await verbs.resume({ project: 'web' })
      await scene.check()
      // Ben has had nothing yet, so he is further behind.
      expect(await scene.drain()).toEqual(['v', 'w'])
    })

    test('of a user keeps the others going', async (scene) => {
      const { verbs } = scene
      for (const user of ['ann', 'ben']) await verbs.enqueue({ id: user, user })
      await verbs.pause({ user: 'ann' })
      expect(await scene.drain()).toEqual(['ben'])
      await verbs.resume({ user: 'ann' })
      expect(await scene.drain()).toEqual(['ann'])
    })

    test('of a user outlasts a lane that was parked meanwhile', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ project: 'web', max: 1 })
      for (const user of ['aaa', 'ann', 'ben']) await verbs.enqueue({ id: user, user })
      expect(await scene.drain()).toEqual(['aaa'])
      await verbs.pause({ user: 'ann' })
      await scene.end('aaa')
      expect(await scene.drain()).toEqual(['ben'])
      await scene.end('ben')
      expect(await scene.drain()).toEqual([])
      await scene.check()
      await verbs.resume({ user: 'ann' })
      expect(await scene.drain()).toEqual(['ann'])
    })

    test('of a project does not keep an agent from ordinary work there', async ({ verbs }) => {
      await verbs.pause({ project: 'web' })
      await verbs.add('x', ada, { id: 'a', project: 'web' })
      await verbs.enqueue({ id: 'b' })
      expect(await verbs.next(ada)).toMatchObject({ task: { id: 'a' } })
      await expectRefusal(verbs.claim('b', ada, { queued: true }), 'held')
    })

    test('is the same for an agent that takes an enqueued task by its id', async ({ verbs }) => {
      await verbs.enqueue({ id: 'b' })
      await verbs.pause({ user: 'ann' })
      await expectRefusal(verbs.claim('b', ada, { queued: true }), 'held')
      await verbs.resume({ user: 'ann' })
      await verbs.pause()
      await expectRefusal(verbs.claim('b', ada, { queued: true }), 'held')
    })
  })

  describe('the settings of two hosts on one store', () => {
    const limits = (...all: [string, number | null][]) => ({ limits: new Map(all) })
    const ann = (said: { weight?: number; max?: number }) => ({ users: new Map([['ann', said]]) })

    test('leave alone what they do not name', async ({ verbs }) => {
      await verbs.register('h1')
      await verbs.register('h2')
      const first = {
        ...limits(['project:web', 2], ['group:g', 3], ['pool', 8]),
        ...ann({ weight: 2, max: 3 }),
        user_max: null,
        lock_timeout_ms: 60_000,
      }
      await verbs.settings(first, 'h1')
      await verbs.settings(limits(['project:api', 1]), 'h2')
      await verbs.settings({}, 'h2')
      await verbs.settings(ann({ weight: 5 }), 'h2')
      expect(await verbs.settingsOwned()).toEqual([
        'groups.g.limit: h1',
        'per_user_serialization.enabled: h1',
        'per_user_serialization.lock_timeout_seconds: h1',
        'pool.limit: h1',
        'projects.web.limit: h1',
        'users.ann.limit: h1',
        'users.ann.weight: h2',
      ])
      const { limits: found, pool } = await verbs.whole()
      expect(found).toMatchObject([
        { group: 'g', max: 3 },
        { project: 'web', max: 2 },
      ])
      expect(pool.max).toBe(8)
      expect(await verbs.share('ann')).toMatchObject({ weight: 5, max: 3 })
    })

    test('hold for tasks that either starts', async (scene) => {
      const { verbs } = scene
      await verbs.register('h1', { projects: ['web'] })
      await verbs.register('h2', { projects: ['web'] })
      await verbs.settings(limits(['project:web', 2]), 'h1')
      await verbs.settings({}, 'h2')
      for (let i = 0; i < 4; i += 1) await verbs.enqueue({ id: `t${i}`, user: `u${i}` })
      expect([...(await scene.drain('h2')), ...(await scene.drain('h1'))]).toEqual(['t0', 't1'])
    })

    test('belong to the one who named them last, and are taken back by it', async ({ verbs }) => {
      const max = async () => (await verbs.whole()).limits.map((each) => each.max)
      await verbs.register('h1')
      await verbs.register('h2')
      await verbs.settings(limits(['project:web', 2]), 'h1')
      await verbs.settings(limits(['project:web', 3]), 'h2')
      await verbs.settings({}, 'h1')
      expect(await max(), 'not its own any more').toEqual([3])
      await verbs.settings({}, 'h2')
      expect(await max()).toEqual([])
      await verbs.settings(limits(['project:web', 3]), 'h2')
      await verbs.limit({ project: 'web', max: 7 })
      await verbs.settings({}, 'h2')
      expect(await max(), 'what a person set').toEqual([7])
    })

    test('outlast a host that has gone, until another names them', async (scene) => {
      const { verbs, machine } = scene
      await verbs.register('h1', { ttl_ms: 1_000 })
      await verbs.register('h2')
      await verbs.settings(limits(['project:web', 2]), 'h1')
      machine.advance(2_000)
      await verbs.settings({}, 'h2')
      expect((await verbs.whole()).limits).toMatchObject([{ project: 'web', max: 2 }])
      await verbs.settings(limits(['project:web', 4], ['pool', 9]), 'h2')
      expect(await verbs.settingsOwned()).toEqual(['pool.limit: h2', 'projects.web.limit: h2'])
      await verbs.settings({}, 'h2')
      expect(await verbs.settingsOwned()).toEqual([])
      expect((await verbs.whole()).limits).toEqual([])
    })

    test('a project stays served while one of three dispatchers serves it', async (scene) => {
      const { verbs, machine } = scene
      await verbs.register('h1', { projects: ['web'], ttl_ms: 1_000 })
      await verbs.register('h2', { projects: ['api'] })
      await verbs.register('h3', { projects: ['web'] })
      await verbs.enqueue({ id: 'w' })
      machine.advance(2_000)
      expect(await scene.drain('h2')).toEqual([])
      expect(await scene.drain('h3')).toEqual(['w'])
    })
  })

  describe('the settings of the queue', () => {
    test('are applied, changed and taken back while things run', async (scene) => {
      const { verbs } = scene
      await verbs.register('d', { slots_max: 20 })
      for (let i = 0; i < 6; i += 1) await verbs.enqueue({ id: `t${i}`, user: `u${i}` })
      await verbs.settings({ limits: new Map([['project:web', 2]]) })
      expect(await scene.drain()).toEqual(['t0', 't1'])
      await verbs.settings({
        limits: new Map([
          ['project:web', null],
          ['pool', 3],
        ]),
      })
      await scene.check()
      expect(await scene.drain()).toEqual(['t2'])
      await verbs.settings({ limits: new Map([['pool', 1]]) })
      await scene.end('t0')
      expect(await scene.drain()).toEqual([])
      await verbs.settings()
      await scene.check()
      expect(await scene.drain()).toEqual(['t3', 't4', 't5'])
    })

    test('switch the limit per user off and on again', async (scene) => {
      const { verbs } = scene
      for (let i = 0; i < 5; i += 1) await verbs.enqueue({ id: `t${i}` })
      expect(await scene.drain()).toEqual(['t0'])
      await verbs.settings({ user_max: null })
      await scene.check()
      expect(await scene.next()).toBe('t1')
      expect(await scene.next()).toBe('t2')
      await scene.check()
      await verbs.settings()
      await scene.check()
      expect(await scene.next()).toBeUndefined()
      for (const id of ['t0', 't1']) {
        await scene.end(id)
        expect(await scene.next()).toBeUndefined()
      }
      await scene.end('t2')
      expect(await scene.drain()).toEqual(['t3'])
    })

    test('give a user a limit of its own, and take it back', async (scene) => {
      const { verbs } = scene
      for (let i = 0; i < 4; i += 1) await verbs.enqueue({ id: `t${i}` })
      await verbs.settings({ users: new Map([['ann', { weight: 2, max: 2 }]]) })
      expect(await scene.drain()).toEqual(['t0', 't1'])
      await scene.check()
      await verbs.settings()
      await scene.check()
      await scene.end('t0')
      expect(await scene.drain()).toEqual([])
      await scene.end('t1')
      expect(await scene.drain()).toEqual(['t2'])
    })

    test('give a user with twice the weight twice the turns', async (scene) => {
      const { verbs, machine } = scene
      await verbs.settings({ users: new Map([['ann', { weight: 2, max: null }]]) })
      for (let i = 0; i < 20; i += 1) {
        for (const user of ['ann', 'ben']) await verbs.enqueue({ id: `${user}${i}`, user })
      }
      const users: string[] = []
      for (let i = 0; i < 12; i += 1) {
        const id = await scene.next()
        machine.advance(10_000)
        await scene.end(id!)
        users.push(id!.slice(0, 3))
      }
      expect(users.filter((user) => user === 'ann')).toHaveLength(8)
    })

    test('change the time limit of runs to come, not of those that run', async (scene) => {
      const { verbs, machine } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await verbs.claim('a', ada, { queued: true, ttl_ms: 100_000 })
      await verbs.settings({ lock_timeout_ms: 5_000 })
      machine.advance(50_000)
      expect(await verbs.task('a')).toMatchObject({ status: 'in_progress' })
      await verbs.move('a', 'done', ada)
      await verbs.claim('b', ada, { queued: true, ttl_ms: 100_000 })
      machine.advance(5_000)
      expect(await verbs.task('b')).toMatchObject({ status: 'todo' })
    })
  })
}
