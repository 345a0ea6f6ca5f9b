import { describe, expect, test } from 'vitest'
import { GRACE_MS } from '../../../src/core/bounds.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin, Scene } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const ADMIN = callerOf('root', { admin: true })

/** A wrapper process that holds `name` and has started a command under it. */
async function runUnder(scene: Scene, name: string, where: 'here' | 'elsewhere' = 'here') {
  const { machine, verbs } = scene
  const wrapper = machine.spawn()
  const caller = callerOf('ada', { process: wrapper })
  const group = where === 'here' ? machine.spawnGroup() : machine.elsewhere()
  const { fence } = await verbs.take(name, caller, { ttl_ms: 60_000 })
  await verbs.nameGroup(name, fence, group, caller)
  return { wrapper, caller, group, fence }
}

/** R3, R8: processes behind leases, and commands that we started under them. */
export function exerciseProcesses(begin: Begin): void {
  describe('a holder whose process', () => {
    test('is proved dead frees its lock at once', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      const { fence } = await verbs.take('a', callerOf('ada', { process }))
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.kill(process)
      expect(await verbs.take('a', bob)).toMatchObject({ holder: 'bob' })
      expect(await verbs.eventTypes()).toEqual(['lease.granted', 'lease.died', 'lease.granted'])
      await expectRefusal(verbs.release('a', ada, fence), 'fence_stale')
    })

    test('is dead gives its task back, and the run counts as lost', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.add('work', ada, { id: 't' })
      await verbs.claim('t', callerOf('ada', { process }))
      machine.kill(process)
      machine.advance(1_000)
      expect(await verbs.ready()).toEqual(['t'])
      expect(await verbs.next(bob)).toMatchObject({ run: { id: 't.2', agent: 'bob' } })
      expect(await verbs.runs('t')).toMatchObject([{ status: 'lost' }, { status: 'running' }])
    })

    test('is dead reads as gone at once, however lately the writer looked', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.add('work', ada, { id: 't' })
      await verbs.claim('t', callerOf('ada', { process }))
      machine.kill(process)
      expect(await verbs.lease('task:t')).toMatchObject({ reason: 'died' })
      expect(await verbs.ready()).toEqual(['t'])
    })

    test('is dead is noticed by the next write, also while others read all the time', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.take('a', callerOf('ada', { process }))
      machine.kill(process)
      for (let i = 0; i < 30; i += 1) {
        machine.advance(100)
        await verbs.lease('a')
      }
      await verbs.sweep()
      expect(await verbs.eventTypes()).toEqual(['lease.granted', 'lease.died'])
    })

    test('has its number reused by another is dead all the same', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      const reused = { ...process, start: process.start - 1 }
      await verbs.take('a', callerOf('ada', { process: reused }))
      expect(await verbs.take('a', bob)).toMatchObject({ holder: 'bob' })
    })

    test('lives in another namespace is trusted until its time is up', async () => {
      const { verbs, machine } = begin()
      const far = callerOf('ada', { process: machine.elsewhere() })
      await verbs.take('a', far, { ttl_ms: 60_000 })
      machine.advance(59_999)
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(1)
      await verbs.take('a', bob)
    })

    test('lives keeps its lock from everyone, but not past its time', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', callerOf('ada', { process: machine.spawn() }), { ttl_ms: 5_000 })
      machine.advance(4_999)
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(1)
      expect(await verbs.take('a', bob)).toMatchObject({ holder: 'bob' })
    })
  })

  describe('a command under a lease', () => {
    test('is stopped before the lock of a dead wrapper is given to the next', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { wrapper, group } = await runUnder(scene, 'a')
      machine.kill(wrapper)
      await verbs.take('a', bob)
      expect(machine.stopped).toContainEqual(group)
      expect(machine.group(group)).toBe('dead')
    })

    test('is stopped before an expired lock is given to the next', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { group } = await runUnder(scene, 'a')
      machine.advance(60_000)
      await verbs.take('a', bob)
      expect(machine.group(group)).toBe('dead')
    })

    test('is stopped by a sweep, and then the task is ready again', async () => {
      const scene = begin()
      const { verbs, machine, store } = scene
      await verbs.add('work', ada, { id: 't' })
      const wrapper = machine.spawn()
      const caller = callerOf('ada', { process: wrapper })
      const { lease } = await verbs.claim('t', caller)
      await verbs.nameGroup('task:t', lease.fence, machine.spawnGroup(), caller)
      machine.kill(wrapper)
      machine.advance(1_000)
      const freed = new Promise<void>((resolve) => {
        store.onCommit((events) => {
          if (events.some((event) => event.type === 'lease.died')) resolve()
        })
      })
      await verbs.sweep()
      await freed
      expect(await verbs.ready()).toEqual(['t'])
    })

    test('keeps the lock when it cannot be stopped, until TTL plus grace', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      await runUnder(scene, 'a')
      machine.canStop = false
      machine.advance(60_000)
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(GRACE_MS)
      await verbs.take('a', bob)
    })

    test('out of reach keeps the lock until TTL plus grace', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { wrapper } = await runUnder(scene, 'a', 'elsewhere')
      machine.kill(wrapper)
      machine.advance(60_000 + GRACE_MS - 1)
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(1)
      await verbs.take('a', bob)
      expect(machine.stopped).toEqual([])
    })

    test('out of reach does not let its lease be renewed past its time', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { caller, fence } = await runUnder(scene, 'a', 'elsewhere')
      machine.advance(60_000)
      await expectRefusal(verbs.renew('a', caller, fence), 'lease_expired')
      expect(await verbs.heartbeat(caller)).toEqual([])
      await expectRefusal(verbs.take('a', bob), 'held')
    })

    test('keeps the lock from being released or passed on while it runs', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { caller, group, fence } = await runUnder(scene, 'a')
      await expectRefusal(verbs.release('a', caller, fence), 'illegal_move')
      machine.endGroup(group)
      await verbs.release('a', caller, fence)
    })

    test('is not forgotten when its wrapper acquires the lock again', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { caller, group, wrapper } = await runUnder(scene, 'a')
      const { fence } = await verbs.take('a', caller)
      await expectRefusal(verbs.release('a', caller, fence), 'illegal_move')
      machine.kill(wrapper)
      await verbs.take('a', bob)
      expect(machine.group(group)).toBe('dead')
    })

    test('is stopped by a takeover, and keeps the lock where it is out of reach', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const near = await runUnder(scene, 'a')
      await verbs.take('a', ada, { takeover: true })
      expect(machine.stopped).toEqual([near.group])
      await runUnder(scene, 'b', 'elsewhere')
      await expectRefusal(verbs.take('b', ada, { takeover: true }), 'held')
    })

    test('is stopped by a force-release before the lock is free', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { group } = await runUnder(scene, 'a')
      await verbs.forceRelease('a', ADMIN)
      expect(machine.stopped).toEqual([group])
      await verbs.take('a', bob)
    })

    test('out of reach holds a force-released lock for the grace, and not renewed', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      const { caller, fence } = await runUnder(scene, 'a', 'elsewhere')
      await verbs.forceRelease('a', ADMIN)
      await expectRefusal(verbs.take('a', bob), 'held')
      await expectRefusal(verbs.renew('a', caller, fence), 'lease_expired')
      machine.advance(GRACE_MS)
      await verbs.take('a', bob)
    })

    test('lets a status count at once, and the lock go when it has ended', async () => {
      const scene = begin()
      const { verbs, machine } = scene
      await verbs.add('work', ada, { id: 't' })
      const caller = callerOf('ada', { process: machine.spawn() })
      const { lease } = await verbs.claim('t', caller)
      const group = machine.spawnGroup()
      await verbs.nameGroup('task:t', lease.fence, group, caller)
      await verbs.move('t', 'done', caller, lease.fence)
      expect(await verbs.task('t')).toMatchObject({ status: 'done', lock_fence: lease.fence })
      expect(await verbs.runs('t')).toMatchObject([{ status: 'running', ended_at: null }])
      await expectRefusal(verbs.take('task:t', bob), 'held')
      machine.endGroup(group)
      await verbs.release('task:t', caller, lease.fence)
      expect(await verbs.runs('t')).toMatchObject([{ status: 'completed' }])
      expect(await verbs.task('t')).toMatchObject({ status: 'done', lock_fence: null })
    })
  })
}
