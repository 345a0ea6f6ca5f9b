import { type GroupRef, type PathTerms, processKey, type ProcessRef, type Terms } from '../rows.ts'
import {
  text,
  int,
  bool,
  json,
  instant,
  isNull,
  notNull,
  isTrue,
  type RowOf,
  table,
} from './table.ts'

/** Leases of locks, and those who wait in line. */

/** The latest lease of a lock. An ended one stays, as the memory of the lock's last fence. */
export const lease = table({
  key: 'name',
  columns: {
    name: text(),
    fence: int(),
    holder: text(),
    /** False for `cli:login@host`, which every terminal of one person shares. */
    holder_given: bool(),
    process: json<ProcessRef>().orNull,
    /** The process group we started under this lease; it must be gone before the lock is free. */
    group: json<GroupRef>().orNull,
    /** `seat` of `process`, as a column to find leases whose death we can prove. */
    seat: text().orNull,
    acquired_at: text(),
    acquired_ms: instant(),
    ttl_ms: int(),
    expires_ms: instant().hot,
    ended_at: text().orNull.hot,
    reason: text().orNull.hot,
    /** Set where the lease came from a claim that counts against limits. */
    terms: json<Terms>().orNull,
    /** Set where the lease is a reservation of paths. */
    path: json<PathTerms>().orNull,
  },
  derived: {
    process_key: { text: (row) => row.process && processKey(row.process) },
    path_base: { text: (row) => row.path?.base ?? null },
    path_scope: { text: (row) => row.path?.scope ?? null },
    path_project: { text: (row) => row.path?.project ?? null },
    path_family: { text: (row) => row.path?.family ?? null },
  },
  indexes: {
    leases_by_expiry: { rows: [isNull('ended_at')], order: 'expires_ms' },
    /** An ended one counts from when it was to expire: that is by the store's clock. */
    leases_ended: { rows: [notNull('ended_at')], order: 'expires_ms' },
    leases_held_by: { rows: [isNull('ended_at')], group: ['holder'], order: 'name' },
    leases_seated_at: {
      rows: [isNull('ended_at'), notNull('process_key')],
      group: ['seat'],
      order: 'process_key',
    },
    /** Reservations come in the order of the leading folders of their globs. */
    reservations: { rows: [isNull('ended_at'), notNull('path_base')], order: 'path_base' },
    reservations_in: { rows: [isNull('ended_at')], group: ['path_scope'], order: 'path_base' },
    reservations_of: { rows: [isNull('ended_at')], group: ['path_project'], order: 'path_base' },
    reservations_beside: { rows: [isNull('ended_at')], group: ['path_family'], order: 'path_base' },
  },
})
export type Lease = RowOf<typeof lease>

/** One waiter. It waits for all of `names` at once and has a place in the line of each. */
export const ticket = table({
  key: 'id',
  columns: {
    id: text(),
    names: json<string[]>(),
    agent: text(),
    agent_given: bool(),
    process: json<ProcessRef>().orNull,
    /** Whether `process` only stands in for the waiter, as a daemon does for an open request. */
    stand_in: bool(),
    /** Where the waiter stands in the wait-for graph: its process, or its given agent id. */
    node: text().orNull,
    /** The lease it runs under, if any: that lease waits when this ticket does. */
    under_node: text().orNull,
    priority: int(),
    asked_at: text(),
    asked_ms: instant(),
    /** Place in every line: `asked_ms` minus priority × aging. */
    rank: instant(),
    /** It is gone this long after anybody last spoke for it, unless `process` lives. */
    seen_ms: instant(),
    called_ms: instant().orNull,
    /** Set when the waiter was chosen to break a deadlock: the cycle, spelled out. */
    cycle: json<string[]>().orNull,
    /** `seat` of `process`, and when to look whether it is gone: see `putTicket`. */
    seat: text().orNull,
    due_ms: instant().orNull,
  },
  derived: { process_key: { text: (row) => row.process && processKey(row.process) } },
  indexes: {
    tickets: { order: 'rank' },
    /** Those who may be gone, by when to look. */
    tickets_due: { rows: [notNull('due_ms')], order: 'due_ms' },
    tickets_seated_at: {
      rows: [notNull('process_key')],
      group: ['seat'],
      order: 'process_key',
    },
    tickets_of: { group: ['node'], order: 'asked_ms' },
    tickets_under: { group: ['under_node'], order: 'asked_ms' },
  },
})
export type Ticket = RowOf<typeof ticket>

export const place = table({
  key: 'key',
  columns: {
    key: text(),
    name: text(),
    rank: instant(),
    ticket_id: text(),
    /** Of its ticket: to find the last of one priority, and those who wait for other locks too. */
    priority: int(),
    several: bool(),
  },
  indexes: {
    line_of: { group: ['name'], order: 'rank' },
    /** Those of one priority, the last first. */
    line_end: { group: ['name', 'priority'], order: 'rank', descends: true },
    /** Those in line who wait for other locks too: only through them can a line close a cycle. */
    line_several: { rows: [isTrue('several')], group: ['name'], order: 'rank' },
  },
})
export type LinePlace = RowOf<typeof place>

export const agent = table({
  key: 'id',
  columns: {
    id: text(),
    kind: text(),
    host: text().orNull,
    pid: int().orNull,
    first_seen_at: text(),
    last_seen_at: text().hot,
    last_seen_ms: instant().hot,
  },
  indexes: { agents: { order: 'id' }, agents_by_seen: { order: 'last_seen_ms' } },
  isMadeAgain: true,
})
export type Agent = RowOf<typeof agent>
