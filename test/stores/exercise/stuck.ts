import { describe, expect, test } from 'vitest'
import { alertsNow, raiseAlert } from '../../../src/core/reasons/alert.ts'
import type { Cause } from '../../../src/core/reasons/stuck.ts'
import { spanOf } from '../../../src/core/stats/span.ts'
import { explainTask, explainWaiter } from '../../../src/core/reasons/explain.ts'
import { healthOf, lookStuck } from '../../../src/core/reasons/stuck.ts'
import type { View } from '../../../src/core/view.ts'
import type { Store } from '../../../src/stores/writer/store.ts'
import { callerOf } from '../../support/helpers.ts'
import { queueTests } from './queue_scene.ts'
import type { Begin } from './scene.ts'

const [ada, bob, cyd] = [callerOf('ada'), callerOf('bob'), callerOf('cyd')]

const stuck = (store: Store, caller = ada): Promise<Cause[]> =>
  store.read((view) => lookStuck(view, caller, []))

/** A view that counts what is read through it. */
function counted(view: View): { view: View; reads: () => number } {
  let reads = 0
  const get: View['get'] = (table, key) => {
    reads += 1
    return view.get(table, key)
  }
  const scan = function* (...asked: Parameters<View['scan']>) {
    for (const row of view.scan(...asked)) {
      reads += 1
      yield row
    }
  } as View['scan']
  const { now, wall, at } = view
  const counting = Object.assign(Object.create(view) as View, { get, scan })
  Object.defineProperties(counting, {
    now: { value: now },
    wall: { value: wall },
    at: { value: at },
  })
  return { view: counting, reads: () => reads }
}

/** What is stuck, and why. */
export function exerciseStuck(begin: Begin): void {
  describe('what is stuck', () => {
    test('is told by who waits for nobody, however many wait in a row behind', async () => {
      const { machine, store, verbs } = begin()
      await verbs.takeAll(['git:web', 'license'], ada)
      await verbs.take('b', bob)
      await verbs.wait('git:web', bob, 't1')
      machine.advance(1_000)
      await verbs.wait('b', cyd, 't2')
      await verbs.wait('license', callerOf('eve'), 't3')
      machine.advance(9_000)
      const [cause, ...others] = await stuck(store)
      expect(others).toEqual([])
      expect(cause).toMatchObject({
        kind: 'held',
        severity: 'info',
        what: 'ada holds git:web and license; 3 agents wait, the longest 10 s',
        agents: 3,
      })
      expect(cause!.about.slice(0, 3)).toEqual([
        { kind: 'agent', id: 'ada' },
        { kind: 'lock', id: 'git:web' },
        { kind: 'lock', id: 'license' },
      ])
      expect(healthOf([cause!])).toEqual({ state: 'ok', why: '' })
      await verbs.release('git:web', ada)
      await verbs.release('license', ada)
      // Whoever was called has not come yet: bob still holds what cyd waits for.
      const [next] = await stuck(store)
      expect(next!.what).toMatch(/^bob holds b; 1 agent waits/)
    })

    test('goes through a line: who waits behind one that waits for another lock too', async () => {
      const { store, verbs } = begin()
      await verbs.take('a', ada)
      await verbs.wait(['a', 'b'], bob, 'M')
      await verbs.wait('b', cyd, 'W')
      const [cause, ...others] = await stuck(store)
      expect(others).toEqual([])
      expect(cause).toMatchObject({ kind: 'held', agents: 2 })
      expect(cause!.what).toMatch(/^ada holds a; 2 agents wait/)
      const { sentence, chain } = await store.read((view) => explainWaiter(view, 'b', 'cyd'))
      expect(chain).toMatchObject([
        expect.stringMatching(/^bob is number 1 of 1 in the line for a; ada holds it until 2/),
      ])
      expect(sentence).toBe(
        `cyd is number 2 of 2 in the line for b; it is free, but bob comes first. ${chain[0]}.`,
      )
      const own = await store.read((view) => explainWaiter(view, 'b', 'bob'))
      expect(own.sentence).toMatch(
        /^bob is number 1 of 2 in the line for b; it is free; it needs a/,
      )
      expect(own.chain).toEqual(chain)
    })

    test('is a holder that was not heard of for half its TTL', async () => {
      const { machine, store, verbs } = begin()
      await verbs.take('a', ada, { ttl_ms: 60_000 })
      await verbs.wait('a', bob, 't1')
      machine.advance(5_000)
      expect(await stuck(store)).toMatchObject([{ kind: 'held' }])
      machine.advance(30_000)
      // The waiter speaks for itself, the holder does not.
      await verbs.wait('a', bob, 't1')
      const silent = { kind: 'holder_silent', severity: 'warn' }
      expect(await stuck(store)).toMatchObject([silent])
    })

    test('counts as ready what an agent may claim, and tells what holds the others', async () => {
      const { machine, store, verbs } = begin()
      await verbs.add('busy', ada, { id: 'one', user: 'grace' })
      await verbs.add('held back', ada, { id: 'two', user: 'grace' })
      await verbs.claim('one', bob, { ttl_ms: 600_000 })
      machine.advance(120_000)
      const what = '1 task waits because user grace is busy with task one'
      expect(await stuck(store)).toMatchObject([{ kind: 'user_busy', what }])
      await verbs.add('passed by', ada, { id: 'three', user: 'linus' })
      machine.advance(120_000)
      const ready = (await stuck(store)).find(({ kind }) => kind === 'unclaimed')
      expect(ready).toMatchObject({ what: '1 task is ready, but no agent has claimed it yet' })
      expect(ready!.about).toEqual([
        { kind: 'user', id: 'linus' },
        { kind: 'task', id: 'three' },
      ])
    })

    test('is a task that waits for one that is cancelled', async () => {
      const { store, verbs } = begin()
      await verbs.add('first', ada, { id: 'a' })
      await verbs.add('then', ada, { id: 'b', depends_on: ['a'] })
      await verbs.move('a', 'cancelled', ada)
      const what = '1 task waits for task a, which is cancelled'
      const input = { id: 'a', status: 'todo' }
      expect(await stuck(store)).toMatchObject([
        { kind: 'dependency', severity: 'warn', tasks: 1, behind: 0, actions: [{ input }] },
      ])
      expect((await stuck(store))[0]!.what).toBe(what)
    })

    test('many deaths in the last hour need a person, whoever saw them', async () => {
      const { machine, store, verbs } = begin()
      if (!store.isDatabase) return
      // One holder, however many locks it had.
      for (let i = 0; i < 12; i += 1) await verbs.take(`lock-${i}`, ada, { ttl_ms: 1_000 })
      machine.advance(5_000)
      await verbs.sweep()
      expect(await stuck(store)).toEqual([])
      for (let i = 0; i < 12; i += 1) {
        await verbs.take(`lock-${i}`, callerOf(`agent-${i}`), { ttl_ms: 1_000 })
      }
      machine.advance(5_000)
      await verbs.sweep()
      const [cause] = await stuck(store)
      expect(cause).toMatchObject({ kind: 'deaths', severity: 'warn', agents: 13 })
      // What they did comes back by itself.
      expect(healthOf([cause!]).state).toBe('ok')
      machine.advance(2 * 3600_000)
      expect(await stuck(store)).toEqual([])
    })

    test('an alert says what is true when it is read, and nothing when it is over', async () => {
      const { machine, store, verbs } = begin()
      await verbs.take('a', ada, { ttl_ms: 3600_000 })
      await verbs.wait('a', bob, 'T1')
      const said = { subject: 'bob for a', message: 'frozen', lasts_ms: null }
      await store.write((view) => {
        raiseAlert(view, { key: 'long_wait:T1', rule: 'long_wait', ...said }, false)
        raiseAlert(
          view,
          { ...said, key: 'lock_expired:a', rule: 'lock_expired', subject: 'a' },
          false,
        )
      })
      machine.advance(7_000)
      const alerts = () => store.read((view) => [...alertsNow(view)])
      expect(await alerts()).toMatchObject([
        { message: 'bob has waited for a for 7 s', about: [{ kind: 'lock', id: 'a' }, {}] },
      ])
      await verbs.release('a', ada)
      await verbs.wait('a', bob, 'T1')
      // Bob has it: nobody waits, and the lock that had expired is held again.
      expect(await alerts()).toEqual([])
    })

    const queueTest = queueTests(begin)
    queueTest(
      'is read from counters: it costs the same with ten times as many tasks',
      async (scene) => {
        const { store, verbs } = scene
        const costs: number[] = []
        for (const size of [5, 50]) {
          for (let i = 0; i < size; i += 1) {
            for (const user of ['ann', 'ben'])
              await verbs.enqueue({ id: `${user}-${size}-${i}`, user })
          }
          if (size === 5) for (const id of ['ann', 'ben']) await scene.begun(`${id}-5-0`)
          costs.push(
            await store.read((view) => {
              const { view: counting, reads } = counted(view)
              lookStuck(counting, ada, [])
              return reads()
            }),
          )
        }
        expect(costs[1]).toBe(costs[0])
        expect(await stuck(store)).toMatchObject([{ kind: 'user_busy', tasks: 108 }])
      },
    )

    queueTest(
      'failures are told once by their last error, with what waits for them',
      async (scene) => {
        const { store, verbs, machine } = scene
        for (const id of ['a', 'b']) {
          await verbs.enqueue({ id, user: 'ann' })
          await scene.begun(id)
          machine.advance(1_000)
          await scene.end(id, 1)
        }
        await verbs.enqueue({ id: 'c', user: 'ann', depends_on: ['a'] })
        const [cause, ...others] = await stuck(store)
        expect(others).toEqual([])
        const what = '2 tasks (a and b) failed: "exit 1"; 1 task waits for that'
        expect(cause).toMatchObject({ kind: 'failed', severity: 'warn', tasks: 2, what })
        expect(cause!.about).toContainEqual({ kind: 'run', id: 'b.1' })
        expect(cause!.actions.map(({ input }) => input)).toEqual([{ id: 'a' }, { id: 'b' }])
      },
    )

    queueTest('a chain is told to its root, and what is behind counts', async (scene) => {
      const { store, verbs } = scene
      for (const id of ['a', 'b']) await verbs.enqueue({ id, user: 'ann' })
      await verbs.enqueue({ id: 'c', user: 'ben', depends_on: ['b'] })
      await verbs.enqueue({ id: 'd', user: 'cem', depends_on: ['c'] })
      const { run, process } = await scene.begun('a')
      await verbs.take('git:web', bob)
      const explained = () => store.read((view) => explainTask(view, 'd', 'ada'))
      const chain = [
        'Task c waits for task b, which is todo',
        'Task b waits because user ann is busy with task a',
      ]
      expect(await explained()).toMatchObject({
        sentence: `Task d waits for task c, which is todo. ${chain.join('. ')}.`,
        chain,
      })
      const [busy] = await stuck(store)
      expect(busy).toMatchObject({ kind: 'user_busy', tasks: 1, behind: 2 })
      // What runs goes on, unless its agent waits in turn.
      await verbs.wait('git:web', callerOf(run.agent, { process }), 'T', { process })
      const { chain: longer } = await explained()
      expect(longer.slice(2)).toMatchObject([
        expect.stringMatching(/in the line for git:web; bob holds/),
      ])
    })

    queueTest('a hold is one span, however many events tell of its end', async (scene) => {
      const { machine, store, verbs } = scene
      await verbs.enqueue({ id: 'a', user: 'ann' })
      await scene.begun('a')
      machine.advance(30_000)
      await scene.end('a')
      const events = await store.events(0, 1000)
      expect(events.map(({ type }) => type)).toEqual(
        expect.arrayContaining(['task.moved', 'run.ended']),
      )
      const run = await verbs.run('a.1')
      expect(events.flatMap((event) => spanOf(event) ?? [])).toEqual([
        {
          kind: 'held',
          lock: 'task:a',
          agent: run.agent,
          task: 'a',
          fence: run.fence,
          from: run.started_at,
          to: run.ended_at,
          ending: 'done',
        },
      ])
    })
  })
}
