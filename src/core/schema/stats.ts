import { text, bool, json, instant, type RowOf, table } from './table.ts'

/** What happened, counted, and what people should know of. */

/** Numbers of events at or below each bound, the last for all above; and the sum, for a mean. */
export interface Histogram {
  buckets: number[]
  sum_ms: number
}

/** All that statistics are made of. Lists are bounded: the least are dropped. */
export interface Counts {
  /** Events by type. */
  events: Record<string, number>
  /** Leases given under a new fence: locks acquired, tasks claimed, hand-offs. */
  grants: number
  /** Moves of tasks by the status they were moved to. */
  moves: Record<string, number>
  /** Refusals of writes by code. Those that came after the last commit may be lost in a crash. */
  refusals: Record<string, number>
  /** Commits with events, by how many asks each answered; and those asks together. */
  commits: number[]
  asks: number
  wait: Histogram
  hold: Histogram
  queue: Histogram
  launch: Histogram
  /** Locks that somebody did not get at once: name, refused, waits, waited in ms. */
  locks: [string, number, number, number][]
  /** Runs that began and that ended, by user. */
  users: RunCount[]
  /** By project and by agent; rows of an older version have none. */
  projects?: RunCount[]
  agents?: RunCount[]
  waits: { lock: string; agent: string; waited_ms: number; at: string }[]
}

/**
 * Name; how many ended, their time in ms, and how many of them failed; how many began, and how many
 * of these waited in the queue for how long: the index of a bucket, its number, the next index, and
 * so on. An older version did not count the last three.
 */
export type RunCount = [string, number, number, number?, number?, number[]?]

/** The beginning of a condition and its end are told one by one. */
export type AlertState = 'raised' | 'cleared'
export type Delivered = { [S in AlertState]?: string | null }

/**
 * What happened within some time, counted. `open` is the minute that counts now and is written with
 * every commit; the others are sums of what it held: by minute, by hour, and of all time.
 */
export const stat = table({
  key: 'key',
  columns: {
    key: text(),
    scale: text<'open' | 'minute' | 'hour' | 'total'>(),
    start_at: text(),
    counts: json<Counts>(),
  },
  indexes: { stats_of: { group: ['scale'], order: 'start_at' } },
  isMadeAgain: true,
  isWide: true,
})
export type Stat = RowOf<typeof stat>

/** A condition that people should know of, from when it was seen until its end was told. */
export const alert = table({
  key: 'key',
  columns: {
    key: text(),
    rule: text(),
    subject: text(),
    message: text(),
    since_at: text(),
    /** When the condition ends by itself, unless something ends it sooner; null: not known. */
    quiet_ms: instant().orNull,
    ended_at: text().orNull,
    /** Whether no channel has to tell its beginning, or its end, any more. */
    told: bool(),
    told_end: bool(),
    /** What each channel has done: null when it told, else why it gave up. */
    delivery: json<Record<string, Delivered>>(),
  },
  indexes: { alerts: { order: 'since_at' } },
})
export type Alert = RowOf<typeof alert>
