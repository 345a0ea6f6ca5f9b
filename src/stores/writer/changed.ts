import { INDEXES, type IndexName } from '../../core/view.ts'
import { cursorOf } from '../../core/cursor.ts'
import { placeBehind } from './page.ts'
import type { AnyRow } from '../port.ts'

const NONE: never[] = []

/**
 * The rows that a batch has changed, as one index has them. Every ask of a batch scans through what
 * those before it changed: to look at all of that each time took most of a large batch.
 */
export class ChangedRows {
  private readonly index: IndexName
  private readonly groupOf: (row: AnyRow) => string | null
  private readonly groups = new Map<string, AnyRow[]>()
  /** Each row as it stands in its group. */
  private readonly rows = new Map<string, AnyRow>()

  constructor(index: IndexName) {
    this.index = index
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
