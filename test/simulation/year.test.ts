import { afterEach, describe, expect, test } from 'vitest'
import { seeAgent } from '../../src/core/locks/agent.ts'
import { plant } from '../../src/core/planted.ts'
import { DAY_MS, RETENTION, type Retention } from '../../src/core/retention.ts'
import { createToken } from '../../src/core/token.ts'
import { forgetOld } from '../../src/stores/writer/prune.ts'
import {
  callerOf,
  MachineSim,
  type Open,
  openMemory,
  openSqlite,
  temporaryFolder,
  Verbs,
} from '../support/helpers.ts'

const LONG = process.env['FAULTS'] === 'long'
const DAYS = 365
/** Of each kind, every day. Memory has no indexes, and looks at all rows with every scan. */
const PER_DAY = LONG ? 40 : 4

const days = (n: number) => ({ days: n, max: null })
const POLICY: Retention = { ...RETENTION, tasks: days(10), runs: days(10), agents: days(10) }

/** The highest fence that any lock was seen to have, and whether one came that is not above it. */
class Fences {
  private highest = 0
  regressed = false

  see(fence: number): void {
    this.regressed ||= fence <= this.highest
    this.highest = Math.max(this.highest, fence)
  }
}

/** One day's work: all of it new names, and one lock that comes back every other week. */
async function liveADay(verbs: Verbs, day: number, fences: Fences): Promise<void> {
  const ids = Array.from({ length: PER_DAY }, (_, i) => `${day}-${i}`)
  const ada = callerOf('ada')
  if (day % 14 === 0) {
    fences.see((await verbs.take('rare', ada)).fence)
    await verbs.release('rare', ada)
  }
  await Promise.all(
    ids.map(async (id) => {
      const agent = callerOf(`agent-${id}`)
      await verbs.store.write((view) => seeAgent(view, agent))
      await verbs.take(`lock-${id}`, agent)
      await verbs.release(`lock-${id}`, agent)
      await verbs.add('work', agent, { id })
      await verbs.claim(id, agent)
      await verbs.move(id, 'done', agent)
      await verbs.store.write((view) => {
        createToken(
          view,
          { hash: id, role: 'viewer', agent: null, scope: null, ttl_ms: DAY_MS },
          ada,
        )
        view.put('request', { key: id, input_hash: '', reply: {}, at_ms: view.now })
      })
    }),
  )
}

async function liveAYear(open: Open) {
  const machine = new MachineSim()
  const store = open(temporaryFolder(), machine)
  store.retention = POLICY
  const verbs = new Verbs(store)
  const fences = new Fences()
  const seen: { day: number; rows: Record<string, number>; bytes: number }[] = []
  for (let day = 1; day <= DAYS; day += 1) {
    await liveADay(verbs, day, fences)
    machine.advance(DAY_MS)
    await forgetOld(store, { retention: POLICY })
    if (day % 60 === 0 || day === DAYS) seen.push({ day, ...(await store.counter.sizes()) })
  }
  await store.close()
  return { fences, seen }
}

/** R53: what leaves in a day is what came a while before. */
describe('a year of steady work', () => {
  afterEach(() => plant(undefined))

  test(
    'leaves a store as large as it was after two months',
    async () => {
      const { seen, fences } = await liveAYear(openSqlite)
      const bound = (n: number) => (n + 2) * PER_DAY + 5
      for (const { rows } of seen) {
        expect(rows['lease']).toBeLessThanOrEqual(2 * bound(RETENTION.leases.days))
        expect(rows['run']).toBeLessThanOrEqual(bound(10))
        expect(rows['task']).toBeLessThanOrEqual(bound(10))
        expect(rows['agent']).toBeLessThanOrEqual(bound(10))
        expect(rows['token']).toBeLessThanOrEqual(bound(RETENTION.tokens.days + 1))
        expect(rows['request']).toBeLessThanOrEqual(bound(1))
        expect(rows['event']).toBeLessThanOrEqual(12 * bound(RETENTION.events.days))
        expect(rows['stat']).toBeLessThanOrEqual(62 * 24 + 200)
      }
      const [first, last] = [seen[0]!, seen.at(-1)!]
      expect(last.bytes).toBeLessThanOrEqual(first.bytes * 1.25)
      for (const [table, n] of Object.entries(last.rows)) {
        expect([table, n <= first.rows[table]! * 1.2 + 10]).toEqual([table, true])
      }
      expect(fences.regressed).toBe(false)
    },
    LONG ? 600_000 : 30_000,
  )

  test(
    'shows a fence that is forgotten with the row of its lease',
    async () => {
      plant('R53')
      expect((await liveAYear(openMemory)).fences.regressed).toBe(true)
    },
    LONG ? 600_000 : 30_000,
  )
})
