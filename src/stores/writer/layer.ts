import { type Cursor, cursorOf, INDEXES, isBefore } from '../../core/schema/indexes.ts'
import {
  type AnyRow,
  type Changes,
  type IndexName,
  KEYS,
  type TableName,
  type TableOf,
  type Tables,
  TABLES,
} from '../../core/schema/schema.ts'
import type { GroupRef, ProcessRef } from '../../core/rows.ts'
import type { EventPlace, Fact, View } from '../../core/view.ts'
import { AHEAD } from '../../core/ahead.ts'
import type { EventData, EventDraft, EventSubject, EventType } from '../../core/event.ts'
import { type Instant, instantOf } from './clock.ts'
import { ChangedRows, INDEXES_OF, Page, placeBehind } from './page.ts'
import type { Base, Head } from '../port.ts'
import type { Machine } from '../../machine/machine.ts'

/** Epoch in the high bits leaves 2^40 grants per epoch and 2^13 restores in a safe integer. */
export const FENCES_PER_EPOCH = 2 ** 40

const FIRST_PAGE = 4

const NONE: never[] = []

/** What a whole batch has decided so far, over the committed rows. */
export class Batch {
  readonly changes: Changes
  readonly drafts: EventDraft[] = []
  forgets: EventPlace | undefined
  /** How often a row was put into a table. Zero spares scans a look at the changes. */
  readonly puts: Partial<Record<TableName, number>>
  private readonly pages = new Map<IndexName, Map<string, Page>>()
  /** The changed rows of the indexes that were looked at, by group. */
  private readonly changed = new Map<IndexName, ChangedRows>()
  private readonly facts = new Map<string, Fact>()

  constructor(
    private readonly base: Base,
    public head: Head,
    readonly instant: Instant,
    private readonly machine: Machine,
    private readonly asks = 1,
    decided: Pick<Batch, 'changes' | 'puts'> = { changes: {}, puts: {} },
  ) {
    this.changes = decided.changes
    this.puts = decided.puts
  }

  /** Whether nothing was decided that has to be written. */
  get isEmpty(): boolean {
    const isUnchanged = this.drafts.length === 0 && this.forgets === undefined
    return isUnchanged && Object.keys(this.changes).length === 0
  }

  /** A copy of what was decided so far, over other rows, to try something on. */
  over(base: Base): Batch {
    const changes = TABLES.map((table) => [table, new Map<string, unknown>(this.changes[table])])
    const decided = { changes: Object.fromEntries(changes) as Changes, puts: { ...this.puts } }
    return new Batch(base, this.head, this.instant, this.machine, this.asks, decided)
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const changed = this.changes[table]?.get(key)
    if (changed !== undefined) return changed ?? undefined
    return this.base.get(table, key)
  }

  /**
   * The committed rows of a group, fetched page by page and kept for the rest of the batch. Behind
   * a cursor they are not kept: few ask for the same place again.
   */
  page(index: IndexName, group: string, after?: Cursor): Page {
    if (after) return new Page(this.base, index, group, FIRST_PAGE, after)
    let pages = this.pages.get(index)
    if (!pages) this.pages.set(index, (pages = new Map()))
    let page = pages.get(group)
    if (!page) {
      const { taken, looked = FIRST_PAGE } = AHEAD[index] ?? {}
      const size = taken ? this.asks + FIRST_PAGE : looked
      pages.set(group, (page = new Page(this.base, index, group, size)))
    }
    page.skip(this.changes[INDEXES[index].table])
    return page
  }

  fact(kind: 'process' | 'group' | 'leader', ref: GroupRef): Fact {
    const key = `${kind} ${ref.host} ${ref.seat} ${ref.pid} ${ref.start} ${ref.mark}`
    let fact = this.facts.get(key)
    if (!fact) this.facts.set(key, (fact = this.machine[kind](ref)))
    return fact
  }

  /** Changed rows of one group, in order. */
  changedIn(index: IndexName, group: string): readonly AnyRow[] {
    const { table } = INDEXES[index]
    if (!this.puts[table]) return NONE
    let changed = this.changed.get(index)
    if (!changed) {
      this.changed.set(index, (changed = new ChangedRows(index)))
      for (const [key, row] of this.changes[table]!) changed.set(key, row)
    }
    return changed.in(group)
  }

  /** Makes a decided layer part of the batch. */
  adopt(layer: Layer): void {
    for (const table of TABLES) {
      const theirs = layer.changes[table]
      if (!theirs) continue
      const mine = (this.changes[table] ??= new Map()) as Map<string, AnyRow | null>
      const looked = INDEXES_OF.get(table)!.flatMap((index) => this.changed.get(index) ?? [])
      for (const [key, row] of theirs) {
        mine.set(key, row)
        for (const changed of looked) changed.set(key, row)
        if (row !== null) this.puts[table] = (this.puts[table] ?? 0) + 1
      }
    }
    for (const draft of layer.drafts) this.drafts.push(draft)
    this.forgets = layer.forgets ?? this.forgets
    this.head = layer.head
  }
}

/** A batch that begins now, over what was committed up to `begun`. */
export function batchOver(base: Base, begun: Head, machine: Machine, asks = 1): Batch {
  const { instant, head } = instantOf(begun, machine)
  return new Batch(base, head, instant, machine, asks)
}

/** One ask's view of a batch: copy-on-write, so that a refusal is forgotten by dropping it. */
export class Layer implements View {
  readonly changes: Changes = {}
  readonly drafts: EventDraft[] = []
  forgets: EventPlace | undefined
  head: Head
  readonly now: number
  readonly wall: number
  readonly at: string

  constructor(
    private readonly batch: Batch,
    /** Groups that could not be stopped: for this ask they are as good as out of reach. */
    private readonly unstoppable: ReadonlySet<string> = new Set(),
  ) {
    this.head = batch.head
    this.now = batch.instant.now
    this.wall = batch.instant.wall
    this.at = batch.instant.at
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const changed = this.changes[table]?.get(key)
    if (changed !== undefined) return changed ?? undefined
    return this.batch.get(table, key)
  }

  put<T extends TableName>(table: T, row: Tables[T]): void {
    const key = row[KEYS[table]] as string
    const rows = (this.changes[table] ??= new Map() as Changes[T]) as Map<string, Tables[T] | null>
    rows.set(key, row)
  }

  remove(table: TableName, key: string): void {
    const rows = (this.changes[table] ??= new Map()) as Map<string, null>
    rows.set(key, null)
  }

  scan<I extends IndexName>(index: I, group: string, after?: Cursor): Iterable<Tables[TableOf<I>]> {
    const changed = this.changedRows(index, group)
    const page = this.batch.page(index, group, after)
    // Most scans find nothing: no line, no waiters, no tasks of one's own.
    if (changed.length === 0 && page.at(page.start) === undefined) return NONE
    return this.merge(index, changed, page, after)
  }

  *due<I extends IndexName>(
    index: I,
    group: string,
    until: number,
    after?: Cursor,
  ): Generator<Tables[TableOf<I>]> {
    for (const row of this.scan(index, group, after)) {
      if (Number(cursorOf(index, row).order) > until) return
      yield row
    }
  }

  /** Changed rows of the group come from memory, the others from the store, merged in order. */
  private *merge<I extends IndexName>(
    index: I,
    changed: readonly AnyRow[],
    page: Page,
    after: Cursor | undefined,
  ): Generator<Tables[TableOf<I>]> {
    type Row = Tables[TableOf<I>]
    const { table } = INDEXES[index]
    const mine = this.changes[table]
    const theirs = this.batch.changes[table]
    const key = KEYS[table] as keyof AnyRow
    let at = after ? placeBehind(index, changed, after) : 0
    for (let i = page.start; ; i += 1) {
      const row = page.at(i)
      const here = row && cursorOf(index, row)
      while (at < changed.length && (!here || isBefore(cursorOf(index, changed[at]!), here))) {
        yield changed[at]! as Row
        at += 1
      }
      if (!row || !here) return
      if (mine?.has(row[key]) || theirs?.has(row[key])) continue
      yield row as Row
    }
  }

  private changedRows(index: IndexName, group: string): readonly AnyRow[] {
    const theirs = this.batch.changedIn(index, group)
    const definition = INDEXES[index] as { table: TableName; group(row: AnyRow): string | null }
    const mine = this.changes[definition.table] as Map<string, AnyRow | null> | undefined
    if (!mine) return theirs
    const key = KEYS[definition.table] as keyof AnyRow
    const found = theirs.filter((row) => !mine.has(row[key]))
    for (const row of mine.values()) if (row && definition.group(row) === group) found.push(row)
    return found.toSorted((a, b) => (isBefore(cursorOf(index, a), cursorOf(index, b)) ? -1 : 1))
  }

  nextFence(): number {
    this.head = { ...this.head, fences: this.head.fences + 1 }
    return this.head.epoch * FENCES_PER_EPOCH + this.head.fences
  }

  nextTaskNumber(): number {
    this.head = { ...this.head, task_number: this.head.task_number + 1 }
    return this.head.task_number
  }

  process(ref: ProcessRef): Fact {
    return this.batch.fact('process', ref)
  }

  group(ref: GroupRef): Fact {
    return this.unstoppable.has(`${ref.pid} ${ref.start}`)
      ? 'unknown'
      : this.batch.fact('group', ref)
  }

  leader(ref: GroupRef): Fact {
    return this.batch.fact('leader', ref)
  }

  record<T extends EventType>(
    type: T,
    { agent, lock = null, task = null }: EventSubject,
    data: EventData[T],
  ): void {
    this.drafts.push({ type, agent, lock, task, data } as EventDraft)
  }

  forgetEvents(last: EventPlace): void {
    this.forgets = last
  }
}
