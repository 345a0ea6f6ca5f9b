import type { Cursor } from '../core/schema/indexes.ts'
import type { AnyRow, Changes, IndexName, TableName, Tables } from '../core/schema/schema.ts'
import type { Caller } from '../core/caller.ts'
import type { Hit } from '../core/memory/search.ts'
import type { Embedding } from '../core/schema/search.ts'
import type { EventPlace, Need } from '../core/view.ts'
import type { Event } from '../core/event.ts'
import type { Refusal } from '../core/refusal.ts'
import type { Damage } from './damage.ts'

/** Rows as they were committed: what a view stands on. May throw `NotLoaded`. */
export interface Base {
  get<T extends TableName>(table: T, key: string): Tables[T] | undefined
  /** At most `limit` rows of one group of an index, in order. */
  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[]
}

/** The one row that every commit changes. */
export interface Head {
  /** Raised by every restore; the high bits of a fence, so that none is ever given twice. */
  epoch: number
  /** How many fences this epoch has given. */
  fences: number
  task_number: number
  /** Position and hash of the newest event. */
  position: number
  hash: string
  /** The boot that `offset_ms` belongs to: store time = monotonic time + offset. */
  boot: string
  offset_ms: number
  /** Store time of the newest commit. */
  last_ms: number
  /** The store's own clock, where it has one: then no clock of ours counts. Not kept. */
  clock_ms?: number
}

/** What `db check` found. */
export interface CheckReport {
  ok: boolean
  problems: string[]
  events: number
  head: Head | undefined
  /** No damage was found: this kept it from being looked for, or is all that is wrong. */
  hindered?: Refusal
}

/** Of a store that was restored, with the files that have what was there before. */
export interface RestoreReport extends CheckReport {
  kept?: string[]
}

export type { Changes }

/** What a transaction writes beside the head. */
export interface Change {
  changes: Changes
  events: Event[]
  /** Events up to this one go, where it is one of this store's. */
  forgets?: EventPlace | undefined
  /** The event that the first of this store follows. */
  begins?: EventPlace
}

export interface Commit extends Change {
  head: Head
}

type Soon<T> = Promise<T> | T

/** All that a store keeps, part by part, for those who read all of it. */
export interface Contents {
  /** Rows behind a key, in the order of their keys, byte by byte. */
  rows(table: TableName, after: string | undefined, limit: number): Soon<AnyRow[]>
  /** Events behind a position, in order. */
  events(after: number, limit: number): Soon<Event[]>
  /** The event that the first one kept follows. */
  start(): Soon<EventPlace>
}

/**
 * What events are looked for: of each list, one must stand in an event, in its type or between the
 * quotation marks of a name.
 */
export type Sought = readonly (readonly string[])[]

/**
 * What a store must do. The writer calls begin, then reads, then commit or rollback, one batch at a
 * time; the rest is the same for every store.
 */
export interface Backend extends Base {
  /** Whether it is kept in a database; a file store, written whole, has no queue. */
  readonly isDatabase: boolean
  /** Whether other machines may use it too: then a path alone does not say which file is meant. */
  readonly isShared?: boolean
  /** Asks decided and committed together, if not as many as elsewhere. */
  readonly batch_max?: number
  /** Whether rows have to be prefetched: `get` and `scan` throw `NotLoaded` for all others. */
  readonly isRemote?: boolean
  /** How often a follower looks for commits of others, where `listen` makes it look sooner. */
  readonly poll_ms?: number
  /** Opens a transaction that no other writer can interleave with. */
  begin(): Promise<Head> | Head
  /** Loads what the rules will ask for, in as few steps as the store can. */
  prefetch(needs: Need[]): Promise<void> | void
  /**
   * Makes the batch durable. `again`: another writer was first, nothing was written, decide anew.
   * Throws `CommitUnknown` when the outcome cannot be known.
   */
  commit(commit: Commit): Promise<'done' | 'again'> | 'done' | 'again'
  rollback(): Promise<void> | void
  /** A snapshot for reading, beside any writer. */
  snapshot<T>(look: (base: Base, head: Head) => T): Promise<T> | T
  /**
   * Of the `limit` positions behind `after`, oldest first. With `sought`, those that may be about
   * it are enough; others may be among them.
   */
  events(after: number, limit: number, sought?: Sought): Promise<Event[]> | Event[]
  readonly counter: Counter
  /** Where processes of a shared store find the one that writes for all. */
  readonly leaders?: LeaderBoard | undefined
  /** Notes by their words and meaning; a store without these has no memory. */
  readonly finder?: Finder
  /** Another value after every commit that anybody made, where it can be had without reading. */
  stamp?(): unknown
  /** From now on calls `hint` when somebody may have committed. A hint may be lost. */
  listen?(hint: () => void): void
  /** That the store was found damaged: then nothing is written, and reads show what is left. */
  readonly damage?: Damage | undefined
  close(): Promise<void> | void
}

/** One that can be copied, or copied to, in one transaction. */
export interface CopyBackend extends Backend {
  /** What the transaction sees, also of what was applied to it. */
  contents(): Contents
  /** Writes a part of what is too much for one step; nobody else sees it before `commit`. */
  apply(change: Partial<Change>): Promise<void> | void
}

/** The process that has the write role: where it can be asked, and what both sides prove. */
export interface LeaderRow {
  /** Of the lease of its role. */
  fence: number
  address: string
  secret: string
  host: string
  version: string
}

/** Shown by no operation: to read it is to be able to write the store. */
export interface LeaderBoard {
  read(): Promise<LeaderRow | undefined>
  /** Changes nothing where a later leader has written. */
  write(row: LeaderRow): Promise<void>
  /** Only that of this fence is cleared. */
  clear(fence: number): Promise<void>
}

/** What was asked under a request id, and whose id it is. */
export interface Asked {
  operation: string
  key: string
  input_hash: string
}

/** An ask with an effect, to be decided by another process. It was checked where it was asked. */
export interface SentAsk {
  operation: string
  input: Record<string, unknown>
  request: Asked | undefined
  caller: Caller
  ticket_id?: string | undefined
}

/** What sends asks to the leader of a store; see src/reach/leader.ts. */
export interface Leader {
  /** Whether asks are sent elsewhere now. */
  readonly isLed: boolean
  /** Has `asked` decided there, or by `direct` where nobody there can or will. */
  decide<T>(asked: SentAsk, direct: () => Promise<T>): Promise<T>
}

/** What a store takes, which is known without counting. */
export interface Bytes {
  bytes: number
  /** Bytes within them that are free to be used again. */
  free_bytes: number
}

/** How large a store is. */
export interface Sizes extends Bytes {
  /** Rows by table; `event` too. */
  rows: Record<string, number>
}

/** How many rows there are, counted beside any writer. */
export interface Counter {
  /** The newest row of a group of an index that is not among the newest `keep`. */
  cutoff(index: IndexName, group: string, keep: number): Promise<Cursor | undefined>
  sizes(): Promise<Sizes>
  bytes(): Promise<Bytes>
}

export interface TextAsk {
  /** Words, as `termsOf` leaves them. */
  terms: string[]
  scope?: string | undefined
  /** Ranked by what is in that scope alone. */
  apart?: boolean
  limit: number
}

/** One version that is the present of a note, and its vector where there is one yet. */
export interface VectorRow {
  /** Of the version. */
  id: string
  scope: string
  bytes: Uint8Array | null
}

/** Up to which note, in the order of their changes, the keeper came. */
export type Progress = Pick<Embedding, 'cursor' | 'cursor_ms'>

/** How far what is done behind notes has come. */
export interface MemoryTally {
  notes: number
  /** Those that changed behind the cursor: nothing was begun for them yet. */
  behind: number
  /** Those that were begun with and are not done; those put aside. */
  waiting: number
  dead: number
}

/**
 * What rows by key and by index cannot tell. It may show what was committed a moment before or
 * after a view, so its users look at the rows themselves again.
 */
export interface Finder {
  /**
   * Notes that have any of the words, the best first. The cost is bounded at any size: of words
   * that very many notes have, only the newest notes are looked at.
   */
  searchText(ask: TextAsk): Promise<Hit[]>
  /** Of so many live notes behind the id of one, in the order of ids. */
  vectors(provider: string, after: string, limit: number): Promise<VectorRow[]>
  vectorsOf(provider: string, memory_ids: string[]): Promise<VectorRow[]>
  tallyMemory(progress: Progress): Promise<MemoryTally>
}

/** Who knows what texts mean: a model, and an index of vectors. */
export interface Meant {
  hits: Hit[]
  /** A query whose best hit is below this is about something that no note is about. */
  floor: number
}

export interface Meaning {
  /** Notes that mean much the same, the best first; or why that cannot be told now. */
  search(query: string, scopes: string[] | undefined, limit: number): Promise<Meant | string>
  /** The provider whose vectors count here. */
  readonly provider: string
}

/** The store cannot say whether a commit took effect. The door answers `unavailable`. */
export class CommitUnknown extends Error {}

/** The transaction ended before anything was committed, by no fault of any ask: decide anew. */
export class Again extends Error {}

/** No transaction could be begun, for the reason in `cause`. */
export class NotBegun extends Error {
  constructor(cause: unknown) {
    super('no transaction could be begun', { cause })
  }
}
