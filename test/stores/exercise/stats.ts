import { describe, expect, test } from 'vitest'
import { allCounts } from '../../../src/core/stats/stat.ts'
import { reportStats } from '../../../src/core/stats/report.ts'
import type { Store } from '../../../src/stores/writer/store.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { queueTests } from './queue_scene.ts'
import type { Begin, Scene } from './scene.ts'

const [ada, bob, eve] = [callerOf('ada'), callerOf('bob'), callerOf('eve')]
const HOUR_MS = 3600_000

const report = (store: Store, since_ms: number) =>
  store.read((view) =>
    reportStats(view, { from_ms: view.wall - since_ms, to_ms: view.wall + 1, limit: 10 }),
  )

const rowsOf = (store: Store, scale: string) =>
  store.read((view) => [...view.scan('stats_of', scale)].map(({ start_at }) => start_at))

/** A lock is taken and given back, so long after. */
async function hold({ machine, verbs }: Scene, ms: number): Promise<void> {
  await verbs.take('a', ada, { ttl_ms: 2 * ms + 1_000 })
  machine.advance(ms)
  await verbs.release('a', ada)
}

/** What is counted with every commit; a file store counts nothing. */
export function exerciseStats(begin: Begin): void {
  describe('statistics', () => {
    test('say who waited for what, and how long locks were held', async () => {
      const { machine, store, verbs } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 't1')
      await expectRefusal(verbs.take('a', eve), 'held')
      machine.advance(3_000)
      await verbs.release('a', ada)
      await verbs.wait('a', bob, 't1')
      const found = await report(store, HOUR_MS)
      if (!store.isDatabase) {
        expect(found).toMatchObject({ locks: { acquisitions: 0 }, events: {} })
        return
      }
      expect(found).toMatchObject({
        resolution_seconds: 60,
        locks: { acquisitions: 2, refused: 1, waits: 1, gave_up: 0, expired: 0 },
        contended: [{ name: 'a', refused: 1, waits: 1, waited_seconds: 3 }],
        wait: { count: 1, mean_seconds: 3 },
        hold: { count: 1, mean_seconds: 3 },
        longest_waits: [{ lock: 'a', agent: 'bob', waited_seconds: 3 }],
      })
      // Known to its bucket: more than 2 s, at most 5.
      expect(found.wait.p50_seconds).toBeGreaterThan(2)
      expect(found.wait.p99_seconds).toBeLessThanOrEqual(5)
      await expectRefusal(verbs.renew('a', ada, 1), 'fence_stale')
      machine.advance(120_000)
      await verbs.sweep()
      expect(await report(store, HOUR_MS)).toMatchObject({
        stale_writes: 1,
        agents: { lost: 1 },
        locks: { expired: 1 },
      })
    })

    test('charge a wait for several locks to the one that was held', async () => {
      const { machine, store, verbs } = begin()
      if (!store.isDatabase) return
      await verbs.take('c', ada)
      await verbs.wait(['a', 'b', 'c'], bob, 't1')
      machine.advance(4_000)
      await verbs.release('c', ada)
      await verbs.wait(['a', 'b', 'c'], bob, 't1')
      const { contended, wait } = await report(store, HOUR_MS)
      expect(contended).toEqual([{ name: 'c', refused: 0, waits: 1, waited_seconds: 4 }])
      expect(wait.count).toBe(1)
    })

    test('count refusals that nothing was committed after', async () => {
      const { store, verbs, beside } = begin()
      await verbs.take('a', ada)
      const other = beside()
      await expectRefusal(other.take('a', bob), 'held')
      await other.store.close()
      if (!store.isDatabase) return
      expect(await report(store, HOUR_MS)).toMatchObject({
        locks: { acquisitions: 1, refused: 1 },
        contended: [{ name: 'a', refused: 1 }],
      })
    })

    test('are kept by the minute, then by the hour, and their sum for ever', async () => {
      const scene = begin()
      const { machine, store } = scene
      if (!store.isDatabase) return
      for (let i = 0; i < 4; i += 1) {
        await hold(scene, 1_000)
        machine.advance(50 * 60_000)
      }
      await hold(scene, 1_000)
      const minutes = await rowsOf(store, 'minute')
      expect(minutes).toHaveLength(2)
      expect(await rowsOf(store, 'hour')).toHaveLength(3)
      expect((await report(store, 30 * 60_000)).locks.acquisitions).toBe(1)
      const day = await report(store, 24 * HOUR_MS)
      expect(day).toMatchObject({ resolution_seconds: 3600, locks: { acquisitions: 5 } })
      expect(day.series.map(({ acquisitions }) => acquisitions)).toEqual([2, 1, 1, 1])
      // Times in which nothing was written are there too: nothing happened then.
      const lately = (await report(store, HOUR_MS)).series.map(({ acquisitions }) => acquisitions)
      expect(lately).toEqual([1, ...Array.from({ length: 49 }, () => 0), 1])
      machine.advance(61 * 24 * HOUR_MS)
      await hold(scene, 1_000)
      machine.advance(60_000)
      await hold(scene, 1_000)
      expect(await rowsOf(store, 'hour')).toHaveLength(1)
      expect((await store.read(allCounts)).grants).toBe(7)
    })

    test('lose nothing when the clock on the wall is set back, or others count too', async () => {
      const scene = begin()
      const { machine, store } = scene
      if (!store.isDatabase) return
      const other = scene.beside()
      for (const jump_ms of [60_000, -60_000, 2 * HOUR_MS, -2 * HOUR_MS, 0]) {
        await hold(scene, 1_000)
        machine.jumpWall(jump_ms)
        await other.take('b', bob)
        await other.release('b', bob)
      }
      const counts = await store.read(allCounts)
      expect(counts.grants).toBe(10)
      expect(counts.events['lease.released']).toBe(10)
    })

    queueTests(begin)('say how fairly run time was shared', async (scene) => {
      const { machine, store, verbs } = scene
      if (!store.isDatabase) return
      await verbs.enqueue({ id: 'a', user: 'ann' })
      await verbs.enqueue({ id: 'b', user: 'ben' })
      machine.advance(2_000)
      await scene.begun('a')
      machine.advance(30_000)
      await scene.end('a')
      await scene.begun('b')
      machine.advance(10_000)
      await scene.end('b')
      const { fairness, queue, tasks, series, throughput } = await report(store, HOUR_MS)
      expect(fairness).toEqual({
        index: 0.8,
        users: [
          { user: 'ann', weight: 1, runs: 1, run_seconds: 30, share: 0.75, fair_share: 0.5 },
          { user: 'ben', weight: 1, runs: 1, run_seconds: 10, share: 0.25, fair_share: 0.5 },
        ],
      })
      const [point] = series
      expect(series).toHaveLength(1)
      expect(point).toMatchObject({ claimed: 2, started: 2, done: 2, ended: 2, is_open: true })
      expect(point!.queue_p95_seconds).toBeGreaterThan(0)
      const waits = throughput.users.map((each) => [each.name, each.failed, each.queue_p95_seconds])
      expect(waits).toEqual([
        ['ann', 0, expect.closeTo(1.95)],
        ['ben', 0, expect.closeTo(58.5)],
      ])
      const both = {
        ...{ claimed: 2, ended: 2, failed: 0, run_seconds: 40 },
        ...{ queue_p50_seconds: expect.closeTo(2), queue_p95_seconds: expect.closeTo(57) },
        ...{ claimed_series: [2], ended_series: [2] },
      }
      expect(throughput.projects).toEqual([{ name: 'web', ...both }])
      expect(throughput.agents).toEqual([{ name: expect.stringMatching(/^[^:]+$/), ...both }])
      expect(queue).toMatchObject({ enqueued: 2, started: 2, depth_now: 0, wait: { count: 2 } })
      expect(queue.wait.mean_seconds).toBe(17)
      expect(tasks).toMatchObject({ created: 2, claimed: 2, done: 2, failed: 0 })
    })
  })
}
