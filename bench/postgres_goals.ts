import { type Goal, whole } from './report.ts'

export const QUEUE = 'leasehold, from the queue, one per user'
export const PLAIN = 'leasehold, next ready task'
export const LED = 'led'

/** Many agents over many processes: what they get together, and how long each waits for a claim. */
const AGENTS = '1,000 agents in 40 processes'
const RATE_MIN = 2_000
const P99_MS_MAX = 500

interface Measured {
  rates: Record<string, number>
  p99_ms: Record<string, number>
}

/** What must be shown on PostgreSQL, of what was measured: ratios of one run. */
export function goalsOf({ rates, p99_ms }: Measured): Goal[] {
  const rate = (name: string) => rates[name] ?? Number.NaN
  const best = (begin: string) => {
    const found = Object.keys(rates).filter((name) => name.startsWith(begin))
    return Math.max(...found.map(rate))
  }
  const goal = (name: string, ratio: number, least: number): Goal => {
    return { name, ratio, goal: `≥ ${least}`, met: ratio >= least }
  }
  // With a leader, asks have request ids, as those of our clients. Against one process that asks
  // the same, and against one whose asks have none.
  const split = (kind: string, what: string, least: number) =>
    ['1 × 128, ' + LED, '1 × 128'].map((one, i) =>
      goal(
        `${kind}, ${what} with a leader / 1 × 128${i === 0 ? ', the same calls' : ''}`,
        rate(`${kind}, ${what}, ${LED}`) / rate(`${kind}, ${one}`),
        least,
      ),
    )
  const crowd = `${QUEUE}, 40 × 25, ${LED}`
  const wait_ms = p99_ms[crowd] ?? Number.NaN
  return [
    ...split(QUEUE, '4 × 32', 0.95),
    ...split(QUEUE, '8 × 16', 0.9),
    ...split(PLAIN, '4 × 32', 0.95),
    ...split(PLAIN, '8 × 16', 0.9),
    goal(`${AGENTS}: pairs a second / ${whole(RATE_MIN)}`, rate(crowd) / RATE_MIN, 1),
    goal(`${AGENTS}: ${P99_MS_MAX} ms / p99 of a claim`, P99_MS_MAX / wait_ms, 1),
    goal(`${QUEUE} / graphile-worker, named`, best(QUEUE) / best('graphile-worker, named'), 1),
    goal(`${PLAIN} / graphile-worker, batched`, best(PLAIN) / best('graphile-worker, batch'), 0.3),
  ].filter(({ ratio }) => ratio > 0 && Number.isFinite(ratio))
}
