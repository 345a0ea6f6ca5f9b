import type { Counts, RunCount, Stat } from '../schema/stats.ts'
import {
  addBuckets,
  addTimes,
  ASK_BOUNDS,
  bucketOf,
  countIn,
  countTime,
  emptyAsks,
  emptyTimes,
  TIME_BOUNDS_MS,
  timesIn,
  writtenOf,
} from './histogram.ts'
import { agentKind } from '../caller.ts'
import type { View } from '../view.ts'
import { type EventDraft, factsOf } from '../event.ts'

export const MINUTE_MS = 60_000
export const HOUR_MS = 3600_000

/** How long counts are kept: by the minute, then by the hour; their total for ever. */
export const KEPT_MS = { minute: 2 * HOUR_MS, hour: 60 * 24 * HOUR_MS }

/** Rows that are forgotten with one minute: more than come, so that none are left behind. */
const FORGET_MAX = 50

/** Lists are cut to the first of these when they are longer than the second. */
const LOCKS = { kept: 24, max: 48 }
const USERS = { kept: 32, max: 64 }
const PARTS = { kept: 16, max: 32 }
const WAITS_MAX = 10

/** A write that was refused: why, and which lock it was about. */
export interface RefusedWrite {
  code: string
  lock: string | null
}

interface Committed {
  drafts: readonly EventDraft[]
  /** How many asks the commit answers. */
  asks: number
  refused: readonly RefusedWrite[]
}

/** What is summed by name, and what is counted by how long it took. */
const SUMS = ['events', 'moves', 'refusals'] as const
const TIMES = ['wait', 'hold', 'queue', 'launch'] as const

/** The same for each of some parts of counts. */
const partsOf = <K extends keyof Counts>(parts: readonly K[], of: (part: K) => Counts[K]) =>
  Object.fromEntries(parts.map((part) => [part, of(part)])) as Pick<Counts, K>

/** Counts of a time in which nothing happened. */
export const noCounts = (): Counts => ({
  ...partsOf(SUMS, () => ({})),
  ...partsOf(TIMES, emptyTimes),
  ...{ grants: 0, asks: 0, commits: emptyAsks() },
  ...{ locks: [], users: [], projects: [], agents: [], waits: [] },
})

/**
 * Counts a commit in the row of this minute, as part of that commit: what is counted and the counts
 * are durable together or not at all, so that none is lost or doubled by a crash. Everything comes
 * from the events themselves, and so agrees with them. When the minute is over, its row is added to
 * those that are kept, and begins anew.
 */
export function countCommit(view: View, committed: Committed): void {
  const start_at = startOf(view.wall, MINUTE_MS)
  let open = view.get('stat', 'open')
  if (open && open.start_at !== start_at) {
    keep(view, open)
    open = undefined
  }
  const counts = copyOf(open?.counts ?? noCounts())
  count(counts, committed, view.at)
  view.put('stat', { key: 'open', scale: 'open', start_at, counts })
}

/** The beginning of the minute or hour of an instant; one text, for as long as that lasts. */
export const startOf = (wall_ms: number, span_ms: number) =>
  new Date(Math.floor(wall_ms / span_ms) * span_ms).toISOString()

/** Sums, so that a clock that was set back adds to a minute that was there before. */
function keep(view: View, { start_at, counts }: Stat): void {
  addTo(view, 'minute', start_at, counts)
  addTo(view, 'hour', startOf(Date.parse(start_at), HOUR_MS), counts)
  addTo(view, 'total', '', counts)
  for (const scale of ['minute', 'hour'] as const) {
    const since = new Date(view.wall - KEPT_MS[scale]).toISOString()
    let left = FORGET_MAX
    for (const row of view.scan('stats_of', scale)) {
      if (row.start_at >= since || left-- === 0) break
      view.remove('stat', row.key)
    }
  }
}

function addTo(view: View, scale: Stat['scale'], start_at: string, counts: Counts): void {
  const key = scale === 'total' ? scale : `${scale}:${start_at}`
  const before = view.get('stat', key)
  view.put('stat', { key, scale, start_at, counts: before ? plus(before.counts, counts) : counts })
}

/** Rows never change in place; a copy may. Lists of tuples are copied when they change. */
const copyOf = (counts: Counts): Counts => ({
  ...counts,
  ...partsOf(SUMS, (part) => ({ ...counts[part] })),
  ...partsOf(TIMES, (part) => ({ ...counts[part], buckets: [...counts[part].buckets] })),
  commits: [...counts.commits],
})

function count(into: Counts, { drafts, asks, refused }: Committed, at: string): void {
  const locks: Counts['locks'] = []
  const runs: RunPart[] = []
  const waits: Counts['waits'] = []
  countIn(into.commits, ASK_BOUNDS, asks)
  into.asks += asks
  for (const draft of drafts) {
    const { type, agent, lock, data } = draft
    into.events[type] = (into.events[type] ?? 0) + 1
    const { waited_ms, held_ms, queued_ms, launch_ms } = factsOf(draft)
    if (isGrant(draft)) into.grants += 1
    if (type === 'task.claimed') runs.push(beginOf(draft))
    if (type === 'task.moved') into.moves[data.to] = (into.moves[data.to] ?? 0) + 1
    if (type === 'ticket.joined') {
      // A wait for several is charged to the one that was held.
      for (const name of data.held ? [data.held] : data.names) locks.push([name, 0, 1, 0])
    }
    if (waited_ms !== undefined && lock !== null) {
      countTime(into.wait, waited_ms)
      locks.push([lock, 0, 0, waited_ms])
      waits.push({ lock, agent, waited_ms, at })
    }
    if (held_ms !== undefined) {
      countTime(into.hold, held_ms)
      runs.push(endOf(draft, held_ms))
    }
    if (queued_ms !== undefined) countTime(into.queue, queued_ms)
    if (launch_ms !== undefined) countTime(into.launch, launch_ms)
  }
  for (const { code, lock } of refused) {
    into.refusals[code] = (into.refusals[code] ?? 0) + 1
    if (code === 'held' && lock !== null) locks.push([lock, 1, 0, 0])
  }
  if (locks.length > 0) into.locks = addLocks(into.locks, locks)
  if (runs.length > 0) countRuns(into, runs)
  if (waits.length > 0) into.waits = longest([...into.waits, ...waits])
}

/** A claim under a lease that the agent has already grants no new one. */
const isGrant = ({ type, data }: EventDraft) =>
  type === 'lease.granted' ||
  type === 'lease.handed_off' ||
  (type === 'task.claimed' && data.ttl_seconds !== undefined)

type LockCount = Counts['locks'][number]

function addLocks(before: LockCount[], more: LockCount[]): LockCount[] {
  const by = new Map(before.map((each) => [each[0], each]))
  for (const [name, refused, waits, waited_ms] of more) {
    const [, r = 0, w = 0, ms = 0] = by.get(name) ?? []
    by.set(name, [name, r + refused, w + waits, ms + waited_ms])
  }
  if (by.size <= LOCKS.max) return [...by.values()]
  return [...by.values()].toSorted(byContention).slice(0, LOCKS.kept)
}

/** Most contended first: by who did not get it at once, then by how long they waited. */
export const byContention = (a: LockCount, b: LockCount) => b[1] + b[2] - a[1] - a[2] || b[3] - a[3]

/** A hold that ended, and whose it was where it was a run; or a run that began. */
interface RunPart {
  user: string | undefined
  project: string | undefined
  agent: string | undefined
  sums: Sums
}

type Sums = RunCount extends [string, ...infer Rest] ? Rest : never

const FAILURES: ReadonlySet<string> = new Set(['lease.died', 'lease.expired', 'lease.overdue'])

function endOf(draft: EventDraft, held_ms: number): RunPart {
  const { type, data } = draft
  const hasFailed =
    FAILURES.has(type) ||
    factsOf(draft).status === 'failed' ||
    (type === 'task.moved' && data.to === 'failed')
  return { ...whose(draft), sums: [1, held_ms, Number(hasFailed)] }
}

function beginOf(draft: EventDraft): RunPart {
  const { queued_ms } = factsOf(draft)
  const waited = queued_ms === undefined ? [] : [bucketOf(TIME_BOUNDS_MS, queued_ms), 1]
  return { ...whose(draft), sums: [0, 0, 0, 1, waited] }
}

function whose(draft: EventDraft) {
  const { user, project, holder } = factsOf(draft)
  const task = draft.lock?.startsWith('task:') ? draft.lock.slice(5) : undefined
  return {
    user: typeof user === 'string' ? user : undefined,
    project: typeof project === 'string' ? project : undefined,
    agent: task === undefined ? undefined : agentKind(holder ?? draft.agent, task),
  }
}

function countRuns(into: Counts, runs: RunPart[]): void {
  const by = (part: 'user' | 'project' | 'agent') =>
    runs.flatMap((run): RunCount[] => (run[part] === undefined ? [] : [[run[part], ...run.sums]]))
  into.users = addRuns(into.users, by('user'), USERS)
  into.projects = addRuns(into.projects, by('project'), PARTS)
  into.agents = addRuns(into.agents, by('agent'), PARTS)
}

function addRuns(
  before: RunCount[] = [],
  more: RunCount[] = [],
  { kept, max }: typeof USERS,
): RunCount[] {
  if (more.length === 0) return before
  const by = new Map(before.map((each) => [each[0], each]))
  for (const [name, ...sums] of more) {
    const known = by.get(name)
    by.set(name, known ? addRun(known, sums) : [name, ...sums])
  }
  if (by.size <= max) return [...by.values()]
  return [...by.values()].toSorted((a, b) => b[2] - a[2]).slice(0, kept)
}

function addRun([name, ...known]: RunCount, more: Sums): RunCount {
  const [ended, run_ms, failed = 0, begun = 0, waited = []] = known
  const [ended2, run_ms2, failed2 = 0, begun2 = 0, waited2 = []] = more
  const waits = waited2.length === 0 ? waited : writtenOf(timesIn([...waited, ...waited2]))
  return [name, ended + ended2, run_ms + run_ms2, failed + failed2, begun + begun2, waits]
}

const longest = (waits: Counts['waits']) =>
  waits.toSorted((a, b) => b.waited_ms - a.waited_ms).slice(0, WAITS_MAX)

/** Sums by name. */
export function addAll(
  a: Record<string, number>,
  b: Record<string, number>,
): Record<string, number> {
  const sum = { ...a }
  for (const [name, n] of Object.entries(b)) sum[name] = (sum[name] ?? 0) + n
  return sum
}

/** Two counts as one. */
export const plus = (a: Counts, b: Counts): Counts => ({
  ...partsOf(SUMS, (part) => addAll(a[part], b[part])),
  ...partsOf(TIMES, (part) => addTimes(a[part], b[part])),
  grants: a.grants + b.grants,
  commits: addBuckets(a.commits, b.commits),
  asks: a.asks + b.asks,
  locks: addLocks(a.locks, b.locks),
  users: addRuns(a.users, b.users, USERS),
  projects: addRuns(a.projects, b.projects, PARTS),
  agents: addRuns(a.agents, b.agents, PARTS),
  waits: longest([...a.waits, ...b.waits]),
})

/** Everything that was ever counted. */
export function allCounts(view: View): Counts {
  const rows = [view.get('stat', 'total'), view.get('stat', 'open')]
  return rows.reduce((sum, row) => (row ? plus(sum, row.counts) : sum), noCounts())
}
