import { keyOf } from '../rows.ts'
import {
  type AnyRow,
  type AnyTable,
  KEYS,
  type IndexName,
  SCHEMA,
  type TableName,
  TABLES,
  type TableOf,
  type Tables,
} from './schema.ts'
import type { RowCondition, IndexOf, Kind } from './table.ts'

/** An index as rules and tables in memory follow it; an SQL store says the same in its words. */
export interface TableIndex<T extends TableName> {
  table: T
  /** The group that a row is in; null where it is in none. */
  group: (row: Tables[T]) => string | null
  order: (row: Tables[T]) => number | string
  /** What the schema says of it. */
  is: IndexOf
}

type Fields = Record<string, unknown>
type Value = (row: AnyRow) => unknown

/** What a column holds; the one of a derived column is computed. */
export function valueIn({ derived }: AnyTable, name: string): Value {
  const { text, instant, bool } = derived[name] ?? {}
  return text ?? instant ?? bool ?? ((row) => (row as unknown as Fields)[name] ?? null)
}

export function kindOf({ columns, derived }: AnyTable, name: string): Kind {
  const column = columns[name]
  if (column) return column.kind
  return Object.keys(derived[name]!)[0] as Kind
}

/** Whether a column may be null. */
export const isNullable = ({ columns, derived }: AnyTable, name: string) =>
  columns[name] ? columns[name].flags.isNullable === true : !derived[name]!.bool

type Fits = (row: AnyRow) => boolean

function fits(table: AnyTable, condition: RowCondition): Fits {
  const value = valueIn(table, condition.column)
  if (condition.is === 'null') return (row) => value(row) === null
  if (condition.is === 'not null') return (row) => value(row) !== null
  return (row) => value(row) === true
}

/** Asked of every row that a batch changes, and of all rows in memory: each step counts. */
function groupOf(table: AnyTable, { rows = [], group = [] }: IndexOf) {
  const [fit, ...more] = rows.map((condition) => fits(table, condition))
  const name = nameOf(table, group)
  if (!fit) return name
  if (more.length === 0) return (row: AnyRow) => (fit(row) ? name(row) : null)
  return (row: AnyRow) => (fit(row) && more.every((each) => each(row)) ? name(row) : null)
}

/** The group by its columns alone. */
function nameOf(table: AnyTable, group: readonly string[]): (row: AnyRow) => string | null {
  const [first, ...others] = group.map((name) => valueIn(table, name))
  if (!first) return () => ''
  if (others.length === 0) return first as (row: AnyRow) => string | null
  return (row) => {
    let name = first(row) as string | null
    for (const other of others) {
      const part = other(row) as string | number | null
      name = name === null || part === null ? null : keyOf(name, String(part))
    }
    return name
  }
}

function orderOf(table: AnyTable, { order, descends }: IndexOf) {
  const value = valueIn(table, order) as (row: AnyRow) => number | string | null
  if (descends) return (row: AnyRow) => -Number(value(row))
  const none = kindOf(table, order) === 'text' ? '' : 0
  return (row: AnyRow) => value(row) ?? none
}

const each = TABLES.flatMap((table) =>
  Object.entries(SCHEMA[table].indexes).map(([name, is]) => {
    const [group, order] = [groupOf(SCHEMA[table], is), orderOf(SCHEMA[table], is)]
    return [name, { table, group, order, is }] as const
  }),
)

export const INDEXES = Object.fromEntries(each) as unknown as {
  readonly [I in IndexName]: TableIndex<TableOf<I>>
}

/** One of them, where it is not known which. */
export const indexOf = (name: IndexName) => INDEXES[name] as unknown as TableIndex<TableName>

/** Where a paged scan goes on: behind this order and key. */
export interface Cursor {
  order: number | string
  key: string
}

/** Where a row stands in an index. */
export function cursorOf(name: IndexName, row: AnyRow): Cursor {
  const { table, order } = indexOf(name)
  return { order: order(row), key: row[KEYS[table] as keyof AnyRow] }
}

export function isBefore(a: Cursor, b: Cursor): boolean {
  return a.order < b.order || (a.order === b.order && a.key < b.key)
}
