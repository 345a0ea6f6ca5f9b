import { describe, expect } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { ada, bob, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** R13, R20: agents beside the dispatcher, and the lock of a user in anybody's hand. */
export function exerciseQueueAgents(begin: Begin): void {
  const test = queueTests(begin)

  describe('an agent at the queue', () => {
    test('is not given enqueued tasks unless it asks for them', async ({ verbs }) => {
      await verbs.enqueue({ id: 'a' })
      expect(await verbs.next(ada)).toBeUndefined()
      await expectRefusal(verbs.claim('a', ada), 'forbidden')
      await expectRefusal(verbs.move('a', 'in_progress', ada), 'forbidden')
      expect(await verbs.used()).toEqual({})
    })

    test('does not get past that by taking the lock of the task first', async ({ verbs }) => {
      await verbs.enqueue({ id: 'a' })
      await verbs.take('task:a', ada)
      await expectRefusal(verbs.move('a', 'in_progress', ada), 'forbidden')
    })

    test('that asks for them gets them in fair turns', async ({ verbs }) => {
      for (const id of ['a1', 'a2']) await verbs.enqueue({ id })
      for (const id of ['b1', 'b2']) await verbs.enqueue({ id, user: 'ben' })
      const got: string[] = []
      for (let i = 0; i < 4; i += 1) {
        const claim = await verbs.nextQueued(ada)
        got.push(claim!.task.id)
        await verbs.move(claim!.task.id, 'done', ada)
      }
      expect(got).toEqual(['a1', 'b1', 'a2', 'b2'])
    })

    test('may take one by id, which takes its limits', async ({ verbs }) => {
      await verbs.enqueue({ id: 'a' })
      const { run } = await verbs.claim('a', ada, { queued: true })
      expect(run).toMatchObject({ agent: 'ada', dispatcher: null })
      expect(await verbs.used()).toEqual({ 'user:ann': 1, 'project:web': 1, pool: 1 })
    })

    test('goes on with a task in review without asking for the queue', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      await verbs.claim('a', ada, { queued: true })
      await verbs.move('a', 'review', ada)
      expect(await verbs.move('a', 'in_progress', bob)).toMatchObject({ task: { assignee: 'bob' } })
    })

    test('takes what no dispatcher serves, also when a dispatcher has passed it', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', project: 'ios' })
      expect(await scene.next()).toBeUndefined()
      expect(await verbs.nextQueued(ada)).toMatchObject({ task: { id: 'a' } })
    })

    test('that names a project takes what no dispatcher serves there', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', project: 'ios' })
      expect(await scene.next()).toBeUndefined()
      expect(await verbs.nextQueued(ada, { projects: ['ios'] })).toMatchObject({
        task: { id: 'a' },
      })
    })

    test('that names a project leaves those of others where they are', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', project: 'ios' })
      expect(await verbs.nextQueued(ada, { projects: ['web'] })).toBeUndefined()
      expect(await verbs.nextQueued(ada, { projects: ['ios'] })).toMatchObject({
        task: { id: 'a' },
      })
    })

    test('that waits for the lock of one task does not hold up the others', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id, user: null })
      await verbs.take('x', bob)
      await verbs.wait(['task:a', 'x'], ada, 'ticket')
      expect(await scene.drain()).toEqual(['b'])
    })
  })

  describe('the lock of a user in the queue', () => {
    test('taken by hand counts as one of its tasks while the lease lives', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      await verbs.take('user:ann', ada, { ttl_ms: 10_000 })
      expect(await verbs.used()).toEqual({ 'user:ann': 1 })
      expect(await scene.next()).toBeUndefined()
      const no = await expectRefusal(verbs.claim('a', bob, { queued: true }), 'held')
      expect(no.details).toMatchObject({ name: 'user:ann', holder: 'ada' })
      machine.advance(10_000)
      expect(await scene.next()).toBe('a')
    })

    test('comes back by release and by force-release', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      await verbs.take('user:ann', ada)
      await verbs.release('user:ann', ada)
      await verbs.take('user:ann', ada)
      await verbs.forceRelease('user:ann', ADMIN)
      expect(await verbs.used()).toEqual({})
      expect(await scene.next()).toBe('a')
    })

    test('is counted once, however often its holder asks', async ({ verbs }) => {
      await verbs.take('user:ann', ada)
      await verbs.take('user:ann', ada)
      await verbs.handOff('user:ann', ada, 'bob')
      expect(await verbs.used()).toEqual({ 'user:ann': 1 })
      await verbs.release('user:ann', bob)
      expect(await verbs.used()).toEqual({})
    })

    test('is held while a claim has it, and shows that claim', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      const { lease } = await scene.claim('a')
      const no = await expectRefusal(verbs.take('user:ann', ada), 'held')
      const { holder, fence } = lease
      expect(no.details).toMatchObject({ name: 'user:ann', holder, fence })
      const { user_locks } = await verbs.status()
      const lock_id = `user:ann#${fence}`
      expect(user_locks).toMatchObject({ active: 1, details: [{ user: 'ann', lock_id }] })
    })

    test('can be neither renewed nor released while a claim has it', async (scene) => {
      const { verbs } = scene
      await verbs.take('user:ann', ada)
      const { fence } = (await verbs.lease('user:ann'))!
      await verbs.release('user:ann', ada)
      await verbs.enqueue({ id: 'a' })
      const { lease } = await scene.claim('a')
      const asks = [
        () => verbs.renew('user:ann', ada, fence),
        () => verbs.release('user:ann', ada),
        () => verbs.release('user:ann', callerOf(lease.holder), lease.fence),
      ]
      for (const ask of asks) {
        const { details, message, next } = await expectRefusal(ask(), 'held')
        expect(details).toMatchObject({ name: 'user:ann', holder: lease.holder })
        expect(message).toContain('user:ann is held by')
        expect(next).toContain('the task that keeps this user busy')
      }
    })

    test('is not shown as held where nothing bounds its user', async (scene) => {
      const { verbs } = scene
      await verbs.settings({ user_max: null })
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      await scene.claim('b')
      const status = await verbs.status()
      expect(status.user_locks).toEqual({ active: 0, details: [] })
      expect(status.active.by_user).toEqual({ ann: 2 })
      await verbs.take('user:ann', ada)
      expect((await verbs.status()).user_locks.active).toBe(1)
    })

    test('is free beside a claim where its user may run two', async ({ verbs }) => {
      await verbs.limit({ user: 'ann', max: 2 })
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await verbs.claim('a', ada, { queued: true })
      await verbs.take('user:ann', ada)
      await expectRefusal(verbs.claim('b', bob, { queued: true }), 'held')
    })

    test('is refused to a holder of another one', async ({ verbs }) => {
      await verbs.take('user:ann', ada)
      await expectRefusal(verbs.take('user:ben', ada), 'invalid')
      await expectRefusal(verbs.takeAll(['user:cat', 'user:dan'], bob), 'invalid')
      await verbs.take('user:ben', bob)
    })

    test('is not handed to a holder of another one', async ({ verbs }) => {
      await verbs.take('user:ann', ada)
      await verbs.take('user:ben', bob)
      await expectRefusal(verbs.handOff('user:ann', ada, 'bob'), 'invalid')
    })

    test('goes to whoever waits for it before the tasks of its queue', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      expect(await verbs.wait('user:ann', ada, 'ticket')).toMatchObject({ position: 1 })
      await scene.end('a')
      expect(await scene.next()).toBeUndefined()
      const no = await expectRefusal(verbs.claim('b', bob, { queued: true }), 'held')
      expect(no.details).toMatchObject({ name: 'user:ann' })
      expect(await verbs.turn('ticket')).toMatchObject({ ask: true })
      expect(await verbs.wait('user:ann', ada, 'ticket')).toMatchObject([{ name: 'user:ann' }])
      await verbs.release('user:ann', ada)
      expect(await scene.next()).toBe('b')
    })

    test('is passed over a waiter that does not come when called', async (scene) => {
      const { verbs, machine } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      await verbs.wait('user:ann', ada, 'ticket')
      await scene.end('a')
      machine.advance(2_001)
      expect(await scene.next()).toBe('b')
    })

    test('closes a ring of waiters like any other lock', async ({ verbs }) => {
      await verbs.add('x', ADMIN, { id: 'a', user: 'ann' })
      await verbs.claim('a', ada)
      await verbs.take('x', bob)
      await verbs.wait('x', ada, 'ada-waits')
      await expectRefusal(verbs.wait('user:ann', bob, 'bob-waits'), 'deadlock')
    })

    test('is no way for a stranger to end a claim', async ({ verbs }) => {
      await verbs.add('x', ADMIN, { id: 'a', user: 'ann' })
      await verbs.claim('a', ada)
      await expectRefusal(verbs.release('user:ann', callerOf('eve')), 'held')
      expect(await verbs.used()).toEqual({ 'user:ann': 1 })
    })
  })
}
