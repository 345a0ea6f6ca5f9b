import type { Details } from './refusal.ts'
import type { Lease, ProcessRef, TableName, Tables } from './rows.ts'

export type Fact = 'alive' | 'dead' | 'unknown'

/** A change that happened, as it is remembered. Position and hash come just before COMMIT. */
export interface EventDraft {
  type: string
  agent: string
  lock: string | null
  task: string | null
  data: Details
}

export interface Event extends EventDraft {
  position: number
  at: string
  hash: string
}

/**
 * How rows are found when their keys are not known. A row is in an index under one group, or not
 * at all; within a group rows come by `order`, then by key. Rules and the in-memory tables use
 * these functions; an SQL store says the same thing as a WHERE and an ORDER BY.
 */
interface Index<T extends TableName> {
  table: T
  group: (row: Tables[T]) => string | null
  order: (row: Tables[T]) => number | string
}

function index<T extends TableName>(definition: Index<T>): Index<T> {
  return definition
}

const unended = (lease: Lease) => lease.ended_at === null

export const INDEXES = {
  ready_in: index({ table: 'ready', group: (row) => row.scope, order: (row) => row.rank }),
  line_of: index({ table: 'place', group: (row) => row.name, order: (row) => row.rank }),
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
  leases_held_by: index({
    table: 'lease',
    group: (row) => (unended(row) ? row.holder : null),
    order: (row) => row.name,
  }),
  leases_seated_at: index({
    table: 'lease',
    group: (row) => (unended(row) ? row.seat : null),
    order: (row) => row.name,
  }),
  tickets: index({ table: 'ticket', group: () => '', order: (row) => row.rank }),
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
  agents: index({ table: 'agent', group: () => '', order: (row) => row.id }),
  tokens: index({ table: 'token', group: () => '', order: (row) => row.created_at }),
  requests_by_age: index({ table: 'request', group: () => '', order: (row) => row.at_ms }),
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

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined
  put<T extends TableName>(table: T, row: Tables[T]): void
  remove(table: TableName, key: string): void
  /** Rows of one group of an index, in order, read page by page as far as the caller goes. */
  scan<I extends IndexName>(index: I, group: string, after?: Cursor): Iterable<RowOf<I>>

  /** Rises with every call, never repeats: not after a crash, not after a restore. */
  nextFence(): number
  nextTaskNumber(): number

  process(ref: ProcessRef): Fact
  /** A process group: `dead` when no member is left. */
  group(ref: ProcessRef): Fact
  record(event: EventDraft): void
}

/** Where a paged scan goes on: behind this order and key. */
export interface Cursor {
  order: number | string
  key: string
}

/** Names a row that the view does not have yet. The writer loads it and decides the ask again. */
export class NotLoaded extends Error {
  readonly need: Need
  constructor(need: Need) {
    super('row not loaded')
    this.need = need
  }
}

export type Need =
  | { table: TableName; key: string }
  | { index: IndexName; group: string; after?: Cursor }

/** Stops a rule until a process group is gone. The kill happens outside any transaction. */
export class NeedsKill extends Error {
  readonly group: ProcessRef
  readonly lease: Lease
  /** What was decided so far is committed before the kill: the holder may write no more. */
  readonly commits: boolean
  constructor(lease: Lease, group: ProcessRef, commits = false) {
    super(`the command under ${lease.name} has to be stopped first`)
    this.lease = lease
    this.group = group
    this.commits = commits
  }
}
