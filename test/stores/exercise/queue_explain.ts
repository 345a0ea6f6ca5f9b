import { describe, expect } from 'vitest'
import { enterRepository } from '../../../src/core/queue/worktree.ts'
import { lookStuck } from '../../../src/core/reasons/stuck.ts'
import { explainTask } from '../../../src/core/reasons/explain.ts'
import { callerOf } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { ada, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** R17: for every reason that a task may have for not running, the one that is true. */
export function exerciseQueueExplain(begin: Begin): void {
  const test = queueTests(begin)

  describe('explain in the queue', () => {
    test('says that a task runs, and that it is over', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      await scene.claim('a')
      expect(await verbs.explain('a')).toEqual(['running'])
      await scene.end('a')
      expect(await verbs.explain('a')).toEqual(['ended'])
    })

    test('says what a run waits for before it begins, and so does what is stuck', async (scene) => {
      const { machine, verbs, store, process } = scene
      await verbs.enqueue({ id: 'a' })
      const { run } = await scene.claim('a')
      const said = async () => (await store.read((view) => explainTask(view, 'a', 'ada'))).sentence
      const stuck = async () => {
        const causes = await store.read((view) => lookStuck(view, ada, []))
        return causes.map(({ kind }) => kind)
      }
      expect(await said()).toMatch(/its command has not begun\.$/)
      machine.advance(58_000)
      const keeper = { ...callerOf('keeper:1'), process }
      const asked = { repository: '/repo/.git', ttl_ms: 120_000, process, group: process }
      await store.write((view) => enterRepository(view, asked, keeper))
      expect(await said()).toMatch(/not begun: keeper:1 is at work in \/repo\/\.git since 2/)
      expect(await stuck()).toEqual([])
      await verbs.renew('task:a', callerOf(run.agent), run.fence)
      machine.advance(2_000)
      expect(await stuck()).toEqual(['unbegun'])
      const group = machine.spawnGroup()
      await verbs.startRun(run, { process, group })
      expect(await said()).not.toMatch(/begun/)
      expect(await stuck()).toEqual([])
    })

    test('says ready for what is next, and order for what is not', async ({ verbs }) => {
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      expect(await verbs.explain('a')).toEqual(['ready'])
      expect(await verbs.explain('b')).toEqual(['order'])
    })

    test('names a dependency that is not done', async ({ verbs }) => {
      await verbs.add('x', ADMIN, { id: 'first' })
      await verbs.enqueue({ id: 'a', depends_on: ['first'] })
      expect(await verbs.explain('a')).toEqual(['dependency'])
    })

    test('says that the lock of the task is held, or promised', async ({ verbs }) => {
      await verbs.enqueue({ id: 'a' })
      await verbs.take('task:a', ada)
      expect(await verbs.explain('a')).toEqual(['locked'])
      await verbs.wait('task:a', callerOf('bob'), 'ticket')
      await verbs.release('task:a', ada)
      expect(await verbs.explain('a')).toEqual(['promised'])
    })

    test('says that it is assigned to another', async ({ verbs }) => {
      await verbs.enqueue({ id: 'a' })
      await verbs.edit('a', 1, { assigned_to: 'ada' }, ADMIN)
      expect(await verbs.explain('a')).toContain('assigned')
    })

    for (const [what, ask] of [
      ['the whole queue', {}],
      ['its project', { project: 'web' }],
      ['its user', { user: 'ann' }],
    ] as const) {
      test(`says that ${what} is paused`, async (scene) => {
        const { verbs } = scene
        await verbs.enqueue({ id: 'a' })
        await verbs.pause(ask)
        expect(await verbs.explain('a')).toEqual(['paused'])
        expect(await scene.next()).toBeUndefined()
        expect(await verbs.explain('a')).toEqual(['paused'])
        await verbs.resume(ask)
        expect(await verbs.explain('a')).toEqual(['ready'])
      })
    }

    test('says that its user is busy, with a task or by hand', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      expect(await verbs.explain('b')).toEqual(['user_busy'])
      await scene.end('a')
      await verbs.take('user:ann', ada)
      expect(await verbs.explain('b')).toEqual(['user_busy'])
    })

    test('says that the lock of its user is promised to a waiter', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      await verbs.wait('user:ann', ada, 'ticket')
      await scene.end('a')
      expect(await verbs.explain('b')).toEqual(['user_busy'])
    })

    for (const [code, ask] of [
      ['project_limit', { project: 'web' }],
      ['group_limit', { group: 'g' }],
      ['pool_limit', {}],
    ] as const) {
      test(`says ${code} where that is full, parked or not`, async (scene) => {
        const { verbs } = scene
        await verbs.limit({ ...ask, max: 1 })
        await verbs.enqueue({ id: 'a', group: 'g' })
        await verbs.enqueue({ id: 'b', user: 'ben', group: 'g' })
        await scene.claim('a')
        expect(await verbs.explain('b')).toEqual([code])
        expect(await scene.next()).toBeUndefined()
        expect(await verbs.explain('b')).toEqual([code])
        await scene.end('a')
        expect(await verbs.explain('b')).toEqual(['ready'])
      })
    }

    test('says that a limit of none is why, for a user too', async ({ verbs }) => {
      await verbs.limit({ user: 'ann', max: 0 })
      await verbs.enqueue({ id: 'a' })
      expect(await verbs.explain('a')).toEqual(['user_busy'])
    })

    test('says that no dispatcher runs', async (scene) => {
      const { verbs } = scene
      await verbs.forceRelease('dispatcher:d', ADMIN)
      await verbs.enqueue({ id: 'a' })
      expect(await verbs.explain('a')).toEqual(['no_dispatcher'])
    })

    test('says that no dispatcher serves its project, parked or not', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', project: 'ios' })
      expect(await verbs.explain('a')).toEqual(['unserved'])
      expect(await scene.next()).toBeUndefined()
      expect(await verbs.explain('a')).toEqual(['unserved'])
    })

    test('says that all slots are in use', async (scene) => {
      const { verbs } = scene
      await verbs.register('d', { slots_max: 1 })
      for (const user of ['ann', 'ben']) await verbs.enqueue({ id: user, user })
      await scene.claim('ann')
      expect(await verbs.explain('ben')).toEqual(['no_slot'])
    })

    test('gives every reason at once', async (scene) => {
      const { verbs } = scene
      await verbs.register('d', { slots_max: 1 })
      for (const id of ['a', 'b', 'c']) await verbs.enqueue({ id })
      await scene.claim('a')
      await verbs.pause()
      const all = ['paused', 'user_busy', 'order', 'no_slot']
      expect(await verbs.explain('c')).toEqual(all)
    })
  })
}
