import { describe, expect } from 'vitest'
import { expectRefusal } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { ada, bob, type QueueScene, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

const ALL = { 'user:ann': 1, 'project:web': 1, 'group:g': 1, pool: 1 }

type Way = [how: string, end: (scene: QueueScene) => Promise<void>]

/** Ways in which a claim of task `a` by a dispatcher comes to an end, its command never begun. */
const UNBEGUN: Way[] = [
  ['is finished well', (s) => done(s.end('a'))],
  ['fails', (s) => done(s.end('a', 1))],
  ['is released', async ({ verbs }) => done(verbs.release('task:a', await holder(verbs)))],
  ['is force-released', ({ verbs }) => done(verbs.forceRelease('task:a', ADMIN))],
  ['expires', ({ machine, verbs }) => (machine.advance(60_000), verbs.sweep())],
  ['dies with its process', (s) => (s.machine.kill(s.process), late(s))],
  ['is cancelled', ({ verbs }) => done(verbs.cancel('a'))],
  ['is moved to done', async ({ verbs }) => done(verbs.move('a', 'done', await holder(verbs)))],
  ['is moved to review', async (s) => done(s.verbs.move('a', 'review', await holder(s.verbs)))],
  ['is ended by a restore', ({ verbs }) => verbs.restore(2)],
  ['is cleaned up', (s) => (s.machine.advance(5_000), done(s.verbs.cleanUp({ older_than_ms: 1 })))],
  ['is taken from its user', ({ verbs }) => done(verbs.releaseUser('ann'))],
]

async function done(asked: Promise<unknown>): Promise<void> {
  await asked
}

/** Dead processes are looked for once a second. */
async function late({ machine, verbs }: QueueScene): Promise<void> {
  machine.advance(1_000)
  await verbs.sweep()
}

async function holder(verbs: QueueScene['verbs']) {
  const { holder: agent, process } = (await verbs.lease('task:a'))!
  return { agent, given: true, process, admin: false, under: null }
}

/** R20, S8: what a claim counts against, and that all of it comes back. */
export function exerciseQueueLimits(begin: Begin): void {
  const test = queueTests(begin)

  describe('a claim from the queue', () => {
    test('takes its user, project, group and the pool together', async (scene) => {
      await scene.verbs.enqueue({ id: 'a', group: 'g' })
      await scene.claim('a')
      expect(await scene.verbs.used()).toEqual(ALL)
    })

    for (const [how, end] of UNBEGUN) {
      test(`that ${how} gives back all its limits, once`, async (scene) => {
        const { verbs } = scene
        await verbs.enqueue({ id: 'a', group: 'g' })
        await scene.claim('a')
        await end(scene)
        expect(await verbs.used()).toEqual({})
        expect(await verbs.lease('task:a')).toMatchObject({ ended_at: expect.any(String) })
        await scene.check()
        await verbs.enqueue({ id: 'b', group: 'g', priority: 9 })
        await verbs.register('e', { process: scene.machine.spawn() })
        expect(await verbs.dispatch('e', scene.machine.spawn())).toBeDefined()
      })
    }

    test('keeps its limits while its command outlives the runner', async (s) => {
      const { verbs, machine } = s
      await verbs.enqueue({ id: 'a', group: 'g' })
      const { process, group } = await s.begun('a')
      machine.canStop = false
      machine.kill(process)
      await late(s)
      expect(await verbs.used()).toEqual(ALL)
      machine.endGroup(group)
      await late(s)
      expect(await verbs.used()).toEqual({})
    })

    test('whose lease is over has its command stopped, then gives its limits back', async (s) => {
      const { verbs, machine } = s
      await verbs.enqueue({ id: 'a', group: 'g' })
      const { group } = await s.begun('a')
      machine.advance(60_000)
      await verbs.sweep()
      await expect.poll(() => verbs.used()).toEqual({})
      expect(machine.stopped).toEqual([group])
    })

    test('keeps its limits when its task is done, until the command is gone', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', group: 'g' })
      await verbs.enqueue({ id: 'b' })
      const { run } = await scene.begun('a')
      const caller = { agent: run.agent, given: true, process: null, admin: false, under: null }
      await verbs.move('a', 'done', caller, run.fence)
      expect(await verbs.used()).toEqual(ALL)
      expect(await scene.next()).toBeUndefined()
      await scene.end('a')
      expect(await verbs.used()).toEqual({})
      expect(await verbs.task('a')).toMatchObject({ status: 'done', run_id: null })
      expect(await scene.next()).toBe('b')
    })

    test('keeps its limits when it is handed off, until its end', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', group: 'g' })
      await scene.claim('a')
      await verbs.handOff('task:a', await holder(verbs), 'ada')
      expect(await verbs.used()).toEqual(ALL)
      await scene.check()
      await verbs.move('a', 'done', ada)
      expect(await verbs.used()).toEqual({})
    })

    test('made again by its holder is counted once', async ({ verbs }) => {
      await verbs.enqueue({ id: 'a', group: 'g' })
      const first = await verbs.claim('a', ada, { queued: true })
      const second = await verbs.claim('a', ada, { queued: true })
      await verbs.take('task:a', ada)
      expect(second.lease.fence).toBeGreaterThan(first.lease.fence)
      expect(await verbs.used()).toEqual(ALL)
      await verbs.move('a', 'done', ada)
      expect(await verbs.used()).toEqual({})
    })

    test('takes nothing when one limit is full', async ({ verbs }) => {
      await verbs.limit({ group: 'g', max: 0 })
      await verbs.enqueue({ id: 'a', group: 'g' })
      await expectRefusal(verbs.claim('a', ada, { queued: true }), 'held')
      expect(await verbs.used()).toEqual({})
      expect(await verbs.task('a')).toMatchObject({ status: 'todo', lock_fence: null })
    })
  })

  describe('a limit of the queue', () => {
    test('lets one task of a user run at a time', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await verbs.enqueue({ id: 'c', user: 'ben' })
      expect(await scene.drain()).toEqual(['a', 'c'])
      await scene.end('a')
      expect(await scene.drain()).toEqual(['b'])
    })

    test('of one counts nobody where a task has no user', async (scene) => {
      for (const id of ['a', 'b', 'c']) await scene.verbs.enqueue({ id, user: null })
      expect(await scene.drain()).toEqual(['a', 'b', 'c'])
    })

    for (const kind of ['project', 'group', 'pool'] as const) {
      test(`of a ${kind} is never exceeded`, async (scene) => {
        const { verbs } = scene
        const name = { project: 'web', group: 'g', pool: undefined }[kind]
        await verbs.limit({ ...(kind !== 'pool' && { [kind]: name }), max: 2 })
        for (let i = 0; i < 5; i += 1)
          await verbs.enqueue({ id: `t${i}`, user: `u${i}`, group: 'g' })
        expect(await scene.drain()).toEqual(['t0', 't1'])
        await scene.check()
        await scene.end('t0')
        expect(await scene.drain()).toEqual(['t2'])
      })

      test(`of a ${kind} is named to whoever claims by id`, async ({ verbs }) => {
        const name = { project: 'web', group: 'g', pool: undefined }[kind]
        await verbs.limit({ ...(kind !== 'pool' && { [kind]: name }), max: 0 })
        await verbs.enqueue({ id: 'a', group: 'g' })
        const no = await expectRefusal(verbs.claim('a', ada, { queued: true }), 'held')
        expect(no.details).toMatchObject({ name: name ? `${kind}:${name}` : 'pool', max: 0 })
      })
    }

    test('of a user is named to whoever claims by id, with what it is busy with', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await scene.claim('a')
      const no = await expectRefusal(verbs.claim('b', ada, { queued: true }), 'held')
      expect(no.details).toMatchObject({ name: 'user:ann', busy_with: 'task:a' })
    })

    test('counts ordinary claims of a user too, and skips its tasks', async ({ verbs }) => {
      for (const id of ['a', 'b']) await verbs.add('x', ada, { id, user: 'ann' })
      await verbs.add('x', ada, { id: 'c', user: 'ben' })
      expect(await verbs.next(ada)).toMatchObject({ task: { id: 'a' } })
      expect(await verbs.next(ada)).toMatchObject({ task: { id: 'c' } })
      expect(await verbs.next(bob)).toBeUndefined()
      await expectRefusal(verbs.claim('b', bob), 'held')
      await expectRefusal(verbs.move('b', 'in_progress', bob), 'held')
      await verbs.move('a', 'done', ada)
      expect(await verbs.next(bob)).toMatchObject({ task: { id: 'b' } })
    })

    test('holds for a task whose lock was taken by hand first', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b']) await verbs.add('x', ada, { id, user: 'ann' })
      await verbs.take('task:b', bob)
      await verbs.claim('a', ada)
      await expectRefusal(verbs.move('b', 'in_progress', bob), 'held')
      await verbs.move('a', 'done', ada)
      await verbs.move('b', 'in_progress', bob)
      expect(await verbs.used()).toEqual({ 'user:ann': 1 })
    })

    test('of none for a user keeps everybody from its tasks, by id too', async (scene) => {
      const { verbs } = scene
      await verbs.limit({ user: 'ann', max: 0 })
      await verbs.enqueue({ id: 'a' })
      expect(await scene.next()).toBeUndefined()
      expect(await verbs.nextQueued(ada)).toBeUndefined()
      await expectRefusal(verbs.claim('a', ada, { queued: true }), 'held')
    })
  })
}
