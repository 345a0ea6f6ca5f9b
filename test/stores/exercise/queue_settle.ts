import { describe, expect } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { ada, bob, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

/** R20, R23–R25: cancel, retry, cleanup and release of a user. */
export function exerciseQueueSettling(begin: Begin): void {
  const test = queueTests(begin)

  describe('a cancel in the queue', () => {
    test('takes a waiting task out of it, whoever asks', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      expect(await verbs.cancel('a', bob)).toMatchObject({ status: 'cancelled' })
      expect(await verbs.position('b')).toBe(1)
      expect(await verbs.cancel('a', bob)).toMatchObject({ status: 'cancelled' })
      expect(await scene.drain()).toEqual(['b'])
    })

    test('of a running task stops its command, then gives everything back', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      await verbs.enqueue({ id: 'b' })
      const { run, group } = await scene.begun('a')
      expect(await verbs.cancel('a')).toMatchObject({ status: 'cancelled' })
      expect(machine.stopped).toContainEqual(group)
      await expect.poll(() => verbs.used()).toEqual({})
      expect(await verbs.run(run.id)).toMatchObject({ status: 'cancelled' })
      expect(await scene.next()).toBe('b')
    })

    test('of a command that cannot be stopped keeps its limits until it is gone', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      await verbs.enqueue({ id: 'b' })
      const { run, group } = await scene.begun('a')
      machine.canStop = false
      await verbs.cancel('a')
      const caller = callerOf(run.agent)
      await expectRefusal(verbs.renew('task:a', caller, run.fence), 'lease_expired')
      expect(await verbs.used()).toMatchObject({ 'user:ann': 1 })
      expect(await scene.next()).toBeUndefined()
      machine.endGroup(group)
      machine.advance(1_000)
      expect(await scene.next()).toBe('b')
    })

    test('of a running task is refused to strangers, not to creator or holder', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id, user: null }, ada)
      await scene.claim('a')
      await expectRefusal(verbs.cancel('a', bob), 'forbidden')
      await verbs.cancel('a', ada)
      await verbs.claim('b', bob, { queued: true })
      await verbs.cancel('b', bob)
      expect(await verbs.used()).toEqual({})
    })

    test('of what is over is an illegal move', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      await scene.claim('a')
      await scene.end('a')
      await expectRefusal(verbs.cancel('a'), 'illegal_move')
    })

    test('of a task in review is for its creator, admins and its holder', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b', 'c']) {
        await verbs.add(id, ada, { id })
        const { lease } = await verbs.claim(id, bob)
        await verbs.move(id, 'review', bob, lease.fence)
      }
      for (const stranger of [bob, callerOf('cy')]) {
        const refused = await expectRefusal(verbs.cancel('a', stranger), 'forbidden')
        expect(refused.next).toContain('ada')
      }
      expect(await verbs.task('a')).toMatchObject({ status: 'review' })
      expect(await verbs.cancel('a', ada)).toMatchObject({ status: 'cancelled' })
      expect(await verbs.cancel('b', ADMIN)).toMatchObject({
        status: 'cancelled',
      })
      await verbs.take('task:c', bob)
      expect(await verbs.cancel('c', bob)).toMatchObject({ status: 'cancelled' })
    })

    test('stops a command whose agent has cancelled the task already', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run, group } = await scene.begun('a')
      await verbs.move('a', 'cancelled', callerOf(run.agent), run.fence)
      await verbs.cancel('a')
      expect(machine.stopped).toContainEqual(group)
    })
  })

  test('a restore ends no lease whose command runs, and all others', async (scene) => {
    const { verbs, machine } = scene
    for (const id of ['a', 'b']) await verbs.enqueue({ id })
    const { run, group } = await scene.begun('a')
    await verbs.take('other', ada)
    machine.advance(20_000)
    await verbs.restore(2)
    expect(await verbs.used()).toMatchObject({ 'user:ann': 1 })
    expect(await verbs.run(run.id)).toMatchObject({ ended_at: null })
    await verbs.renew('task:a', callerOf(run.agent), run.fence)
    expect((await verbs.lease('other'))?.ended_at).not.toBeNull()
    expect(await scene.next()).toBeUndefined()
    machine.endGroup(group)
    await verbs.restore(3)
    expect(await verbs.used()).toEqual({})
    expect(await verbs.run(run.id)).toMatchObject({ status: 'lost' })
  })

  describe('a retry in the queue', () => {
    test('puts a failed or cancelled task back with a clean record', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      await scene.end('a', 1)
      await verbs.cancel('b')
      expect(await verbs.retry('b')).toMatchObject({ status: 'todo' })
      expect(await verbs.retry('a')).toMatchObject({ status: 'todo', queue: { failed: 0 } })
      expect(await verbs.position('a')).toBe(1)
      expect(await scene.order()).toEqual(['a', 'b'])
    })

    test('is refused for what was never enqueued, waits, runs or is done', async (scene) => {
      const { verbs } = scene
      await verbs.add('x', ada, { id: 'plain' })
      await verbs.cancel('plain')
      await expectRefusal(verbs.retry('plain'), 'illegal_move')
      await verbs.enqueue({ id: 'a' })
      await expectRefusal(verbs.retry('a'), 'illegal_move')
      await scene.claim('a')
      await expectRefusal(verbs.retry('a'), 'illegal_move')
      await scene.end('a')
      await expectRefusal(verbs.retry('a'), 'illegal_move')
    })
  })

  describe('a cleanup of the queue', () => {
    test('settles runs whose process is gone', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run, process, group } = await scene.begun('a')
      machine.kill(process)
      machine.endGroup(group)
      expect(await verbs.cleanUp()).toMatchObject([{ id: run.id, status: 'lost' }])
      expect(await verbs.used()).toEqual({})
    })

    test('stops and ends what is older than asked, and leaves the rest alone', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'old', user: 'ann' })
      await verbs.enqueue({ id: 'api', user: 'ben', project: 'api' })
      await verbs.enqueue({ id: 'new', user: 'cat' })
      const { group } = await scene.begun('old')
      await scene.begun('api')
      machine.advance(40_000)
      await scene.begun('new')
      const settled = await verbs.cleanUp({ older_than_ms: 30_000, project: 'web' })
      expect(settled).toMatchObject([{ id: 'old.1' }])
      await expect.poll(async () => (await verbs.task('old')).status).not.toBe('in_progress')
      expect(machine.stopped).toEqual([group])
      for (const id of ['api', 'new']) {
        expect(await verbs.task(id)).toMatchObject({ status: 'in_progress' })
      }
    })

    test('of a host that cannot be asked does not put off the end of a lease', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run } = await scene.claim('a')
      await verbs.startRun(run, { process: machine.elsewhere(), group: machine.elsewhere() })
      machine.advance(60_000)
      for (let i = 0; i < 3; i += 1) {
        await verbs.cleanUp({ older_than_ms: 1_000 })
        machine.advance(4_000)
      }
      await verbs.sweep()
      expect(await verbs.used()).toEqual({})
    })

    test('also ends a run whose task is done but whose command does not end', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run, group } = await scene.begun('a')
      await verbs.move('a', 'done', callerOf(run.agent), run.fence)
      machine.advance(40_000)
      await verbs.cleanUp({ older_than_ms: 30_000 })
      await verbs.sweep()
      expect(machine.stopped).toContainEqual(group)
    })
  })

  describe('a release of a user from the queue', () => {
    test('cancels its runs and frees its lock', async (scene) => {
      const { verbs } = scene
      await verbs.settings({ user_max: null })
      for (const id of ['a', 'b', 'c']) await verbs.enqueue({ id })
      await scene.claim('a')
      await scene.claim('b')
      await verbs.take('user:ann', ada)
      expect(await verbs.releaseUser('ann', 'b')).toEqual(['b'])
      expect(await verbs.releaseUser('ann')).toEqual(['a'])
      expect(await verbs.used()).toEqual({})
      expect(await verbs.task('c')).toMatchObject({ status: 'todo' })
    })

    test('stops the command that keeps it busy', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { group } = await scene.begun('a')
      expect(await verbs.releaseUser('ann')).toEqual(['a'])
      expect(machine.stopped).toContainEqual(group)
      await expect.poll(() => verbs.used()).toEqual({})
    })

    test('stops several commands at once', async (scene) => {
      const { verbs, machine } = scene
      await verbs.settings({ user_max: null })
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      const groups = [await scene.begun('a'), await scene.begun('b')].map(({ group }) => group)
      expect(await verbs.releaseUser('ann')).toEqual(['a', 'b'])
      for (const group of groups) expect(machine.stopped).toContainEqual(group)
      await expect.poll(() => verbs.used()).toEqual({})
    })

    test('also ends a run whose agent has moved its task', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      const { run } = await scene.begun('a')
      await verbs.move('a', 'done', callerOf(run.agent), run.fence)
      await verbs.releaseUser('ann')
      await expect.poll(() => verbs.used()).toEqual({})
      expect(await verbs.task('a')).toMatchObject({ status: 'done' })
    })

    test('that is not busy, or not with that task, is not found', async (scene) => {
      const { verbs } = scene
      await expectRefusal(verbs.releaseUser('ann'), 'not_found')
      await verbs.enqueue({ id: 'a' })
      await scene.claim('a')
      await expectRefusal(verbs.releaseUser('ann', 'z'), 'not_found')
    })

    test('frees a lock taken by hand', async ({ verbs }) => {
      await verbs.take('user:ann', ada)
      expect(await verbs.releaseUser('ann')).toEqual([])
      await verbs.take('user:ann', bob)
      await verbs.forceRelease('user:ann', ADMIN)
    })
  })
}
