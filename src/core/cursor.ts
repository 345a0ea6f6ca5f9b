import { KEYS, type TableName, type Tables } from './rows.ts'
import { type Cursor, INDEXES, type IndexName } from './view.ts'

type AnyRow = Tables[TableName]

/** Where a row stands in an index. */
export function cursorOf(index: IndexName, row: AnyRow): Cursor {
  const { table, order } = INDEXES[index]
  return {
    order: (order as (row: AnyRow) => number | string)(row),
    key: row[KEYS[table] as keyof AnyRow],
  }
}

export function isBefore(a: Cursor, b: Cursor): boolean {
  return a.order < b.order || (a.order === b.order && a.key < b.key)
}
