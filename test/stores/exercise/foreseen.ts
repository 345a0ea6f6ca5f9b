import type { Worktree } from '../../../src/core/schema/worktree.ts'
import { describe, expect } from 'vitest'
import { foreseen, overlapsOf } from '../../../src/core/paths/foreseen.ts'
import { reservePaths } from '../../../src/core/paths/reservation.ts'
import { explainTask } from '../../../src/core/reasons/explain.ts'
import { callerOf } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { type QueueScene, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** Which tasks on their way change the same. */
export function exerciseForeseen(begin: Begin): void {
  const test = queueTests(begin)

  const overlaps = async ({ store }: QueueScene, id: string) => {
    const found = await store.read((view) => overlapsOf(view, view.get('task', id)!))
    return Object.fromEntries(found.map(({ task_id, paths }) => [task_id, paths]))
  }
  const said = ({ store }: QueueScene, id: string) =>
    store.read((view) => {
      const { reasons } = explainTask(view, id, 'ada', foreseen(view, id))
      return reasons.flatMap(({ code, sentence }) => (code === 'overlap' ? [sentence] : []))
    })
  /** Enqueues, each for a user of its own, and starts them. */
  const start = async (scene: QueueScene, ids: Record<string, string[]>) => {
    for (const [id, touches] of Object.entries(ids)) {
      await scene.verbs.enqueue({ id, user: id, touches })
      await scene.claim(id)
    }
  }
  /** The worktree of a task's run has changed these. */
  const changes = ({ store }: QueueScene, task_id: string, changed: string[]) =>
    store.write((view) => {
      const run_id = `${task_id}.1`
      const whose = { id: run_id, task_id, run_id, fence: 1, project: 'web', host: 'h' }
      const place = { repository: '/r/.git', path: '/w', branch: 'b', base: 'c' }
      const stands = { state: 'ready', salvage: null, kept_because: null } as const
      const row: Worktree = { ...whose, ...place, ...stands, changed, begun_at: '', left_at: null }
      view.put('worktree', row)
    })
  const reserve = ({ store }: QueueScene, agent: string, ...globs: string[]) =>
    store.write((view) => {
      const where = { project: 'web', checkout: '/w', repository: null }
      const how = { ttl_ms: 60_000, process: null, shared: false, reason: null }
      reservePaths(view, { ...where, ...how, globs }, callerOf(agent))
    })

  describe('conflicts that are foreseen', () => {
    test('what a task will touch is kept, and can be changed', async ({ verbs }) => {
      await verbs.enqueue({ id: 'a', touches: ['src/**', 'ü [x]*'] })
      expect((await verbs.task('a')).touches).toEqual(['src/**', 'ü [x]*'])
      await verbs.edit('a', 1, { touches: ['docs/a.md'] }, ADMIN)
      expect((await verbs.task('a')).touches).toEqual(['docs/a.md'])
      expect((await verbs.add('b', ADMIN, { id: 'b' })).touches).toEqual([])
    })

    test('tasks overlap by what they touch, reserved and have changed so far', async (scene) => {
      await start(scene, { a: ['src/core/**'], b: [], c: [] })
      await reserve(scene, 'run:b.1', 'src/[ab].ts')
      await scene.verbs.heartbeat(callerOf('run:b.1/sub'))
      await reserve(scene, 'run:b.1/sub', 'docs/x.md')
      await changes(scene, 'c', ['src/core/lock.ts', 'a [1].txt', 'gen/'])
      const { verbs } = scene
      const touches = ['src/**', 'docs/x.md', String.raw`a \[1\].txt`, 'gen/deep/*.js', 'other']
      await verbs.enqueue({ id: 'd', user: 'd', touches })
      expect(await overlaps(scene, 'd')).toEqual({
        a: ['src/core/**'],
        b: ['docs/x.md', 'src/[ab].ts'],
        c: ['src/core/lock.ts', 'a [1].txt', 'gen/deep/*.js'],
      })
      expect(await overlaps(scene, 'a')).toEqual({ c: ['src/core/lock.ts'] })
      expect(await overlaps(scene, 'b')).toEqual({})
      expect(await said(scene, 'c')).toEqual([
        'may conflict with task a: both change src/core/lock.ts',
      ])
    })

    test('what is over, or of another project, conflicts with nothing', async (scene) => {
      await start(scene, { a: ['x'], b: ['x'] })
      await scene.verbs.enqueue({ id: 'c', user: 'c', project: 'api', touches: ['x'] })
      await scene.claim('c')
      expect(await overlaps(scene, 'c')).toEqual({})
      expect(await overlaps(scene, 'a')).toEqual({ b: ['x'] })
      const { fence } = (await scene.verbs.lease('task:b'))!
      await scene.verbs.move('b', 'review', callerOf('run:b.1'), fence)
      expect(await overlaps(scene, 'a')).toEqual({ b: ['x'] })
      await scene.verbs.move('b', 'done', ADMIN)
      expect(await overlaps(scene, 'a')).toEqual({})
      expect(await said(scene, 'b')).toEqual([])
    })
  })
}
