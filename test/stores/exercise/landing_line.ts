import { describe, expect } from 'vitest'
import { markLanded, proposeLandings, putBack } from '../../../src/core/landing/turn.ts'
import { cancelTask } from '../../../src/core/queue/cancel.ts'
import { expectRefusal } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { finished, lander, landingOf, say, take, takeIds } from './landing.ts'
import { ada, bob, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

const MINUTE_MS = 60_000

/** What nobody gets around, from the line to the last step. */
export function exerciseLandingLine(begin: Begin): void {
  const test = queueTests(begin)

  describe('a landing', () => {
    test('is first come, first served, and by priority', async (scene) => {
      await say(scene)
      for (const id of ['a', 'b']) await finished(scene, id)
      await finished(scene, 'c', { priority: 8 })
      await finished(scene, 'd')
      expect(await takeIds(scene, 3)).toEqual(['c', 'a', 'b'])
      expect(await takeIds(scene, 3)).toEqual(['d'])
    })

    test('that waited long goes before a later one of a higher priority', async (scene) => {
      await say(scene)
      await finished(scene, 'old')
      scene.machine.advance(20 * MINUTE_MS)
      await finished(scene, 'soon', { priority: 8 })
      scene.machine.advance(20 * MINUTE_MS)
      await finished(scene, 'late', { priority: 8 })
      const taken = await take(scene)
      expect(taken.map(({ task_id }) => task_id)).toEqual(['soon', 'old', 'late'])
    })

    test('at its last step keeps its task: what is said to be cancelled stays so', async (s) => {
      await say(s)
      await finished(s, 'a')
      const [landing] = await take(s)
      const proposed = { ...landing!, commit: 'c', base: 'b', candidate: 'd' }
      await s.store.write((view) => proposeLandings(view, [proposed], lander))
      const cancel = () => s.store.write((view) => cancelTask(view, { id: 'a' }, ADMIN))
      const refusal = await expectRefusal(cancel(), 'illegal_move')
      expect(refusal.message).toBe('Task a is at the last step of landing onto main')
      await expectRefusal(s.verbs.move('a', 'todo', ada), 'illegal_move')
      await s.store.write((view) => putBack(view, landing!))
      expect(await cancel()).toMatchObject({ status: 'cancelled' })
      expect(await take(s)).toEqual([])
      expect(await landingOf(s, 'a')).toMatchObject({ status: 'cancelled' })
    })

    test('at its last step still makes its task done', async (scene) => {
      await say(scene)
      await finished(scene, 'a')
      const [landing] = await take(scene)
      const proposed = { ...landing!, commit: 'c', base: 'b', candidate: 'd' }
      await scene.store.write((view) => proposeLandings(view, [proposed], lander))
      await scene.store.write((view) => markLanded(view, landing!, 'd', lander))
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'done' })
    })

    test('is not got around by calling its task one of another project', async (scene) => {
      await say(scene)
      await scene.verbs.add('x', ada, { id: 'a', project: 'web' })
      const { lease, task } = await scene.verbs.claim('a', ada)
      const edit = (project: string | null, caller = ada) =>
        scene.verbs.edit('a', task.version, { project }, caller, lease.fence)
      for (const other of [null, 'api']) await expectRefusal(edit(other), 'forbidden')
      await scene.verbs.move('a', 'done', ada, lease.fence)
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'review', project: 'web' })
      await scene.verbs.add('y', ada, { id: 'b', project: 'web' })
      await expectRefusal(scene.verbs.edit('b', 1, { project: null }, bob), 'forbidden')
      const moved = await scene.verbs.edit('b', 1, { project: 'api' }, ADMIN)
      expect(moved).toMatchObject({ project: 'api' })
    })
  })
}
