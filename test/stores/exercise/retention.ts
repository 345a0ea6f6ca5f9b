import { describe, expect, test } from 'vitest'
import { heldRows, KEEP_ALL } from '../retention_scene.ts'
import { seeAgent } from '../../../src/core/locks/agent.ts'
import { plant } from '../../../src/core/planted.ts'
import { DAY_MS, RETENTION, type Retention } from '../../../src/core/retention.ts'
import { createToken, revokeToken } from '../../../src/core/token.ts'
import { forgetOld } from '../../../src/stores/writer/prune.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin, Scene } from './scene.ts'

const ada = callerOf('ada')

/** Nothing leaves by itself, so that a test sees what its own pass takes away. */
function quiet(scene: Scene): Scene {
  scene.store.retention = KEEP_ALL
  return scene
}

const forget = ({ store }: Scene, more: Partial<Retention>) =>
  forgetOld(store, { retention: { ...KEEP_ALL, ...more } })

async function lockAndRelease({ verbs }: Scene, name: string): Promise<number> {
  const { fence } = await verbs.take(name, ada)
  await verbs.release(name, ada, fence)
  return fence
}

/** R53: what is over leaves, and nothing that is in force. */
export function exerciseRetention(begin: Begin): void {
  describe('retention', () => {
    test('forgets ended leases by age, and leaves those that are held', async () => {
      const scene = quiet(begin())
      await scene.verbs.take('held', ada, { ttl_ms: DAY_MS })
      await lockAndRelease(scene, 'ended')
      expect(await forget(scene, { leases: { days: 1, max: null } })).toEqual({})
      scene.machine.advance(DAY_MS - 1_000)
      await scene.verbs.renew('held', ada)
      scene.machine.advance(120_000)
      await lockAndRelease(scene, 'young')
      expect(await forget(scene, { leases: { days: 1, max: null } })).toEqual({ leases: 1 })
      expect(await heldRows(scene.store, 'lease', ['held', 'ended', 'young'])).toEqual([
        true,
        false,
        true,
      ])
    })

    test('forgets the oldest beyond so many, step by step', async () => {
      const scene = quiet(begin())
      const names = Array.from({ length: 450 }, (_, i) => `lock-${String(i).padStart(3, '0')}`)
      for (let i = 0; i < names.length; i += 50) {
        await Promise.all(names.slice(i, i + 50).map((name) => lockAndRelease(scene, name)))
        scene.machine.advance(1_000)
      }
      const leases = { days: null, max: 30 }
      expect(
        await forgetOld(scene.store, {
          retention: { ...KEEP_ALL, leases },
          dry_run: true,
        }),
      ).toEqual({ leases: 420 })
      expect(await forget(scene, { leases })).toEqual({ leases: 420 })
      expect(await heldRows(scene.store, 'lease', names)).toEqual(names.map((_, i) => i >= 420))
      expect(await forget(scene, { leases })).toEqual({})
    })

    test('never gives a fence again, and refuses every fence of a forgotten lease', async () => {
      const scene = quiet(begin())
      expect(await fencesRise(scene)).toBe(true)
      plant('R53')
      try {
        expect(await fencesRise(scene)).toBe(false)
      } finally {
        plant(undefined)
      }
    })

    test('forgets idle agents, tokens that ended, and runs that are over', async () => {
      const scene = quiet(begin())
      const { store, verbs, machine } = scene
      await verbs.add('x', ada, { id: 't' })
      const { run } = await verbs.claim('t', ada)
      await verbs.move('t', 'done', ada)
      await verbs.add('y', ada, { id: 'open' })
      const open = await verbs.claim('open', callerOf('busy'), { ttl_ms: DAY_MS })
      const made = ['a', 'b', 'c'].map((hash, i) => {
        const token = {
          hash,
          role: 'viewer',
          agent: null,
          scope: null,
          ttl_ms: i === 0 ? 1_000 : null,
        } as const
        return store.write((view) => createToken(view, token, ada))
      })
      const [, second] = await Promise.all(made)
      await store.write((view) => revokeToken(view, second!.id, ada))
      for (const agent of ['gone', 'busy'])
        await store.write((view) => seeAgent(view, callerOf(agent)))
      machine.advance(DAY_MS - 1_000)
      await verbs.renew('task:open', callerOf('busy'))
      machine.advance(61_000)
      const bound = { days: 1, max: null }
      const forgotten = await forget(scene, { agents: bound, tokens: bound, runs: bound })
      expect(forgotten).toEqual({ agents: 1, tokens: 2, runs: 1 })
      expect(await heldRows(store, 'agent', ['gone', 'busy'])).toEqual([false, true])
      expect(await heldRows(store, 'token', ['a', 'b', 'c'])).toEqual([false, false, true])
      expect(await heldRows(store, 'run', [run.id, open.run.id])).toEqual([false, true])
      expect(await verbs.task('t')).toMatchObject({ status: 'done', attempts: 1 })
    })

    test('forgets tasks that are over if asked to, after those that name them', async () => {
      const scene = quiet(begin())
      const { verbs, machine, store } = scene
      for (const [id, depends_on] of [
        ['first', []],
        ['second', ['first']],
        ['third', []],
      ] as const) {
        await verbs.add(id, ada, { id, depends_on: [...depends_on] })
      }
      await verbs.claim('first', ada)
      await verbs.move('first', 'done', ada)
      machine.advance(2 * DAY_MS)
      const tasks = { days: 1, max: null }
      expect(RETENTION.tasks).toEqual({ days: null, max: null })
      // `second` is not done yet, and names it.
      expect(await forget(scene, { tasks })).toEqual({})
      await verbs.claim('second', ada)
      await verbs.move('second', 'done', ada)
      machine.advance(2 * DAY_MS)
      expect(await forget(scene, { tasks })).toEqual({ tasks: 1 })
      expect(await forget(scene, { tasks })).toEqual({ tasks: 1 })
      expect(await heldRows(store, 'task', ['first', 'second', 'third'])).toEqual([
        false,
        false,
        true,
      ])
      expect(await heldRows(store, 'run', ['first.1', 'second.1'])).toEqual([false, false])
      const types = (await store.events(0, 1_000)).map(({ type }) => type)
      expect(types.filter((type) => type === 'task.forgotten')).toHaveLength(2)
      expect((await verbs.add('again', ada)).id).not.toBe('first')
    })

    test('forgets only the oldest events, not those before one with a clock set back', async () => {
      const scene = quiet(begin())
      const { verbs, machine, store } = scene
      await verbs.take('old', ada)
      machine.advance(40 * DAY_MS)
      for (let i = 0; i < 6; i += 1) await verbs.take(`fresh-${i}`, ada)
      machine.jumpWall(-300 * DAY_MS)
      await verbs.take('odd', ada)
      machine.jumpWall(300 * DAY_MS)
      for (let i = 6; i < 12; i += 1) await verbs.take(`fresh-${i}`, ada)
      await forget(scene, { events: { days: 30, max: null } })
      const left = (await store.events(0, 1_000)).filter(({ type }) => type === 'lease.granted')
      expect(left.map(({ lock }) => lock)).toEqual([
        ...[0, 1, 2, 3, 4, 5].map((i) => `fresh-${i}`),
        'odd',
        ...[6, 7, 8, 9, 10, 11].map((i) => `fresh-${i}`),
      ])
    })

    test('does not take a wall clock that was set ahead for the passing of time', async () => {
      const scene = quiet(begin())
      const { verbs, machine, store } = scene
      await verbs.add('x', ada, { id: 't' })
      await verbs.claim('t', ada)
      await verbs.move('t', 'done', ada)
      const before = (await store.events(0, 100)).length
      // A store with a clock of its own never sees it.
      machine.jumpWall(3_000 * DAY_MS)
      const bound = { days: 1, max: null }
      const all = Object.fromEntries(Object.keys(RETENTION).map((kind) => [kind, bound]))
      expect(await forget(scene, all)).toEqual({})
      expect((await store.events(0, 100)).length).toBe(before)
    })

    test('needs no daemon: writes take a little of what is old along', async () => {
      const scene = begin()
      if (scene.store.isShared) return
      const names = Array.from({ length: 60 }, (_, i) => `lock-${i}`)
      await Promise.all(names.map((name) => lockAndRelease(scene, name)))
      scene.machine.advance((RETENTION.leases.days + 1) * DAY_MS)
      const left = async () => (await heldRows(scene.store, 'lease', names)).filter(Boolean).length
      for (const expected of [35, 10, 0]) {
        scene.machine.advance(1_000)
        await scene.verbs.sweep()
        expect(await left()).toBe(expected)
      }
    })

    test('lets requests go as fast as they come', async () => {
      const { store, machine } = quiet(begin())
      const keys = Array.from({ length: 600 }, (_, i) => `request-${i}`)
      await Promise.all(
        keys.map((key) =>
          store.write((view) =>
            view.put('request', { key, input_hash: '', reply: {}, at_ms: view.now }),
          ),
        ),
      )
      machine.advance(DAY_MS + 1)
      expect(await forgetOld(store, { retention: KEEP_ALL })).toMatchObject({})
      expect((await heldRows(store, 'request', keys)).filter(Boolean)).toHaveLength(0)
    })
  })
}

/** Whether a fence is refused after its lease was forgotten, and the next one is above it. */
async function fencesRise(scene: Scene): Promise<boolean> {
  const { verbs, machine } = scene
  await lockAndRelease(scene, 'busy')
  const first = await lockAndRelease(scene, 'f')
  const second = await lockAndRelease(scene, 'f')
  machine.advance(2 * DAY_MS)
  await forget(scene, { leases: { days: 1, max: null } })
  await expectRefusal(verbs.renew('f', ada, second), 'fence_stale')
  await expectRefusal(verbs.renew('f', ada), 'lease_expired')
  const { fence } = await verbs.take('f', callerOf('bob'))
  const stale = [first, second].every((old) => old < fence)
  for (const old of stale ? [first, second] : []) {
    await expectRefusal(verbs.release('f', ada, old), 'fence_stale')
  }
  await verbs.release('f', callerOf('bob'), fence)
  return stale
}
