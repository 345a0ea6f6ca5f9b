import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const cyd = callerOf('cyd')

/** R10: a lease passed on. */
export function exerciseHandOff(begin: Begin): void {
  describe('a hand-off', () => {
    test('gives the named agent a new fence, and the old one is stale at once', async () => {
      const { verbs, store } = begin()
      const old = await verbs.take('a', ada)
      const lease = await verbs.handOff('a', ada, 'bob', old.fence)
      expect(lease).toMatchObject({ holder: 'bob', ended_at: null, process: null })
      expect(lease.fence).toBeGreaterThan(old.fence)
      await expectRefusal(verbs.release('a', ada, old.fence), 'fence_stale')
      const [event] = await store.events(1, 1)
      expect(event!.data).toEqual({
        fence: lease.fence,
        from: 'ada',
        from_fence: old.fence,
        to: 'bob',
        held_ms: expect.any(Number),
      })
      await verbs.release('a', bob, lease.fence)
    })

    test('goes past everybody who waits in line', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', cyd, 'T1')
      await verbs.handOff('a', ada, 'bob')
      expect((await verbs.turn('T1')).ask).toBe(false)
      await expectRefusal(verbs.take('a', cyd), 'held')
    })

    test('is for the holder only', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await expectRefusal(verbs.handOff('a', bob, 'bob'), 'held')
      await expectRefusal(verbs.handOff('nothing', bob, 'bob'), 'lease_expired')
    })

    test('keeps a task in progress: one run ends, the next begins', async () => {
      const { verbs } = begin()
      await verbs.add('work', ada, { id: 't' })
      const { lease } = await verbs.claim('t', ada)
      const passed = await verbs.handOff('task:t', ada, 'bob', lease.fence)
      expect(await verbs.task('t')).toMatchObject({
        status: 'in_progress',
        assignee: 'bob',
        attempts: 2,
        run_id: 't.2',
        lock_fence: passed.fence,
      })
      expect(await verbs.runs('t')).toMatchObject([
        { id: 't.1', agent: 'ada', status: 'completed', outcome: 'handed_off' },
        { id: 't.2', agent: 'bob', status: 'running', ended_at: null, fence: passed.fence },
      ])
      await expectRefusal(verbs.move('t', 'done', ada, lease.fence), 'fence_stale')
      await verbs.move('t', 'done', bob, passed.fence)
    })

    test('of a lock under a running command is refused', async () => {
      const { verbs, machine } = begin()
      const { fence } = await verbs.take('a', ada)
      await verbs.nameGroup('a', fence, machine.spawnGroup(), ada)
      await expectRefusal(verbs.handOff('a', ada, 'bob', fence), 'illegal_move')
    })
  })
}
