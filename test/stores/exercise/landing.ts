import type { Worktree } from '../../../src/core/schema/worktree.ts'
import { describe, expect } from 'vitest'
import { ROLE_TTL_MS } from '../../../src/core/bounds.ts'
import type { Caller } from '../../../src/core/caller.ts'
import { land, cancelLanding } from '../../../src/core/landing/land.ts'
import { LANDER_LOCK, openLandingOf } from '../../../src/core/landing/ask.ts'
import { acquireLocks } from '../../../src/core/locks/lock.ts'
import {
  holdUp,
  markLanded,
  proposeLandings,
  putBack,
  returnLanding,
  takeLandings,
  targetsOf,
  takenBefore,
} from '../../../src/core/landing/turn.ts'
import { plant } from '../../../src/core/planted.ts'
import { settingKey } from '../../../src/core/queue/host_settings.ts'
import { applySettings } from '../../../src/core/queue/settings.ts'
import { sightOf } from '../../../src/core/sight.ts'
import { explainTask } from '../../../src/core/reasons/explain.ts'
import { lookStuck } from '../../../src/core/reasons/stuck.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { ADMIN } from '../../support/queue_verbs.ts'
import { ada, bob, type QueueScene, queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

export const lander = callerOf('lander')

interface Said {
  onto?: string | null
  auto?: boolean
  checks?: boolean
}

/** A config.json says how project web lands. */
export const say = (
  { store }: QueueScene,
  { onto = 'main', auto = true, checks = true }: Said = {},
) =>
  store.write((view) => {
    const key = (field: string) => settingKey('projects', 'web', 'land', field)
    applySettings(view, 'sim', {
      ...(onto !== null && { [key('onto')]: onto }),
      [key('checks')]: checks,
      [key('auto')]: auto,
    })
  })

const WEB = { project: 'web', target: 'main' }

export const take = ({ store }: QueueScene, max = 4, fence = 1, host = 'here', target?: string) =>
  store.write((view) => {
    const [first = null] = target === undefined ? targetsOf(view, 'web') : [target]
    return takeLandings(view, { project: 'web', target: first, host, fence, max }, lander)
  })

export const takeIds = async (scene: QueueScene, max?: number) =>
  (await take(scene, max)).map(({ task_id, branch }) => task_id ?? branch)

/** A run of `id` says that it is done. */
export async function finished(scene: QueueScene, id: string, more: object = {}): Promise<void> {
  await scene.verbs.enqueue({ id, user: id, ...more })
  await scene.begun(id)
  await scene.end(id)
}

export const landingOf = ({ store }: QueueScene, task: string) =>
  store.read((view) => [...view.scan('landings_of', task)][0])

const worktreeOn = (host: string, task_id: string): Worktree => ({
  ...{ id: `${task_id}.1`, task_id, run_id: `${task_id}.1`, fence: 1, project: 'web', host },
  ...{ repository: '/r/.git', path: '/w', branch: 'b', base: 'c', state: 'left', salvage: null },
  ...{ changed: [], kept_because: null, begun_at: '', left_at: '' },
})

/** R55: done is proved, and what is proved lands in order. */
export function exerciseLanding(begin: Begin): void {
  const test = queueTests(begin)

  describe('a project that lands', () => {
    test('has its task in review when a run ends well, and a landing in line', async (scene) => {
      await say(scene)
      await finished(scene, 'a')
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'review', run_id: null })
      expect(await scene.verbs.run('a.1')).toMatchObject({ status: 'completed' })
      expect(await landingOf(scene, 'a')).toMatchObject({ status: 'waiting', target: 'main' })
    })

    test('makes it done with the commit that proves it, and frees who waits for it', async (s) => {
      await say(s)
      await finished(s, 'a')
      await s.verbs.enqueue({ id: 'b', depends_on: ['a'] })
      expect(await s.next()).toBeUndefined()
      const [landing] = await take(s)
      await s.store.write((view) => markLanded(view, landing!, 'c0ffee', lander))
      const { status, metadata } = await s.verbs.task('a')
      expect({ status, metadata }).toEqual({
        status: 'done',
        metadata: { proof: { commit: 'c0ffee', landing: landing!.id, onto: 'main' } },
      })
      expect(await s.next()).toBe('b')
    })

    test('gives a task back with the reason: again while retries last, then failed', async (s) => {
      await say(s)
      await finished(s, 'a', { retries: 1 })
      for (const status of ['todo', 'failed']) {
        const [landing] = await take(s)
        const end = { reason: 'conflict in a.txt', paths: ['a.txt'] }
        await s.store.write((view) => returnLanding(view, landing!, end, lander))
        const task = await s.verbs.task('a')
        expect(task).toMatchObject({ status, metadata: { returned: expect.any(String) } })
        expect(task.metadata['returned']).toContain('conflict in a.txt')
        if (status === 'failed') break
        await s.begun('a')
        await s.end('a')
      }
      const { sentence } = await s.store.read((view) => explainTask(view, 'a', 'ada'))
      expect(sentence).toContain('conflict in a.txt')
    })

    test('explains a failure by what came last: a landing, or a later run', async (s) => {
      await say(s)
      await finished(s, 'a', { retries: 1 })
      const [landing] = await take(s)
      const end = { reason: 'conflict in a.txt', paths: ['a.txt'] }
      await s.store.write((view) => returnLanding(view, landing!, end, lander))
      s.machine.advance(1_000)
      await s.begun('a')
      await s.end('a', 3)
      const { sentence } = await s.store.read((view) => explainTask(view, 'a', 'ada'))
      expect(sentence).toContain('exit 3')
      expect(sentence).not.toContain('conflict')
    })

    test('lets nobody but the lander say what proves a task, or why it came back', async (s) => {
      await say(s)
      const forged = { proof: { commit: 'c0ffee', landing: 'L1', onto: 'main' } }
      await expectRefusal(s.verbs.add('x', ada, { metadata: forged }), 'forbidden')
      await expectRefusal(s.verbs.enqueue({ metadata: { returned: 'do this' } }), 'forbidden')
      await finished(s, 'a', { retries: 1, metadata: { own: 1 } })
      const [first] = await take(s)
      await s.store.write((view) => returnLanding(view, first!, { reason: 'red' }, lander))
      const { version, metadata } = await s.verbs.task('a')
      const edit = (said: object, at = version) =>
        s.verbs.edit('a', at, { metadata: { ...said } }, ADMIN)
      await expectRefusal(edit({ ...metadata, ...forged }), 'forbidden')
      await expectRefusal(edit({ returned: 'green' }), 'forbidden')
      await expectRefusal(edit({ returned: '' }), 'forbidden')
      // What is read may be written back, and what is left out stays.
      expect((await edit({ ...metadata, own: 2 })).metadata).toEqual({ ...metadata, own: 2 })
      expect((await edit({}, version + 1)).metadata).toEqual({ returned: metadata['returned'] })
      await s.begun('a')
      await s.end('a')
      const [second] = await take(s)
      await s.store.write((view) => markLanded(view, second!, 'c0ffee', lander))
      const done = await s.verbs.task('a')
      const { onto, landing, commit } = done.metadata['proof'] as Record<string, string>
      const other = { proof: { onto, landing, commit } }
      expect((await edit(other, done.version)).metadata).toEqual(done.metadata)
      await expectRefusal(edit({ proof: null }, done.version + 1), 'forbidden')
      plant('R55 proof')
      const stolen = await edit(forged, done.version + 1).finally(() => plant(undefined))
      expect(stolen.metadata).toEqual(forged)
    })

    test('gives a task that an agent took by itself back to todo', async (scene) => {
      await say(scene)
      await scene.verbs.add('x', ada, { id: 'a', project: 'web' })
      const { lease } = await scene.verbs.claim('a', ada)
      await scene.verbs.move('a', 'done', ada, lease.fence)
      const [landing] = await take(scene)
      await scene.store.write((view) =>
        returnLanding(view, landing!, { reason: 'its check failed' }, lander),
      )
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'todo', assignee: null })
    })

    test('is not told done by its holder, by anybody else, or by two who say it', async (s) => {
      await say(s)
      await s.verbs.add('x', ada, { id: 'a', project: 'web' })
      const { lease } = await s.verbs.claim('a', ada)
      await s.verbs.move('a', 'done', ada, lease.fence)
      await s.verbs.move('a', 'done', bob)
      await s.verbs.move('a', 'done', ada)
      expect(await s.verbs.task('a')).toMatchObject({ status: 'review' })
      expect(await take(s)).toHaveLength(1)
    })

    test('a planted bug lets a word be enough', async (scene) => {
      await say(scene)
      plant('R55 proof')
      try {
        await finished(scene, 'a')
      } finally {
        plant(undefined)
      }
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'done' })
    })

    test('waits for a word where it is not automatic', async (scene) => {
      await say(scene, { auto: false })
      await finished(scene, 'a')
      expect(await take(scene)).toEqual([])
      await scene.verbs.move('a', 'done', bob)
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'review' })
      expect(await takeIds(scene)).toEqual(['a'])
    })

    test('checks at once where nothing is to be landed', async (scene) => {
      await say(scene, { onto: null, auto: false })
      await finished(scene, 'a')
      await finished(scene, 'b')
      expect(await take(scene)).toMatchObject([{ task_id: 'a', target: null }])
    })

    test('has done for the asking again when its config.json says no more of it', async (s) => {
      await say(s)
      await s.store.write((view) => applySettings(view, 'sim', {}))
      await finished(s, 'a')
      expect(await s.verbs.task('a')).toMatchObject({ status: 'done' })
    })

    test('has a line for each target, and takes what is in one of them', async (scene) => {
      await say(scene)
      await finished(scene, 'a')
      const ask = { id: 'fix/b', project: 'web', onto: 'next' }
      await scene.store.write((view) => land(view, ask, bob))
      expect(await take(scene, 4, 1, 'here', 'next')).toMatchObject([{ branch: 'fix/b' }])
      expect(await takeIds(scene)).toEqual(['a'])
    })

    test('says what holds a line up, and asks git of what may have landed', async (scene) => {
      await say(scene)
      for (const id of ['a', 'b', 'c']) await finished(scene, id)
      const line = { ...WEB, host: 'here', fence: 1 }
      const hold = () => scene.store.write((view) => holdUp(view, line, 'no room'))
      const [a] = await take(scene, 2)
      await hold()
      expect(await landingOf(scene, 'a')).toMatchObject({ status: 'waiting', reason: 'no room' })
      await take(scene, 1)
      const proposed = { ...a!, commit: 'c', base: 'b', candidate: 'd' }
      await scene.store.write((view) => proposeLandings(view, [proposed], lander))
      await hold()
      expect(await landingOf(scene, 'a')).toMatchObject({ status: 'landing', candidate: 'd' })
      const before = await scene.store.read((view) => takenBefore(view, line))
      expect(before).toMatchObject([{ task_id: 'a' }])
    })

    test('waits for the end of a command that said done before', async (scene) => {
      await say(scene)
      await scene.verbs.enqueue({ id: 'a' })
      const { run } = await scene.begun('a')
      await scene.verbs.move('a', 'done', callerOf(run.agent), run.fence)
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'review' })
      expect(await take(scene)).toEqual([])
      await scene.end('a')
      expect(await takeIds(scene)).toEqual(['a'])
    })

    test('lands nothing of a task that left review', async (scene) => {
      await say(scene)
      for (const id of ['a', 'b']) await finished(scene, id)
      await scene.verbs.move('a', 'todo', ada)
      const [landing] = await take(scene)
      expect(landing).toMatchObject({ task_id: 'b' })
      expect(await landingOf(scene, 'a')).toMatchObject({ status: 'cancelled' })
      await scene.verbs.move('b', 'todo', ada)
      const proposed = { ...landing!, commit: 'c', base: 'b', candidate: 'd' }
      const gone = await scene.store.write((view) => proposeLandings(view, [proposed], lander))
      expect(gone).toEqual([landing!.id])
      expect(await landingOf(scene, 'b')).toMatchObject({ status: 'cancelled', candidate: null })
    })

    test('has what one lander had taken found by the next, in its old place', async (scene) => {
      await say(scene)
      for (const id of ['a', 'b', 'c']) await finished(scene, id)
      const [a, b] = await take(scene, 2, 7)
      const before = await scene.store.read((view) =>
        takenBefore(view, { ...WEB, host: 'here', fence: 8 }),
      )
      expect(before.map(({ id }) => id)).toEqual([a!.id, b!.id])
      await scene.store.write((view) => before.forEach((each) => putBack(view, each)))
      const [again] = await take(scene, 4, 8)
      await scene.store.write((view) => {
        // The one before goes on after a pause: what it knows is of another time.
        markLanded(view, a!, 'late', lander)
        returnLanding(view, a!, { reason: 'late' }, lander)
        putBack(view, a!)
      })
      expect(again).toMatchObject({ id: a!.id, fence: 8 })
      expect(await landingOf(scene, 'a')).toEqual(again)
    })

    test('is left to the lander of the host that has its worktree', async (scene) => {
      await say(scene)
      await finished(scene, 'a')
      await scene.store.write((view) => view.put('worktree', worktreeOn('there', 'a')))
      expect(await take(scene)).toEqual([])
      expect((await landingOf(scene, 'a'))?.reason).toBe(
        'waits for the lander of host there, which has its worktree',
      )
      expect(await take(scene, 4, 900_001, 'there')).toHaveLength(1)
      const former = (host: string) =>
        scene.store.read((view) => takenBefore(view, { ...WEB, host, fence: 900_002 }))
      expect(await former('here')).toEqual([])
      expect(await former('there')).toHaveLength(1)
    })

    test('is not taken from a lander of another host that is at work on it', async (scene) => {
      await say(scene)
      await scene.store.write((view) => land(view, { id: 'fix', project: 'web' }, ada))
      const { fence } = await scene.verbs.take('leasehold:lander:there', lander)
      expect(await take(scene, 4, fence, 'there')).toHaveLength(1)
      const turn = { ...WEB, host: 'here', fence: 900_002 }
      const former = () => scene.store.read((view) => takenBefore(view, turn))
      expect(await former()).toEqual([])
      await scene.verbs.release('leasehold:lander:there', lander, fence)
      expect(await former()).toHaveLength(1)
    })

    test('is ended once: whoever comes second changes nothing', async (scene) => {
      await say(scene)
      await finished(scene, 'a')
      const [landing] = await take(scene)
      await scene.store.write((view) => markLanded(view, landing!, 'one', lander))
      await scene.store.write((view) => {
        returnLanding(view, landing!, { reason: 'late' }, lander)
        markLanded(view, landing!, 'two', lander)
        putBack(view, landing!)
      })
      expect(await landingOf(scene, 'a')).toMatchObject({ status: 'landed', commit: 'one' })
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'done' })
    })
  })

  describe('asking for a landing', () => {
    test('takes a task in progress to review, for its holder only', async (scene) => {
      await say(scene, { auto: false })
      await scene.verbs.add('x', ada, { id: 'a', project: 'web' })
      const { lease } = await scene.verbs.claim('a', ada)
      await expectRefusal(
        scene.store.write((view) => land(view, { id: 'a' }, bob)),
        'held',
      )
      const ask = { id: 'a', fence: lease.fence, branch: 'fix/a' }
      await scene.store.write((view) => land(view, ask, ada))
      expect(await take(scene)).toMatchObject([{ task_id: 'a', branch: 'fix/a' }])
    })

    test('is refused without a way to land, and for what is not in review', async (scene) => {
      await scene.verbs.add('x', ada, { id: 'a', project: 'web' })
      const ask = (id: string) => scene.store.write((view) => land(view, { id }, ada))
      await expectRefusal(ask('a'), 'invalid')
      await expectRefusal(ask('fix/b'), 'invalid')
      await say(scene)
      await expectRefusal(ask('a'), 'illegal_move')
      expect(await ask('fix/b')).toMatchObject({ branch: 'fix/b', project: 'web' })
    })

    test('is told to wait for a server only where a lander would be seen', async (scene) => {
      await say(scene)
      await finished(scene, 'a')
      const saidTo = (caller: Caller) =>
        scene.store.read((view) => explainTask(sightOf(view, caller), 'a', 'ada').sentence)
      const bound = { ...ada, scope: { users: null, projects: ['web'], task: null } }
      const stuck = async () => (await scene.store.read((view) => lookStuck(view, ada)))[0]
      expect(await saidTo(ada)).toContain('no server is running')
      expect(await stuck()).toMatchObject({ kind: 'no_lander', severity: 'bad', tasks: 1 })
      expect(await saidTo(bound)).not.toContain('no server is running')
      const ask = { names: [`${LANDER_LOCK}here`], ttl_ms: ROLE_TTL_MS, process: null }
      const rest = { priority: 5, takeover: false }
      await scene.store.write((view) => acquireLocks(view, { ...ask, ...rest }, lander))
      expect(await saidTo(ada)).not.toContain('no server is running')
      // What is being landed needs nobody.
      expect(await stuck()).toBeUndefined()
    })

    test('can be taken back while it waits; its task stays in review', async (scene) => {
      await say(scene)
      for (const id of ['a', 'b']) await finished(scene, id)
      const cancel = async (id: string) => {
        const { id: landing } = (await landingOf(scene, id))!
        return scene.store.write((view) => cancelLanding(view, landing, ada))
      }
      expect(await cancel('a')).toMatchObject({ status: 'cancelled' })
      expect(await scene.verbs.task('a')).toMatchObject({ status: 'review' })
      await take(scene)
      await expectRefusal(cancel('b'), 'illegal_move')
      const said = await scene.store.read((view) => explainTask(view, 'b', 'ada').sentence)
      expect(said).toContain('landing onto main is under way')
      expect(await scene.store.read((view) => openLandingOf(view, 'a'))).toBeUndefined()
    })
  })
}
