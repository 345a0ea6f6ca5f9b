import type { EventData, EventSubject, EventType } from './event.ts'
import type { GroupRef, ProcessRef } from './rows.ts'
import type { Cursor } from './schema/indexes.ts'
import type { Lease } from './schema/lock.ts'
import type { IndexName, TableName, TableOf, Tables } from './schema/schema.ts'

export type Fact = 'alive' | 'dead' | 'unknown'

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
  scan<I extends IndexName>(index: I, group: string, after?: Cursor): Iterable<Tables[TableOf<I>]>
  /** Rows of one group of an index by time whose time is `until` or before, in order. */
  due<I extends IndexName>(
    index: I,
    group: string,
    until: number,
    after?: Cursor,
  ): Iterable<Tables[TableOf<I>]>

  /** Rises with every call, never repeats: not after a crash, not after a restore. */
  nextFence(): number
  nextTaskNumber(): number

  process(ref: ProcessRef): Fact
  /** A process group: `dead` when no member is left, `alive` when it is one that we can stop. */
  group(ref: GroupRef): Fact
  /** Whether the leader of a group carries its mark; `dead` when it certainly does not. */
  leader(ref: GroupRef): Fact
  record<T extends EventType>(type: T, about: EventSubject, data: EventData[T]): void
  /** Events up to this one are no longer kept; the chain of the others begins behind it. */
  forgetEvents(last: EventPlace): void
}

/** An event by its place in the chain. */
export interface EventPlace {
  position: number
  hash: string
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
