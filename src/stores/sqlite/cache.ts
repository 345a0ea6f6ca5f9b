import { INDEXES } from '../../core/schema/indexes.ts'
import {
  type AnyRow,
  type Changes,
  IS_APART,
  type IndexName,
  type TableName,
  TABLES,
} from '../../core/schema/schema.ts'
import { Remembered } from '../writer/remembered.ts'

/** Groups of an index that are remembered; beyond this it starts over. */
const GROUPS_MAX = 20_000

interface Index {
  table: TableName
  group: (row: AnyRow) => string | null
}

/**
 * What the writer knows of the committed rows from one batch to the next. True only as long as
 * nobody else commits: then all of it has to be forgotten.
 */
export class Cache {
  private readonly rows = Object.fromEntries(
    TABLES.map((table) => [table, new Remembered()]),
  ) as Record<TableName, Remembered>
  /** Tables known to have rows, or none: most stores have no waiters, and need not ask for them. */
  private readonly empty = new Map<TableName, boolean>()
  /** Groups known to have no rows: most agents have no tasks of their own, most locks no line. */
  private readonly barren = new Map<IndexName, Set<string>>()

  /** The rows of a table that were seen; null where there is known to be none. */
  of(table: TableName): Map<string, AnyRow | null> {
    return this.rows[table]
  }

  isEmpty(table: TableName, look: () => boolean): boolean {
    let empty = this.empty.get(table)
    if (empty === undefined) this.empty.set(table, (empty = look()))
    return empty
  }

  isBarren(index: IndexName, group: string): boolean {
    return this.barren.get(index)?.has(group) ?? false
  }

  learnBarren(index: IndexName, group: string): void {
    const groups = this.barren.get(index) ?? new Set()
    this.barren.set(index, groups.add(group))
  }

  /** Before a batch: what the last one looked at has to be in memory no longer. */
  trim(): void {
    for (const table of TABLES) this.rows[table].trim()
  }

  /** Takes in what was just committed. */
  keep(changes: Changes): void {
    for (const table of TABLES) {
      const rows = this.rows[table]
      for (const [key, row] of changes[table] ?? []) {
        // What is gone is seldom asked for again, and ready rows come and go with every claim.
        if (row === null) rows.delete(key)
        else rows.set(key, row)
        if (row !== null) this.empty.set(table, false)
      }
      if (IS_APART[table]) rows.clear()
    }
    for (const [index, groups] of this.barren) {
      const { table, group } = INDEXES[index] as Index
      if (groups.size > GROUPS_MAX) groups.clear()
      for (const row of changes[table]?.values() ?? []) {
        const settled = row && group(row)
        if (typeof settled === 'string') groups.delete(settled)
      }
    }
  }

  forget(): void {
    for (const table of TABLES) this.rows[table].clear()
    this.empty.clear()
    this.barren.clear()
  }
}
