import {
  type AnyRow,
  type IndexName,
  KEYS,
  type TableName,
  TABLES,
} from '../../core/schema/schema.ts'
import { type Cursor, cursorOf, INDEXES, isBefore } from '../../core/schema/indexes.ts'
import type { Base } from '../port.ts'
import { hasBody } from './remembered.ts'

const LAST_PAGE = 512
/** Rows that have bodies come so few at a time: all of a page are in memory at once. */
const BODIES_PAGE = 4

/** The committed rows of one group of an index, fetched as far as anybody looked. */
export class Page {
  readonly rows: AnyRow[] = []
  start = 0
  private done = false

  private readonly after: Cursor | undefined

  constructor(
    private readonly base: Base,
    private readonly index: IndexName,
    private readonly group: string,
    private size: number,
    after?: Cursor,
  ) {
    this.after = after
  }

  /** The row at `i`, fetching further pages as needed; undefined at the end. */
  at(i: number): AnyRow | undefined {
    while (i >= this.rows.length && !this.done) {
      const last = this.rows.at(-1)
      const after = last ? cursorOf(this.index, last) : this.after
      const more = this.base.scan(this.index, this.group, after, this.size)
      this.rows.push(...more)
      this.done = more.length < this.size
      this.size = more.some(hasBody) ? BODIES_PAGE : Math.min(this.size * 4, LAST_PAGE)
    }
    return this.rows[i]
  }

  /** Leading rows that the batch has changed need no second look by the asks that follow. */
  skip(changed: Map<string, unknown> | undefined): void {
    const key = KEYS[INDEXES[this.index].table] as keyof AnyRow
    while (changed && this.start < this.rows.length) {
      if (!changed.has(this.rows[this.start]![key])) return
      this.start += 1
    }
  }
}

const indexesOf = (table: TableName) =>
  (Object.keys(INDEXES) as IndexName[]).filter((index) => INDEXES[index].table === table)

/** The indexes that rows of a table may be in. */
export const INDEXES_OF = new Map(TABLES.map((table) => [table, indexesOf(table)]))

/** How many of `rows`, which are in order, are not behind `cursor`. */
export function placeBehind(index: IndexName, rows: readonly AnyRow[], cursor: Cursor): number {
  let [low, high] = [0, rows.length]
  while (low < high) {
    const middle = (low + high) >> 1
    if (isBefore(cursor, cursorOf(index, rows[middle]!))) high = middle
    else low = middle + 1
  }
  return low
}

const NONE: never[] = []

/**
 * The rows that a batch has changed, as one index has them. Every ask of a batch scans through what
 * those before it changed: to look at all of that each time took most of a large batch.
 */
export class ChangedRows {
  private readonly groupOf: (row: AnyRow) => string | null
  private readonly groups = new Map<string, AnyRow[]>()
  /** Each row as it stands in its group. */
  private readonly rows = new Map<string, AnyRow>()

  constructor(private readonly index: IndexName) {
    this.groupOf = INDEXES[index].group as (row: AnyRow) => string | null
  }

  /** The rows of a group, in order. Not to be changed, and good until the next `set`. */
  in(group: string): readonly AnyRow[] {
    return this.groups.get(group) ?? NONE
  }

  set(key: string, row: AnyRow | null): void {
    const before = this.rows.get(key)
    if (before) {
      const rows = this.groups.get(this.groupOf(before)!)!
      rows.splice(placeBehind(this.index, rows, cursorOf(this.index, before)) - 1, 1)
      this.rows.delete(key)
    }
    const group = row && this.groupOf(row)
    if (!row || typeof group !== 'string') return
    this.rows.set(key, row)
    let rows = this.groups.get(group)
    if (!rows) this.groups.set(group, (rows = []))
    rows.splice(placeBehind(this.index, rows, cursorOf(this.index, row)), 0, row)
  }
}
