import { type Cursor, cursorOf, INDEXES, isBefore } from '../../core/schema/indexes.ts'
import {
  type AnyRow,
  type Changes,
  type IndexName,
  IS_APART,
  KEYS,
  type TableName,
  TABLES,
  type Tables,
} from '../../core/schema/schema.ts'
import { AHEAD, FOLLOWED, type Likely, needFrom } from '../../core/ahead.ts'
import { keyOf } from '../../core/rows.ts'
import { type Need, NotLoaded } from '../../core/view.ts'
import { INDEXES_OF, placeBehind } from '../writer/page.ts'
import type { Base } from '../port.ts'
import { Remembered } from '../writer/remembered.ts'
import {
  mostOf,
  nothing,
  pageKey,
  type Wanted,
  type WantedPage,
  type WantedStart,
} from './wanted.ts'

/** Groups of an index that are remembered; beyond this it starts over. */
const GROUPS_MAX = 20_000

/** A round trip costs as much as many rows: whoever wants a few gets some more. */
const ROWS_MIN = 16
/** Of groups that are read ahead there are as many as rows before them. */
const FEW_ROWS_MIN = 4
/** Every ask of a batch takes one of these, and the next batch goes on behind them. */
const BATCHES_AHEAD = 4
/** Beyond so many, others will have had their turn before it is theirs. */
const AHEAD_MAX = 1_024

const READ_AHEAD = new Set(FOLLOWED.flatMap(({ next }) => next.flatMap(indexesIn)))

function indexesIn(likely: Likely): IndexName[] {
  const behind = likely.next?.flatMap(indexesIn) ?? []
  return 'index' in likely ? [likely.index, ...behind] : behind
}

interface Index {
  table: TableName
  group: (row: AnyRow) => string | null
}

/**
 * The first rows of a group, in order: all that are not behind `upTo`, or all there are. When they
 * were taken, those behind are loaded, and nobody passes again the places of rows that are gone:
 * while a transaction is left open, an index keeps these.
 */
interface Start {
  rows: AnyRow[]
  upTo: Cursor | undefined
}

/** Rows behind a cursor; all there are if fewer than `limit`. */
interface Page {
  index: IndexName
  rows: AnyRow[]
  limit: number
}

/**
 * The committed rows that were loaded. What was never asked for is not known to be missing: asking
 * for it throws `NotLoaded`. Kept from one batch to the next as long as nobody else commits.
 */
export class Known implements Base {
  private readonly rows = Object.fromEntries(
    TABLES.map((table) => [table, new Remembered()]),
  ) as Record<TableName, Remembered>
  private readonly starts = new Map<IndexName, Map<string, Start>>()
  /** In which group of an index a row was seen. */
  private readonly places = new Map<IndexName, Map<string, string>>()
  private readonly pages = new Map<string, Page>()
  /** Rows behind which all was known: to look again at each load took a quarter of the time. */
  private followed = new WeakSet<AnyRow>()
  /** For how many batches to load what they will claim. */
  private ahead = BATCHES_AHEAD
  /** Tables without any row; undefined before that was asked. */
  private empty: Set<TableName> | undefined

  get asksForEmpty(): boolean {
    return this.empty === undefined
  }

  learnEmpty(tables: TableName[]): void {
    this.empty = new Set(tables)
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const row = this.rows[table].get(key)
    if (row === undefined && this.empty?.has(table)) return undefined
    if (row === undefined) throw new NotLoaded({ table, key })
    return (row ?? undefined) as Tables[T] | undefined
  }

  /** The row as it was committed, if that is known. */
  committed(table: TableName, key: string): AnyRow | null | undefined {
    return this.rows[table].get(key)
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    const found = this.find(index, group, after, limit)
    if (!found) throw new NotLoaded({ index, group, after, limit })
    return found
  }

  private find(index: IndexName, group: string, after: Cursor | undefined, limit: number) {
    if (this.empty?.has(INDEXES[index].table)) return []
    const start = this.starts.get(index)?.get(group)
    if (start) {
      const from = after ? placeBehind(index, start.rows, after) : 0
      if (!start.upTo || start.rows.length - from >= limit) {
        return start.rows.slice(from, from + limit)
      }
    }
    const page = after && this.pages.get(pageKey({ index, group, after }))
    const enough = page && (page.rows.length >= limit || page.rows.length < page.limit)
    return enough ? page.rows.slice(0, limit) : undefined
  }

  /** Of `needs`, what is not known yet. */
  lacking(needs: Need[]): Wanted {
    const wanted = nothing()
    for (const need of needs) this.want(wanted, need)
    return wanted
  }

  /** Adds to `wanted` what is not known yet. Returns whether that was so. */
  private want(wanted: Wanted, need: Need): boolean {
    return 'table' in need ? this.wantRow(wanted, need) : this.wantScan(wanted, need)
  }

  private wantRow(wanted: Wanted, { table, key }: { table: TableName; key: string }): boolean {
    if (this.rows[table].has(key) || this.empty?.has(table)) return false
    const keys = wanted.keys.get(table)
    if (keys) keys.add(key)
    else wanted.keys.set(table, new Set([key]))
    return true
  }

  private wantScan(wanted: Wanted, need: Extract<Need, { index: IndexName }>): boolean {
    const least = READ_AHEAD.has(need.index) ? FEW_ROWS_MIN : ROWS_MIN
    const { index, group, after, limit: asked = least } = need
    if (this.find(index, group, after, asked)) return false
    const limit = Math.max(least, AHEAD[index]?.taken ? asked * this.ahead : asked)
    const upTo = this.starts.get(index)?.get(group)?.upTo
    if (after && (!upTo || isBefore(upTo, after))) {
      const page = { index, group, after, limit }
      wanted.pages.set(pageKey(page), page)
      return true
    }
    const groups = wanted.groups.get(index) ?? new Map<string, WantedStart>()
    const most = Math.max(limit, groups.get(group)?.limit ?? 0)
    wanted.groups.set(index, groups.set(group, { limit: most, after: upTo }))
    return true
  }

  /** What is likely to be read after the rows that are known, and is not known yet. */
  lackingAhead(): Wanted {
    const wanted = nothing()
    for (const { index, next } of FOLLOWED) {
      for (const row of this.startsOf(index)) this.wantNext(wanted, row, next)
    }
    return wanted
  }

  /** Whether all that is likely to be read after a row is known; what is not, is wanted. */
  private wantNext(wanted: Wanted, row: AnyRow, next: readonly Likely[]): boolean {
    if (this.followed.has(row)) return true
    let isKnown = true
    for (const likely of next) {
      const need = needFrom(row, likely)
      if (!need) continue
      if (this.want(wanted, need)) isKnown = false
      for (const each of likely.next ? this.knownOf(need) : []) {
        if (!this.wantNext(wanted, each, likely.next!)) isKnown = false
      }
    }
    if (isKnown) this.followed.add(row)
    return isKnown
  }

  private knownOf(need: Need): AnyRow[] {
    if ('index' in need) return this.starts.get(need.index)?.get(need.group)?.rows ?? []
    const row = this.rows[need.table].get(need.key)
    return row ? [row] : []
  }

  /** The first rows of all groups that are known, and those behind that somebody went on to. */
  private startsOf(index: IndexName): AnyRow[] {
    const starts = [...(this.starts.get(index)?.values() ?? [])]
    const pages = [...this.pages.values()].filter((page) => page.index === index)
    return [...starts, ...pages].flatMap(({ rows }) => rows.slice(0, AHEAD_MAX))
  }

  /** Takes in what was found of `wanted`; what was not found is now known to be missing. */
  learn(wanted: Wanted, found: { table: TableName; row: AnyRow }[]): void {
    const byTable = new Map<TableName, AnyRow[]>()
    for (const { table, row } of found) {
      const key = keyIn(table, row)
      if (this.rows[table].get(key) !== row) this.rows[table].set(key, row)
      const its = byTable.get(table)
      if (its) its.push(row)
      else byTable.set(table, [row])
    }
    for (const [table, keys] of wanted.keys) {
      for (const key of keys) if (!this.rows[table].has(key)) this.rows[table].set(key, null)
    }
    for (const [index, groups] of wanted.groups) {
      this.learnGroups(index, groups, byTable.get(INDEXES[index].table) ?? [])
    }
    this.learnPages([...wanted.pages.values()], byTable)
  }

  /** Rows that were found for one page may be part of another, so those of a group go together. */
  private learnPages(pages: WantedPage[], byTable: Map<TableName, AnyRow[]>): void {
    const groups = new Map<string, AnyRow[]>()
    for (const page of pages) {
      const { index, group, after, limit } = page
      const name = keyOf(index, group)
      let rows = groups.get(name)
      if (!rows) {
        const its = byTable.get(INDEXES[index].table) ?? []
        rows = sorted(
          index,
          its.filter((row) => groupOf(index, row) === group),
        )
        groups.set(name, rows)
      }
      const from = placeBehind(index, rows, after)
      this.pages.set(pageKey(page), { index, rows: rows.slice(from, from + limit), limit })
    }
  }

  private learnGroups(index: IndexName, groups: Map<string, WantedStart>, rows: AnyRow[]): void {
    const starts = this.starts.get(index) ?? new Map<string, Start>()
    const places = this.places.get(index) ?? new Map<string, string>()
    this.starts.set(index, starts)
    this.places.set(index, places)
    const limit = mostOf(groups)
    const byGroup = new Map<string, AnyRow[]>([...groups.keys()].map((group) => [group, []]))
    for (const row of rows) byGroup.get(groupOf(index, row) ?? '\0')?.push(row)
    for (const [group, its] of byGroup) {
      const { after } = groups.get(group)!
      const inOrder = sorted(index, its)
      const found = after ? inOrder.slice(placeBehind(index, inOrder, after)) : inOrder
      const more = found.slice(0, limit)
      const start = (after && starts.get(group)) ?? { rows: [], upTo: undefined }
      const last = found.length < limit ? undefined : more.at(-1)
      start.rows.push(...more)
      start.upTo = last && cursorOf(index, last)
      starts.set(group, start)
      for (const row of more) places.set(keyIn(INDEXES[index].table, row), group)
    }
  }

  /** Takes in what was just committed. */
  keep(changes: Changes): void {
    this.pages.clear()
    for (const table of TABLES) {
      const changed = changes[table] as Map<string, AnyRow | null> | undefined
      if (IS_APART[table]) this.rows[table].clear()
      if (!changed) continue
      this.empty?.delete(table)
      for (const [key, row] of changed) this.change(table, key, row)
    }
  }

  private forgetIndex(index: IndexName): void {
    this.followed = new WeakSet()
    this.starts.delete(index)
    this.places.delete(index)
  }

  private makeRoom(table: TableName): void {
    if (!this.rows[table].trim()) return
    for (const index of INDEXES_OF.get(table)!) this.forgetIndex(index)
    this.pages.clear()
  }

  private change(table: TableName, key: string, row: AnyRow | null): void {
    const before = this.rows[table].get(key) ?? undefined
    // What is gone is seldom asked for again, and ready rows come and go with every claim.
    if (row === null) this.rows[table].delete(key)
    else if (!IS_APART[table]) this.rows[table].set(key, row)
    for (const index of INDEXES_OF.get(table)!) this.move(index, key, row, before)
  }

  private move(
    index: IndexName,
    key: string,
    row: AnyRow | null,
    before: AnyRow | undefined,
  ): void {
    const starts = this.starts.get(index)
    const places = this.places.get(index)
    if (!starts || !places) return
    if (starts.size > GROUPS_MAX) {
      starts.clear()
      places.clear()
      return
    }
    const left = places.get(key)
    if (left !== undefined) {
      places.delete(key)
      const { rows } = starts.get(left)!
      const isIt = (each: AnyRow | undefined) => each && keyIn(INDEXES[index].table, each) === key
      const near = before ? placeBehind(index, rows, cursorOf(index, before)) - 1 : -1
      const at = isIt(rows[near]) ? near : rows.findIndex(isIt)
      if (at >= 0) rows.splice(at, 1)
    }
    const group = row && groupOf(index, row)
    const start = typeof group === 'string' ? starts.get(group) : undefined
    if (!row || !start || typeof group !== 'string') return
    const here = cursorOf(index, row)
    // There may be others before it that are not known.
    if (start.upTo && isBefore(start.upTo, here)) return
    start.rows.splice(placeBehind(index, start.rows, here), 0, row)
    places.set(key, group)
  }

  /**
   * Before a batch: what the last one looked at has to be in memory no longer. What is loaded for
   * later batches is of no use where others commit between them (`isShared`).
   */
  makeReady(isShared: boolean): void {
    for (const table of TABLES) this.makeRoom(table)
    this.ahead = isShared ? 1 : BATCHES_AHEAD
  }

  forget(): void {
    for (const table of TABLES) this.rows[table].clear()
    this.followed = new WeakSet()
    this.starts.clear()
    this.places.clear()
    this.pages.clear()
    this.empty = undefined
  }
}

const keyIn = (table: TableName, row: AnyRow): string => row[KEYS[table] as keyof AnyRow]

const groupOf = (index: IndexName, row: AnyRow) => (INDEXES[index] as Index).group(row)

/** In the order of the index, each once: several branches may have found the same row. */
function sorted(index: IndexName, rows: AnyRow[]): AnyRow[] {
  if (rows.length < 2) return rows
  const { table } = INDEXES[index]
  const inOrder = rows.toSorted((a, b) =>
    isBefore(cursorOf(index, a), cursorOf(index, b)) ? -1 : 1,
  )
  return inOrder.filter((row, i) => i === 0 || keyIn(table, row) !== keyIn(table, inOrder[i - 1]!))
}
