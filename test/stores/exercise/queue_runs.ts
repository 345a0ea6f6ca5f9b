import type { Run } from '../../../src/core/schema/task.ts'
import { describe, expect } from 'vitest'
import { seeAgent } from '../../../src/core/locks/agent.ts'
import { plant } from '../../../src/core/planted.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { PathVerbs } from '../../support/path_verbs.ts'
import { ada, bob, type QueueScene, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

const byAgent = ({ agent }: Run) => callerOf(agent)

/** The runner dies and its command with it. */
async function lose(
  { machine, verbs }: QueueScene,
  begun: Awaited<ReturnType<QueueScene['begun']>>,
) {
  machine.kill(begun.process)
  machine.endGroup(begun.group)
  machine.advance(1_000)
  await verbs.sweep()
}

/** R19, R22, R23, S12: slots, and the life of a run. */
export function exerciseQueueRuns(begin: Begin): void {
  const test = queueTests(begin)

  describe('a dispatcher of the queue', () => {
    test('starts no more than it has slots', async (scene) => {
      const { verbs } = scene
      for (let i = 0; i < 6; i += 1) await verbs.enqueue({ id: `t${i}`, user: `u${i}` })
      expect(await scene.drain()).toEqual(['t0', 't1', 't2', 't3'])
      await scene.end('t2')
      expect(await scene.drain()).toEqual(['t4'])
    })

    test('fills all its slots in one step, each run with its own fence and token', async (s) => {
      const { verbs, store, process } = s
      for (let i = 0; i < 6; i += 1) await verbs.enqueue({ id: `t${i}`, user: `u${i % 5}` })
      await s.claim('t0')
      const commits: string[][] = []
      store.onCommit((events) => void commits.push(events.map(({ type }) => type)))
      const claims = await verbs.dispatchAll('d', process)
      expect(claims.map(({ task }) => task.id)).toEqual(['t1', 't2', 't3'])
      expect(commits).toEqual([Array.from({ length: 3 }, () => 'task.claimed')])
      expect(new Set(claims.map(({ lease }) => lease.fence)).size).toBe(3)
      expect(new Set(claims.map(({ lease }) => lease.terms?.token_hash)).size).toBe(3)
      expect(await verbs.dispatchAll('d', process)).toEqual([])
      await s.end('t0')
      await s.end('t1')
      expect((await verbs.dispatchAll('d', process, 1)).map(({ task }) => task.id)).toEqual(['t4'])
      // One task per user at a time holds within one step too.
      expect((await verbs.dispatchAll('d', process)).map(({ task }) => task.id)).toEqual(['t5'])
    })

    test('counts the runs of its former life', async (scene) => {
      const { verbs, machine } = scene
      for (let i = 0; i < 3; i += 1) await verbs.enqueue({ id: `t${i}`, user: `u${i}` })
      await scene.begun('t0')
      machine.kill(scene.process)
      const process = machine.spawn()
      machine.advance(1_000)
      await verbs.register('d', { slots_max: 2 })
      expect(await verbs.dispatch('d', process)).toMatchObject({ task: { id: 't1' } })
      expect(await verbs.dispatch('d', process)).toBeUndefined()
      expect(await verbs.status()).toMatchObject({ active: { slots_used: 2, slots_max: 2 } })
    })

    test('that dies before a command began gives its task back, uncounted', async (s) => {
      const { verbs, machine } = s
      await verbs.enqueue({ id: 'a' })
      for (let i = 0; i < 5; i += 1) {
        const process = machine.spawn()
        expect(await verbs.dispatch('d', process)).toMatchObject({ task: { id: 'a' } })
        machine.kill(process)
        machine.advance(1_000)
        await verbs.sweep()
      }
      expect(await verbs.task('a')).toMatchObject({ status: 'todo', queue: { lost: 0 } })
    })

    test('that is unknown gets nothing', async (scene) => {
      await scene.verbs.enqueue({ id: 'a' })
      expect(await scene.next('nobody')).toBeUndefined()
    })

    test('gives each of many who ask at once a task of its own', async (scene) => {
      const { verbs } = scene
      for (let i = 0; i < 4; i += 1) await verbs.enqueue({ id: `t${i}`, user: `u${i}` })
      const asked = Array.from({ length: 8 }, () => scene.next())
      const got = (await Promise.all(asked)).filter((id) => id !== undefined)
      expect(got.toSorted()).toEqual(['t0', 't1', 't2', 't3'])
    })
  })

  describe('a run of the queue', () => {
    test('is started once per fence', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run } = await scene.begun('a')
      expect(run).toMatchObject({ dispatcher: 'dispatcher:d', begun_at: expect.any(String) })
      const again = { process: machine.spawn(), group: machine.spawnGroup() }
      await expectRefusal(verbs.startRun(run, again), 'illegal_move')
      expect((await verbs.eventTypes()).filter((type) => type === 'run.started')).toHaveLength(1)
    })

    test('is not started under the fence of another run', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run: first } = await scene.claim('a')
      await verbs.release('task:a', { ...byAgent(first), process: scene.process })
      const { run: second } = await scene.claim('a')
      const more = { process: machine.spawn(), group: machine.spawnGroup() }
      await expectRefusal(verbs.startRun(first, more), 'fence_stale')
      const mixed = verbs.startRun({ ...second, id: first.id }, more)
      await expectRefusal(mixed, 'illegal_move')
      expect(await verbs.run(first.id)).toMatchObject({ begun_at: null, status: 'cancelled' })
    })

    test('is not started when its lease is over', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run } = await scene.claim('a')
      machine.advance(60_000)
      const more = { process: machine.spawn(), group: machine.spawnGroup() }
      await expectRefusal(verbs.startRun(run, more), 'lease_expired')
    })

    test('takes all that its agent holds with it, however it ends', async (scene) => {
      const { verbs, store } = scene
      const paths = new PathVerbs(store)
      const hold = async (id: string) => {
        const begun = await scene.begun(id)
        const own = byAgent(begun.run)
        const sub = callerOf(`${own.agent}/sub`)
        await store.write((view) => seeAgent(view, sub))
        await paths.one('a.ts', own)
        await paths.one('b.ts', sub)
        await verbs.take('deploy', own)
        return begun
      }
      const left = async () => [
        await verbs.lease('deploy').then((lease) => lease?.reason),
        await paths.check('a.ts', ada),
        await paths.check('b.ts', ada),
        await paths.check('c.ts', ada),
      ]
      await paths.one('c.ts', bob)
      for (const id of ['a', 'b']) await verbs.enqueue({ id })
      await hold('a')
      await scene.end('a')
      expect(await left()).toEqual(['released', 'free', 'free', 'bob'])
      await lose(scene, await hold('b'))
      expect(await left()).toEqual(['released', 'free', 'free', 'bob'])
      plant('R23')
      try {
        const { run } = await hold('b')
        await scene.end('b')
        expect((await left()).slice(1, 3)).toEqual([run.agent, `${run.agent}/sub`])
      } finally {
        plant(undefined)
      }
    })

    test('that exits with 0 is completed, and its task done', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      await scene.begun('a')
      expect(await scene.end('a')).toMatchObject({
        status: 'completed',
        outcome: 'exit 0',
        exit_code: 0,
        ended_at: expect.any(String),
      })
      expect(await verbs.task('a')).toMatchObject({ status: 'done', run_id: null })
    })

    test('that exits otherwise fails its task', async (scene) => {
      const { verbs } = scene
      for (const id of ['a', 'b', 'c']) await verbs.enqueue({ id })
      const fates = [
        { exit_code: 2 },
        { exit_code: null, signal: 'SIGKILL' },
        { exit_code: 0, reason: 'silent for too long' },
      ]
      const outcomes: (string | null)[] = []
      for (const [i, fate] of fates.entries()) {
        const { run, group } = await scene.begun(['a', 'b', 'c'][i]!)
        scene.machine.endGroup(group)
        outcomes.push((await verbs.finishRun(run, fate)).outcome)
        expect(await verbs.task(run.task_id)).toMatchObject({ status: 'failed' })
        expect(await verbs.run(run.id)).toMatchObject({ status: 'failed' })
      }
      expect(outcomes).toEqual(['exit 2', 'killed by SIGKILL', 'silent for too long'])
    })

    test('that fails is tried again while retries last', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', retries: 2 })
      const seen: string[] = []
      for (let i = 0; i < 3; i += 1) {
        await scene.begun('a')
        await scene.end('a', 1)
        seen.push((await verbs.task('a')).status)
        await scene.check()
      }
      expect(seen).toEqual(['todo', 'todo', 'failed'])
      const runs = await verbs.runs('a')
      expect(runs.map(({ status }) => status)).toEqual(['failed', 'failed', 'failed'])
      expect(await scene.next()).toBeUndefined()
    })

    for (const to of ['done', 'review', 'failed', 'cancelled', 'todo'] as const) {
      test(`leaves its task ${to} where its agent put it`, async (scene) => {
        const { verbs } = scene
        await verbs.enqueue({ id: 'a' })
        const { run } = await scene.begun('a')
        await verbs.move('a', to, byAgent(run), run.fence)
        await scene.check()
        expect(await verbs.run(run.id)).toMatchObject({ status: 'running', ended_at: null })
        await scene.end('a', 3)
        expect(await verbs.task('a')).toMatchObject({ status: to, run_id: null, lock_fence: null })
        expect(await verbs.run(run.id)).toMatchObject({ outcome: 'exit 3', exit_code: 3 })
        expect(await verbs.used()).toEqual({})
      })
    }

    test('is not finished while its command lives, nor under an old fence', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a' })
      const { run, group } = await scene.begun('a')
      await expectRefusal(verbs.finishRun(run), 'illegal_move')
      machine.endGroup(group)
      await expectRefusal(verbs.finishRun({ ...run, fence: run.fence - 1 }), 'fence_stale')
      await verbs.finishRun(run)
      await expectRefusal(verbs.finishRun(run), 'lease_expired')
    })

    test('is not finished under the fence of another run', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a', retries: 1 })
      const { run: first } = await scene.claim('a')
      await scene.end('a', 1)
      const ended = await verbs.run(first.id)
      const { run: second } = await scene.claim('a')
      await expectRefusal(verbs.finishRun({ ...second, id: first.id }), 'illegal_move')
      expect(await verbs.run(first.id)).toEqual(ended)
    })

    test('that is lost goes back to the queue, and fails the third time', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      const seen: string[] = []
      for (let i = 0; i < 3; i += 1) {
        await lose(scene, await scene.begun('a'))
        seen.push((await verbs.task('a')).status)
        await scene.check()
      }
      expect(seen).toEqual(['todo', 'todo', 'failed'])
      expect(await verbs.eventTypes()).toContain('task.quarantined')
      const runs = await verbs.runs('a')
      expect(runs.map(({ status }) => status)).toEqual(['lost', 'lost', 'lost'])
      expect(await scene.next()).toBeUndefined()
    })

    test('that was put aside runs again after a retry, with a clean record', async (scene) => {
      const { verbs } = scene
      await verbs.enqueue({ id: 'a' })
      for (let i = 0; i < 3; i += 1) await lose(scene, await scene.begun('a'))
      expect(await verbs.retry('a')).toMatchObject({ status: 'todo', queue: { lost: 0 } })
      await lose(scene, await scene.begun('a'))
      expect(await verbs.task('a')).toMatchObject({ status: 'todo', queue: { lost: 1 } })
    })

    test('takes its token with it at its end', async (scene) => {
      const { verbs, store } = scene
      await verbs.enqueue({ id: 'a' })
      const { lease } = await scene.claim('a')
      const hash = lease.terms!.token_hash!
      const token = () => store.read((view) => view.get('token', hash))
      expect(await token()).toMatchObject({ role: 'agent', agent: lease.holder })
      await scene.end('a')
      expect(await token()).toBeUndefined()
    })

    test('ends at its time limit, however often it is renewed', async (scene) => {
      const { verbs, machine } = scene
      await verbs.enqueue({ id: 'a', time_limit_ms: 90_000 })
      const { run, group } = await scene.begun('a')
      for (let i = 0; i < 4; i += 1) {
        machine.advance(20_000)
        await verbs.renew('task:a', byAgent(run), run.fence, 60_000)
        await verbs.heartbeat(byAgent(run))
      }
      await scene.check()
      machine.advance(9_999)
      expect(await verbs.task('a')).toMatchObject({ status: 'in_progress' })
      machine.advance(1)
      await verbs.sweep()
      await expect.poll(async () => (await verbs.task('a')).status).toBe('todo')
      expect(machine.stopped).toEqual([group])
    })

    test('ends at the time limit of its user, handed off or claimed again', async (scene) => {
      const { verbs, machine } = scene
      await verbs.settings({ lock_timeout_ms: 30_000 })
      await verbs.enqueue({ id: 'a' })
      await verbs.claim('a', callerOf('ada'), { queued: true })
      machine.advance(10_000)
      await verbs.handOff('task:a', callerOf('ada'), 'bob')
      machine.advance(10_000)
      await verbs.claim('a', callerOf('bob'), { queued: true })
      machine.advance(10_000)
      expect(await verbs.task('a')).toMatchObject({ status: 'todo' })
    })
  })
}
