import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { claimAndComplete, fillStore } from './claims.ts'
import { type DispatchLatency, measureDispatch } from './dispatch.ts'
import { claimTurn, fillQueue } from './queue_claims.ts'
import { type Goal, median, printGoals, printTable, progress, whole } from './report.ts'

const FEW = { tasks: 20_000, users: 2_000 }
const MANY = { tasks: 1_000_000, users: 100_000 }
const MANY_QUICK = { tasks: 100_000, users: 10_000 }
const CALLERS = 128
const PAIRS = 9_000
const ROUNDS = 5
const ROUNDS_QUICK = 2

const COST_RATIO_MAX = 1.3
const CORE_SHARE_MIN = 0.8
const ADDED_MS_MAX = 20

interface Series {
  name: string
  rates: number[]
  measure: () => Promise<number>
}

/** Claims from the queue, few and many tasks, beside claims without one; and a dispatch. */
export async function measureQueue(quick: boolean) {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const rounds = quick ? ROUNDS_QUICK : ROUNDS
  try {
    const series = await seriesOf(folder, quick ? MANY_QUICK : MANY)
    // The first round warms up the compiler, as in a daemon that has run for a while.
    for (let round = 0; round <= rounds; round += 1) {
      for (const { name, rates, measure } of series) {
        progress(`round ${round} of ${rounds}: ${name}`)
        const rate = await measure()
        if (round > 0) rates.push(rate)
      }
    }
    progress('')
    const rates = Object.fromEntries(series.map((each) => [each.name, median(each.rates)]))
    const dispatch = await measureDispatch(quick)
    const [core, few, many] = series.map((each) => median(each.rates)) as [number, number, number]
    return { rounds, rates, dispatch, goals: goalsOf(core, few, many, dispatch) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

async function seriesOf(folder: string, most: typeof MANY): Promise<Series[]> {
  progress('creating tasks')
  const plain = await fillStore(folder, FEW.tasks)
  const few = await fillQueue(folder, FEW.tasks, FEW.users)
  progress(`enqueueing ${whole(most.tasks)} tasks of ${whole(most.users)} users`)
  const many = await fillQueue(folder, most.tasks, most.users)
  const queued = (template: string) => () => claimAndComplete(template, CALLERS, PAIRS, claimTurn)
  const size = (each: typeof MANY) => `${whole(each.tasks)} tasks, ${whole(each.users)} users`
  return [
    { name: 'no queue (core)', rates: [], measure: () => claimAndComplete(plain, CALLERS, PAIRS) },
    { name: `queue, ${size(FEW)}`, rates: [], measure: queued(few) },
    { name: `queue, ${size(most)}`, rates: [], measure: queued(many) },
  ]
}

function goalsOf(core: number, few: number, many: number, dispatch: DispatchLatency): Goal[] {
  const cost = few / many
  const share = few / core
  const added_ms = dispatch.ours_ms - dispatch.node_ms
  return [
    {
      name: 'cost of a claim: many tasks and users / few',
      ratio: cost,
      goal: `≤ ${COST_RATIO_MAX}`,
      met: cost <= COST_RATIO_MAX,
    },
    {
      name: 'rate: queue / no queue',
      ratio: share,
      goal: `≥ ${CORE_SHARE_MIN}`,
      met: share >= CORE_SHARE_MIN,
    },
    {
      name: `dispatch / bare node (adds ${added_ms.toFixed(1)} ms)`,
      ratio: dispatch.ours_ms / dispatch.node_ms,
      goal: `< ${ADDED_MS_MAX} ms more`,
      met: added_ms < ADDED_MS_MAX,
    },
  ]
}

export function printQueue(result: Awaited<ReturnType<typeof measureQueue>>): void {
  const { rates, rounds, dispatch, goals } = result
  const head = `claim + complete per second, ${CALLERS} callers, median of ${rounds} rounds`
  console.log('')
  printTable([[head, ''], ...Object.entries(rates).map(([name, rate]) => [name, whole(rate)])])
  console.log('')
  printTable([
    [`enqueued to begun, median of ${dispatch.rounds}`, ''],
    ['leasehold, an idle slot', `${dispatch.ours_ms.toFixed(1)} ms`],
    ['bare node', `${dispatch.node_ms.toFixed(1)} ms`],
  ])
  console.log('')
  printGoals(goals)
}
