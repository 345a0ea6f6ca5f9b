import type { Counts, Histogram, Stat } from '../schema/stats.ts'
import { ASK_BOUNDS, percentile, sumOf, TIME_BOUNDS_MS, timesIn } from './histogram.ts'
import {
  addAll,
  byContention,
  HOUR_MS,
  KEPT_MS,
  MINUTE_MS,
  noCounts,
  plus,
  startOf,
} from './stat.ts'
import { shareOf } from '../queue/share.ts'
import { pendingOf } from '../queue/status.ts'
import type { View } from '../view.ts'

export interface StatsAsk {
  /** Wall-clock times. */
  from_ms: number
  to_ms: number
  /** How many locks, waits and users to list. */
  limit: number
}

/**
 * What happened between two times, from rows of counts: never by looking at events. Times are
 * those of whole minutes as long as these are kept, else of whole hours; `from` and `to` say which.
 */
export function reportStats(view: View, { from_ms, to_ms, limit }: StatsAsk) {
  const span_ms = from_ms >= view.wall - KEPT_MS.minute ? MINUTE_MS : HOUR_MS
  const from = startOf(from_ms, span_ms)
  const to = new Date(to_ms).toISOString()
  const rows = rowsBetween(view, span_ms, from, to)
  const all = rows.reduce((sum, row) => plus(sum, row.counts), noCounts())
  const { events, moves, refusals } = all
  const times = timesBetween(view, rows, span_ms, to)
  const runsOf = (kind: 'projects' | 'users' | 'agents') => runsIn(all, times, kind, limit)
  return {
    from,
    to,
    resolution_seconds: span_ms / 1000,
    locks: locksOf(all),
    contended: contendedOf(all, limit),
    wait: timesOf(all.wait),
    hold: timesOf(all.hold),
    longest_waits: longestOf(all, limit),
    agents: { appeared: events['agent.appeared'] ?? 0, lost: events['agent.lost'] ?? 0 },
    stale_writes: events['write.fenced_off'] ?? 0,
    tasks: {
      created: (events['task.created'] ?? 0) + (events['task.enqueued'] ?? 0),
      claimed: events['task.claimed'] ?? 0,
      done: moves['done'] ?? 0,
      failed: moves['failed'] ?? 0,
      cancelled: moves['cancelled'] ?? 0,
      quarantined: events['task.quarantined'] ?? 0,
    },
    queue: {
      enqueued: events['task.enqueued'] ?? 0,
      started: events['run.started'] ?? 0,
      depth_now: pendingOf(view).total,
      /** From enqueued to claimed, of first runs. */
      wait: timesOf(all.queue),
      /** From claimed to the command let go. */
      dispatch: timesOf(all.launch),
    },
    fairness: fairnessOf(view, all, limit),
    throughput: {
      projects: runsOf('projects'),
      users: runsOf('users'),
      agents: runsOf('agents'),
    },
    commits: commitsOf(all),
    refusals,
    events,
    series: times.map(([at, counts]) => {
      return pointOf(at, counts, view.wall < Date.parse(at) + span_ms)
    }),
  }
}

export type StatsReport = ReturnType<typeof reportStats>

function rowsBetween(view: View, span_ms: number, from: string, to: string): Stat[] {
  const rows: Stat[] = []
  const scale = span_ms === MINUTE_MS ? 'minute' : 'hour'
  for (const row of view.scan('stats_of', scale, { order: from, key: '' })) {
    if (row.start_at >= to) break
    rows.push(row)
  }
  const open = view.get('stat', 'open')
  if (open && open.start_at >= from && open.start_at < to) rows.push(open)
  return rows
}

/** How often each event happened in about the last `span_ms`, which is no longer than two hours. */
export function recentEvents(view: View, span_ms: number): Counts['events'] {
  const from = startOf(view.wall - span_ms, MINUTE_MS)
  const rows = rowsBetween(view, MINUTE_MS, from, new Date(view.wall + 1).toISOString())
  return rows.reduce((sum, { counts }) => addAll(sum, counts.events), {})
}

function locksOf(counts: Counts) {
  const { events, refusals } = counts
  return {
    acquisitions: counts.grants,
    refused: refusals['held'] ?? 0,
    waits: events['ticket.joined'] ?? 0,
    gave_up: events['ticket.left'] ?? 0,
    deadlocks: (refusals['deadlock'] ?? 0) + (events['ticket.broken'] ?? 0),
    handed_off: events['lease.handed_off'] ?? 0,
    expired: events['lease.expired'] ?? 0,
    died: events['lease.died'] ?? 0,
    force_released: (events['lease.force_released'] ?? 0) + (events['lease.revoked'] ?? 0),
  }
}

function contendedOf({ locks }: Counts, limit: number) {
  const most = locks.toSorted(byContention).slice(0, limit)
  return most.map(([name, refused, waits, waited_ms]) => {
    return { name, refused, waits, waited_seconds: waited_ms / 1000 }
  })
}

function longestOf({ waits }: Counts, limit: number) {
  return waits.slice(0, limit).map(({ lock, agent, waited_ms, at }) => {
    return { lock, agent, waited_seconds: waited_ms / 1000, at }
  })
}

const inSeconds = (ms: number | null) => (ms === null ? null : Math.round(ms) / 1000)

const percentileOf = (buckets: number[], p: number) =>
  inSeconds(percentile(buckets, TIME_BOUNDS_MS, p))

function timesOf({ buckets, sum_ms }: Histogram) {
  const count = sumOf(buckets)
  const at = (p: number) => percentileOf(buckets, p)
  return {
    count,
    mean_seconds: count === 0 ? null : inSeconds(sum_ms / count),
    p50_seconds: at(0.5),
    p90_seconds: at(0.9),
    p99_seconds: at(0.99),
  }
}

export type ShownTimes = ReturnType<typeof timesOf>

function commitsOf({ commits, asks }: Counts) {
  const count = sumOf(commits)
  const at = (p: number) => {
    const value = percentile(commits, ASK_BOUNDS, p)
    return value === null ? null : Math.ceil(value)
  }
  const asks_mean = count === 0 ? null : Math.round((asks / count) * 10) / 10
  return { count, asks_mean, asks_p50: at(0.5), asks_p99: at(0.99) }
}

/**
 * How run time was shared among users that had any, beside what their weights would give them.
 * `index` is Jain's: 1 when all had the same by weight, 1/n when one had everything.
 */
function fairnessOf(view: View, { users }: Counts, limit: number) {
  const ran = users.filter(([, runs]) => runs > 0)
  const known = ran.map(([user, runs, run_ms]) => {
    return { user, runs, run_ms, weight: shareOf(view, user).weight }
  })
  const run_ms = known.reduce((sum, each) => sum + each.run_ms, 0)
  const weights = known.reduce((sum, each) => sum + each.weight, 0)
  const shares = known.map((each) => each.run_ms / each.weight)
  const squares = shares.reduce((sum, x) => sum + x * x, 0)
  const sum = shares.reduce((total, x) => total + x, 0)
  const part = (a: number, b: number) => (b === 0 ? 0 : Math.round((a / b) * 1000) / 1000)
  const most = known.toSorted((a, b) => b.run_ms - a.run_ms).slice(0, limit)
  return {
    index: squares === 0 ? null : part(sum * sum, known.length * squares),
    users: most.map((each) => ({
      user: each.user,
      weight: each.weight,
      runs: each.runs,
      run_seconds: each.run_ms / 1000,
      share: part(each.run_ms, run_ms),
      fair_share: part(each.weight, weights),
    })),
  }
}

/** Runs that ended or began, those first that there were most of; and how many in each time. */
function runsIn(
  all: Counts,
  times: [string, Counts][],
  kind: 'projects' | 'users' | 'agents',
  limit: number,
) {
  const most = (all[kind] ?? []).toSorted((a, b) => b[1] - a[1]).slice(0, limit)
  return most.map(([name, ended, run_ms, failed = 0, claimed = 0, waited = []]) => {
    const then = times.map(([, counts]) => counts[kind]?.find(([each]) => each === name))
    const waits = timesIn(waited)
    return {
      name,
      claimed,
      ended,
      failed,
      run_seconds: run_ms / 1000,
      queue_p50_seconds: percentileOf(waits, 0.5),
      queue_p95_seconds: percentileOf(waits, 0.95),
      claimed_series: then.map((each) => each?.[4] ?? 0),
      ended_series: then.map((each) => each?.[1] ?? 0),
    }
  })
}

/** Time by time, from the first that is known. The minute that counts now belongs to its hour. */
function timesBetween(view: View, rows: Stat[], span_ms: number, to: string): [string, Counts][] {
  const by = new Map<string, Counts>()
  for (const { start_at, counts } of rows) {
    const at = startOf(Date.parse(start_at), span_ms)
    by.set(at, plus(by.get(at) ?? noCounts(), counts))
  }
  const [first] = by.keys()
  // A time in which nothing was written has no row: nothing happened then, which is known too.
  const end_ms = Math.min(view.wall, Date.parse(to) - 1)
  for (let ms = first ? Date.parse(first) : Infinity; ms <= end_ms; ms += span_ms) {
    const at = startOf(ms, span_ms)
    if (!by.has(at)) by.set(at, noCounts())
  }
  return [...by].toSorted(([a], [b]) => (a < b ? -1 : 1))
}

/** `is_open`: it still counts, and what is yet to come is not in it. */
function pointOf(at: string, counts: Counts, is_open: boolean) {
  return {
    at,
    acquisitions: counts.grants,
    refused: counts.refusals['held'] ?? 0,
    waits: counts.events['ticket.joined'] ?? 0,
    expired: counts.events['lease.expired'] ?? 0,
    died: counts.events['lease.died'] ?? 0,
    stale_writes: counts.events['write.fenced_off'] ?? 0,
    enqueued: counts.events['task.enqueued'] ?? 0,
    claimed: counts.events['task.claimed'] ?? 0,
    started: counts.events['run.started'] ?? 0,
    done: counts.moves['done'] ?? 0,
    failed: counts.moves['failed'] ?? 0,
    cancelled: counts.moves['cancelled'] ?? 0,
    ended: counts.events['run.ended'] ?? 0,
    ...spreadOf(counts),
    is_open,
  }
}

function spreadOf({ wait, hold, queue }: Counts) {
  const at = ({ buckets }: Histogram, p: number) => percentileOf(buckets, p)
  return {
    wait_p50_seconds: at(wait, 0.5),
    wait_p95_seconds: at(wait, 0.95),
    wait_p99_seconds: at(wait, 0.99),
    hold_p50_seconds: at(hold, 0.5),
    queue_p50_seconds: at(queue, 0.5),
    queue_p95_seconds: at(queue, 0.95),
  }
}
