import { kindOf, valueIn } from '../core/schema/indexes.ts'
import { type AnyTable, SCHEMA, type TableName, TABLES } from '../core/schema/schema.ts'
import type { Kind } from '../core/schema/table.ts'
import { storedColumns } from './sql.ts'

/** Rows are never changed in place, so empty lists and objects can be shared. */
const EMPTY: Record<string, unknown> = { '[]': Object.freeze([]), '{}': Object.freeze({}) }

/** A value of JSON that a database gave as text. */
export const fromJson = (text: string): unknown => EMPTY[text] ?? JSON.parse(text)

/** A row as the values of its columns; a database says how it spells those. */
export abstract class Codec<Row, Stored> {
  /** The columns of rows, in the order in which they are read. */
  readonly names: string[]
  /** All that are written: those, then what follows from them. */
  readonly stored: string[]
  protected readonly kinds: Kind[]
  private readonly derived: ((row: Row) => unknown)[]
  /**
   * Rows are copies of this, filled in. V8 gives them all one shape; rows filled in name by name,
   * and those of a driver, become hash tables, and a spread of one takes 4.5 µs in place of 0.1.
   */
  private readonly blank: Record<string, unknown>

  constructor(table: AnyTable) {
    this.names = Object.keys(table.columns)
    this.stored = storedColumns(table)
    this.kinds = this.stored.map((name) => kindOf(table, name))
    this.derived = Object.keys(table.derived).map((name) => valueIn(table, name) as never)
    this.blank = JSON.parse(JSON.stringify(table.columns)) as Record<string, unknown>
  }

  /** What the stored column `i` of a row is. */
  protected fieldOf(row: Row, i: number): unknown {
    const { names } = this
    if (i >= names.length) return this.derived[i - names.length]!(row)
    return (row as Record<string, unknown>)[names[i]!]
  }

  /** A value as rules have it, from the column `name`. */
  protected abstract read(kind: Kind, value: NonNullable<Stored>, name: string): unknown

  /** The row whose columns begin at `from`. */
  decode(values: Stored[], from = 0): Row {
    const row = { ...this.blank }
    for (let i = 0; i < this.names.length; i += 1) {
      const name = this.names[i]!
      const value = values[from + i]
      row[name] =
        value === null || value === undefined ? null : this.read(this.kinds[i]!, value, name)
    }
    return row as Row
  }
}

/** One for each table. */
export const perTable = <C>(make: (table: AnyTable) => C) =>
  Object.fromEntries(TABLES.map((name) => [name, make(SCHEMA[name])])) as Record<TableName, C>
