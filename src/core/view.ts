import type { EventDraft } from './event.ts'
import {
  type GroupRef,
  keyOf,
  KEYS,
  type Lease,
  type LinePlace,
  processKey,
  type ProcessRef,
  type TableName,
  type Tables,
} from './rows.ts'
import { LANDING_INDEXES } from './landing/rows.ts'
import type { Lane } from './queue/rows.ts'

export type Fact = 'alive' | 'dead' | 'unknown'

/**
 * How rows are found when their keys are not known. A row is in an index under one group, or not
 * at all; within a group rows come by `order`, then by key. Rules and the in-memory tables use
 * these functions; an SQL store says the same thing as a WHERE and an ORDER BY.
 */
export interface TableIndex<T extends TableName> {
  table: T
  group: (row: Tables[T]) => string | null
  order: (row: Tables[T]) => number | string
}

/* @__NO_SIDE_EFFECTS__ -- so that a bundle that uses no index has none: hooks start sooner. */
function index<T extends TableName>(definition: TableIndex<T>): TableIndex<T> {
  return definition
}

const isOpen = (lane: Lane) => lane.ready > 0 && lane.parked_on === null

const unended = (lease: Lease) => lease.ended_at === null

const lineEnd = ({ name, priority }: LinePlace) => keyOf(name, String(priority))

/** A file that an older program wrote has no such field. */
const isReservation = (lease: Lease) => unended(lease) && Boolean(lease.path)

export const INDEXES = {
  /** A ready row's key begins with its scope and rank: the table itself is in this order. */
  ready_in: index({ table: 'ready', group: (row) => row.scope, order: (row) => row.key }),
  /** The same rows, by lane: few are looked at, where `ready_in` is read for a whole batch. */
  ready_in_lane: index({ table: 'ready', group: (row) => row.scope, order: (row) => row.key }),
  shares_in_turn: index({ table: 'share', group: (row) => row.turn, order: (row) => row.vt }),
  shares_waiting: index({
    table: 'share',
    group: (row) => (row.waits ? '' : null),
    order: (row) => row.user,
  }),
  /** Those that differ from what everybody has: the configuration takes them back. */
  shares_special: index({
    table: 'share',
    group: (row) => (row.weight !== 1 || row.max !== null ? '' : null),
    order: (row) => row.user,
  }),
  lanes_of: index({
    table: 'lane',
    group: (row) => (isOpen(row) ? row.user : null),
    order: (row) => row.head_rank ?? 0,
  }),
  lanes_of_group: index({
    table: 'lane',
    group: (row) => (isOpen(row) ? row.group_key : null),
    order: (row) => row.head_rank ?? 0,
  }),
  lanes_parked_at: index({
    table: 'lane',
    group: (row) => (row.parked_on === null ? null : keyOf(row.parked_on, row.user)),
    order: (row) => row.head_rank ?? 0,
  }),
  parkings_of: index({ table: 'parking', group: (row) => row.user, order: (row) => row.limit }),
  parkings_at: index({
    table: 'parking',
    group: (row) => keyOf(row.limit, row.turn),
    order: (row) => row.vt,
  }),
  limits: index({ table: 'limit', group: () => '', order: (row) => row.key }),
  limits_waking: index({
    table: 'limit',
    group: (row) => row.wakes,
    order: (row) => row.key,
  }),
  dispatchers: index({ table: 'dispatcher', group: () => '', order: (row) => row.id }),
  host_settings: index({
    table: 'host_settings',
    group: (row) => row.part,
    order: (row) => row.key,
  }),
  resources: index({ table: 'resource', group: () => '', order: (row) => row.key }),
  worktrees: index({ table: 'worktree', group: () => '', order: (row) => row.begun_at }),
  worktrees_of: index({
    table: 'worktree',
    group: (row) => row.task_id,
    order: (row) => row.begun_at,
  }),
  queue_of: index({
    table: 'task',
    group: (row) => (row.queue && row.status === 'todo' ? (row.user ?? '') : null),
    order: (row) => row.rank,
  }),
  /** Runs that a dispatcher started, the newest first. */
  runs_newest: index({
    table: 'run',
    group: (row) => (row.dispatcher ? '' : null),
    order: (row) => -row.fence,
  }),
  runs_dispatched_by: index({
    table: 'run',
    group: (row) => (row.ended_at === null ? row.dispatcher : null),
    order: (row) => row.id,
  }),
  line_of: index({ table: 'place', group: (row) => row.name, order: (row) => row.rank }),
  /** Those of one priority, the last first. */
  line_end: index({ table: 'place', group: lineEnd, order: (row) => -row.rank }),
  /** Those in line who wait for other locks too: only through them can a line close a cycle. */
  line_several: index({
    table: 'place',
    group: (row) => (row.several ? row.name : null),
    order: (row) => row.rank,
  }),
  dependents_of: index({
    table: 'dependency',
    group: (row) => row.depends_on,
    order: (row) => row.task_id,
  }),
  leases_by_expiry: index({
    table: 'lease',
    group: (row) => (unended(row) ? '' : null),
    order: (row) => row.expires_ms,
  }),
  /** An ended one counts from when it was to expire: that is by the store's clock. */
  leases_ended: index({
    table: 'lease',
    group: (row) => (unended(row) ? null : ''),
    order: (row) => row.expires_ms,
  }),
  leases_held_by: index({
    table: 'lease',
    group: (row) => (unended(row) ? row.holder : null),
    order: (row) => row.name,
  }),
  leases_seated_at: index({
    table: 'lease',
    group: (row) => (unended(row) && row.process ? row.seat : null),
    order: (row) => (row.process ? processKey(row.process) : ''),
  }),
  /** Reservations come in the order of the leading folders of their globs. */
  reservations: index({
    table: 'lease',
    group: (row) => (isReservation(row) ? '' : null),
    order: (row) => row.path!.base,
  }),
  reservations_in: index({
    table: 'lease',
    group: (row) => (isReservation(row) ? row.path!.scope : null),
    order: (row) => row.path!.base,
  }),
  reservations_of: index({
    table: 'lease',
    group: (row) => (isReservation(row) ? row.path!.project : null),
    order: (row) => row.path!.base,
  }),
  reservations_beside: index({
    table: 'lease',
    group: (row) => (isReservation(row) ? row.path!.family : null),
    order: (row) => row.path!.base,
  }),
  tickets: index({ table: 'ticket', group: () => '', order: (row) => row.rank }),
  /** Those who may be gone, by when to look. */
  tickets_due: index({
    table: 'ticket',
    group: (row) => (row.due_ms === null ? null : ''),
    order: (row) => row.due_ms ?? 0,
  }),
  tickets_seated_at: index({
    table: 'ticket',
    group: (row) => row.seat,
    order: (row) => (row.process ? processKey(row.process) : ''),
  }),
  tickets_of: index({ table: 'ticket', group: (row) => row.node, order: (row) => row.asked_ms }),
  tickets_under: index({
    table: 'ticket',
    group: (row) => row.under_node,
    order: (row) => row.asked_ms,
  }),
  tasks: index({ table: 'task', group: () => '', order: (row) => row.created_at }),
  tasks_with_status: index({
    table: 'task',
    group: (row) => row.status,
    order: (row) => row.rank,
  }),
  runs_of: index({ table: 'run', group: (row) => row.task_id, order: (row) => row.started_at }),
  runs_ended: index({
    table: 'run',
    group: (row) => (row.ended_at === null ? null : ''),
    order: (row) => row.ended_at ?? '',
  }),
  agents: index({ table: 'agent', group: () => '', order: (row) => row.id }),
  agents_by_seen: index({ table: 'agent', group: () => '', order: (row) => row.last_seen_ms }),
  tokens: index({ table: 'token', group: () => '', order: (row) => row.created_at }),
  /** Those that end, or were revoked at a time of which nothing else is known. */
  tokens_by_end: index({
    table: 'token',
    group: (row) => (row.expires_ms === null && row.revoked_at === null ? null : ''),
    order: (row) => row.expires_ms ?? 0,
  }),
  requests_by_age: index({ table: 'request', group: () => '', order: (row) => row.at_ms }),
  ...LANDING_INDEXES,
  memories: index({
    table: 'memory',
    group: (row) => (row.live ? '' : null),
    order: (row) => row.id,
  }),
  memories_in: index({
    table: 'memory',
    group: (row) => (row.live ? row.scope : null),
    order: (row) => row.key,
  }),
  /** All that still has versions, deleted or not: what was not touched for longest comes first. */
  memories_by_age: index({
    table: 'memory',
    group: (row) => (row.heads.length > 0 ? '' : null),
    order: (row) => row.updated_ms,
  }),
  memories_by_expiry: index({
    table: 'memory',
    group: (row) => (row.live && row.expires_ms !== null ? '' : null),
    order: (row) => row.expires_ms ?? 0,
  }),
  /** Deleted, and with a history that could still be looked at. */
  memories_deleted: index({
    table: 'memory',
    group: (row) => (!row.live && row.heads.length > 0 ? '' : null),
    order: (row) => row.updated_ms,
  }),
  /** The newest first: a version comes before all that it grew from. */
  versions_of: index({
    table: 'memory_version',
    group: (row) => row.memory_id,
    order: (row) => -row.version,
  }),
  versions_saying: index({
    table: 'memory_version',
    group: (row) => (row.kept ? row.hash : null),
    order: (row) => row.id,
  }),
  conflicts: index({
    table: 'memory_conflict',
    group: (row) => row.status,
    order: (row) => row.opened_ms,
  }),
  conflicts_of: index({
    table: 'memory_conflict',
    group: (row) => row.memory_id,
    order: (row) => row.opened_ms,
  }),
  stats_of: index({ table: 'stat', group: (row) => row.scale, order: (row) => row.start_at }),
  alerts: index({ table: 'alert', group: () => '', order: (row) => row.since_at }),
  note_attempts: index({
    table: 'note_attempt',
    group: (row) => row.state,
    order: (row) => row.next_ms,
  }),
  vectors: index({ table: 'vector', group: () => '', order: (row) => row.key }),
  /** The most alike first. */
  duplicates_with: index({
    table: 'duplicate',
    group: (row) => row.status,
    order: (row) => -row.similarity,
  }),
  duplicates_of: index({ table: 'duplicate', group: (row) => row.a, order: (row) => row.id }),
  duplicates_to: index({ table: 'duplicate', group: (row) => row.b, order: (row) => row.id }),
} as const

export type IndexName = keyof typeof INDEXES
type RowOf<I extends IndexName> = Tables[(typeof INDEXES)[I]['table']]

/**
 * All that a rule may know and do: rows, one instant, process facts. Rules are synchronous and pure
 * over a view: a rule may be run again on the same view, and a refused one leaves nothing behind.
 */
export interface View {
  /** The store's clock in milliseconds: monotonic, shared by all who use the store. */
  readonly now: number
  /** The same instant for people: wall-clock milliseconds, and as ISO 8601. */
  readonly wall: number
  readonly at: string
  /** Rows that its caller may not see are left out: that one is missing means nothing. */
  readonly isPartial?: true

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined
  put<T extends TableName>(table: T, row: Tables[T]): void
  remove(table: TableName, key: string): void
  /** Rows of one group of an index, in order, read page by page as far as the caller goes. */
  scan<I extends IndexName>(index: I, group: string, after?: Cursor): Iterable<RowOf<I>>
  /**
   * Rows of one group of an index by time whose time is `until` or before, in order. Asked for
   * again and again, and mostly there are none: a store may know so without a look.
   */
  due<I extends IndexName>(
    index: I,
    group: string,
    until: number,
    after?: Cursor,
  ): Iterable<RowOf<I>>

  /** Rises with every call, never repeats: not after a crash, not after a restore. */
  nextFence(): number
  nextTaskNumber(): number

  process(ref: ProcessRef): Fact
  /** A process group: `dead` when no member is left, `alive` when it is one that we can stop. */
  group(ref: GroupRef): Fact
  /** Whether the leader of a group carries its mark; `dead` when it certainly does not. */
  leader(ref: GroupRef): Fact
  record(event: EventDraft): void
  /** Events up to this one are no longer kept; the chain of the others begins behind it. */
  forgetEvents(last: EventPlace): void
}

/** An event by its place in the chain. */
export interface EventPlace {
  position: number
  hash: string
}

/** Where a paged scan goes on: behind this order and key. */
export interface Cursor {
  order: number | string
  key: string
}

/** Names a row that the view does not have yet. The writer loads it and decides the ask again. */
export class NotLoaded extends Error {
  constructor(readonly need: Need) {
    // Thrown in great numbers where rows are across a network: a stack each would cost too much.
    const { stackTraceLimit } = Error
    Error.stackTraceLimit = 0
    super('row not loaded')
    Error.stackTraceLimit = stackTraceLimit
  }
}

export type Need =
  | { table: TableName; key: string }
  /** `limit` where it is known how many rows are wanted. */
  | { index: IndexName; group: string; after?: Cursor | undefined; limit?: number }

/** Stops a rule until a process group is gone. The kill happens outside any transaction. */
export class NeedsKill extends Error {
  constructor(
    readonly lease: Lease,
    readonly group: GroupRef,
    /** What was decided so far is committed before the kill: the holder may write no more. */
    readonly commits = false,
  ) {
    super(`the command under ${lease.name} has to be stopped first`)
  }
}

type AnyRow = Tables[TableName]

/** Where a row stands in an index. */
export function cursorOf(name: IndexName, row: AnyRow): Cursor {
  const { table, order } = INDEXES[name]
  return {
    order: (order as (row: AnyRow) => number | string)(row),
    key: row[KEYS[table] as keyof AnyRow],
  }
}

export function isBefore(a: Cursor, b: Cursor): boolean {
  return a.order < b.order || (a.order === b.order && a.key < b.key)
}
