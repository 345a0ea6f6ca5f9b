import { event } from '../../core/schema/event.ts'
import { kindOf, valueIn } from '../../core/schema/indexes.ts'
import {
  type AnyRow,
  type AnyTable,
  SCHEMA,
  type TableName,
  TABLES,
} from '../../core/schema/schema.ts'
import type { Kind } from '../../core/schema/table.ts'
import type { Event } from '../../core/event.ts'
import { storedColumns } from '../sql.ts'
import type { SqliteValue } from './driver.ts'

/** Rows are never changed in place, so empty lists and objects can be shared. */
const EMPTY: Record<string, unknown> = { '[]': Object.freeze([]), '{}': Object.freeze({}) }

/** 2^i for every column that a table may have; sums of them stay exact. */
const POWERS = Array.from({ length: 53 }, (_, i) => 2 ** i)

type Fields = Record<string, unknown>

/** A row as the values of its columns. */
export class Codec<Row> {
  /** The columns of rows, in the order in which they are read. */
  readonly names: string[]
  /** All that are written: those, then what follows from them. */
  readonly stored: string[]
  private readonly kinds: Kind[]
  private readonly derived: ((row: Row) => unknown)[]
  /**
   * Rows are copies of this, filled in. V8 gives them all one shape; rows filled in name by name,
   * and those of the driver, become hash tables, and a spread of one takes 4.5 µs in place of 0.1.
   */
  private readonly blank: Fields

  constructor(table: AnyTable) {
    this.names = Object.keys(table.columns)
    this.stored = storedColumns(table)
    this.kinds = this.stored.map((name) => kindOf(table, name))
    this.derived = Object.keys(table.derived).map((name) => valueIn(table, name) as never)
    this.blank = JSON.parse(JSON.stringify(table.columns)) as Fields
  }

  encode(row: Row, into: SqliteValue[]): void {
    for (let i = 0; i < this.stored.length; i += 1) into.push(this.valueOf(row, i))
  }

  private fieldOf(row: Row, i: number): unknown {
    const { names } = this
    if (i >= names.length) return this.derived[i - names.length]!(row)
    return (row as Fields)[names[i]!]
  }

  /** The value of the stored column `i` of `row`. */
  valueOf(row: Row, i: number): SqliteValue {
    const value = this.fieldOf(row, i)
    if (value === null || value === undefined) return null
    const kind = this.kinds[i]
    if (kind === 'json') return JSON.stringify(value)
    if (kind === 'bytes') return Buffer.from((value as string).slice(2), 'hex')
    return kind === 'bool' ? (value ? 1 : 0) : (value as SqliteValue)
  }

  /** Whether what follows from a row is what stands in the database, behind `names`. */
  isFollowed(row: Row, values: unknown[]): boolean {
    const { names } = this
    return this.derived.every((_, i) => {
      return this.valueOf(row, names.length + i) === values[names.length + i]
    })
  }

  /** The columns in which two rows differ, as a sum of powers of two. */
  difference(before: Row, after: Row): number {
    let sum = 0
    for (let i = 0; i < this.stored.length; i += 1) {
      if (this.fieldOf(before, i) !== this.fieldOf(after, i)) sum += POWERS[i]!
    }
    return sum
  }

  /** The columns of such a sum. */
  pick(sum: number): number[] {
    return this.stored.map((_, i) => i).filter((i) => Math.floor(sum / POWERS[i]!) % 2 === 1)
  }

  decode(values: unknown[]): Row {
    const row = { ...this.blank }
    for (let i = 0; i < this.names.length; i += 1) {
      const value = values[i]
      const kind = this.kinds[i]
      if (kind === 'bool') row[this.names[i]!] = value === 1
      else if (kind === 'bytes') row[this.names[i]!] = spelled(value as Uint8Array)
      else if (kind !== 'json' || value === null) row[this.names[i]!] = value
      else row[this.names[i]!] = EMPTY[value as string] ?? parsed(value, this.names[i]!)
    }
    return row as Row
  }
}

/** What stands in the store cannot be what we wrote there. */
export class Unreadable extends Error {}

function parsed(value: unknown, column: string): unknown {
  try {
    return JSON.parse(value as string)
  } catch {
    throw new Unreadable(`a row whose ${column} is not JSON`)
  }
}

/** Bytes as PostgreSQL spells them. */
function spelled(bytes: Uint8Array): string {
  return String.raw`\x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('hex')}`
}

export const CODECS = Object.fromEntries(
  TABLES.map((table) => [table, new Codec<AnyRow>(SCHEMA[table])]),
) as Record<TableName, Codec<AnyRow>>

export const EVENT_CODEC = new Codec<Event>(event)
