import { describe, expect, test } from 'vitest'
import { alertsNow, raiseAlert } from '../../../src/core/stats/alert.ts'
import type { Cause } from '../../../src/core/stats/cause.ts'
import { spanOf } from '../../../src/core/stats/span.ts'
import { healthOf, lookStuck } from '../../../src/core/stats/stuck.ts'
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

    test('counts as ready what an agent may claim, and not what a limit holds back', async () => {
      const { machine, store, verbs } = begin()
      await verbs.add('busy', ada, { id: 'one', user: 'grace' })
      await verbs.add('held back', ada, { id: 'two', user: 'grace' })
      await verbs.claim('one', bob, { ttl_ms: 600_000 })
      machine.advance(120_000)
      const waiting = await stuck(store)
      expect(waiting).toMatchObject([{ what: '1 task is unclaimed: no agent may claim it yet' }])
      await verbs.add('passed by', ada, { id: 'three', user: 'linus' })
      machine.advance(120_000)
      const [ready] = await stuck(store)
      expect(ready).toMatchObject({ what: '1 task is ready, but no agent has claimed it yet' })
      expect(ready!.about).toEqual([{ kind: 'task', id: 'three' }])
    })

    test('many deaths in the last hour need a person, whoever saw them', async () => {
      const { machine, store, verbs } = begin()
      if (!store.isDatabase) return
      for (let i = 0; i < 12; i += 1) await verbs.take(`lock-${i}`, ada, { ttl_ms: 1_000 })
      machine.advance(5_000)
      await verbs.sweep()
      const [cause] = await stuck(store)
      expect(cause).toMatchObject({ kind: 'deaths', severity: 'bad' })
      expect(cause!.what).toContain('12 leases expired')
      expect(healthOf([cause!]).state).toBe('degraded')
      machine.advance(2 * 3600_000)
      expect(await stuck(store)).toEqual([])
    })

    test('an alert says what is true when it is read, and nothing when it is over', async () => {
      const { machine, store, verbs } = begin()
      await verbs.take('a', ada, { ttl_ms: 3600_000 })
      await verbs.wait('a', bob, 'T1')
      const said = { subject: 'bob for a', message: 'frozen', quiet_ms: null }
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
        const what = '2 tasks (b and a) failed: "exit 1"; 1 task waits for that'
        expect(cause).toMatchObject({ kind: 'failed', severity: 'warn', tasks: 2, what })
        expect(cause!.about.at(-1)).toEqual({ kind: 'run', id: 'b.1' })
        expect(cause!.actions.map(({ input }) => input)).toEqual([{ id: 'b' }, { id: 'a' }])
      },
    )

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
