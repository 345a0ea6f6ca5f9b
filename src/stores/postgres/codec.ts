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
import { type Dialect, storedColumns } from '../sql.ts'
import type { TextRow } from './driver.ts'

/** How PostgreSQL says what the schema says. Text is compared byte by byte, as rules do. */
export const POSTGRES: Dialect = {
  types: {
    text: 'text COLLATE "C"',
    int: 'bigint',
    instant: 'bigint',
    real: 'float8',
    bool: 'boolean',
    json: 'json',
    bytes: 'bytea',
  },
  char: 'chr',
  finds: 'strpos',
  isTrue: (column) => column,
  asText: (column) => `${column}::text`,
}

type Fields = Record<string, unknown>

/** How values of a kind are bound, many at once, and what turns them into those of the column. */
const BOUND: Record<Kind, { type: string; cast: string }> = {
  text: { type: 'text[]', cast: '' },
  int: { type: 'bigint[]', cast: '' },
  instant: { type: 'bigint[]', cast: '' },
  real: { type: 'float8[]', cast: '' },
  json: { type: 'text[]', cast: '::json' },
  bool: { type: 'boolean[]', cast: '' },
  bytes: { type: 'bytea[]', cast: '' },
}

/** Rows never change in place, so empty lists and objects can be shared. */
const EMPTY: Record<string, unknown> = { '[]': Object.freeze([]), '{}': Object.freeze({}) }

/** Rows as text, column by column. */
export class PostgresCodec<Row> {
  /** The columns of rows, in the order in which they are read. */
  readonly names: string[]
  /** All that are written: those, then what follows from them. */
  readonly stored: string[]
  private readonly kinds: Kind[]
  private readonly values: ((row: Row) => unknown)[]
  /** Rows are copies of this, filled in, so that V8 gives them all one shape. */
  private readonly blank: Fields

  constructor(table: AnyTable) {
    this.names = Object.keys(table.columns)
    this.stored = storedColumns(table)
    this.kinds = this.stored.map((name) => kindOf(table, name))
    this.values = this.stored.map((name) => valueIn(table, name) as never)
    this.blank = JSON.parse(JSON.stringify(table.columns)) as Fields
  }

  /** The row whose columns begin at `from`. */
  decode(values: TextRow, from = 0): Row {
    const row = { ...this.blank }
    for (let i = 0; i < this.names.length; i += 1) {
      row[this.names[i]!] = valueOf(this.kinds[i]!, values[from + i]!)
    }
    return row as Row
  }

  /** Where many rows are bound: the columns as parameters from `$first` on, to be unnested. */
  parameters(first: number): string[] {
    return this.kinds.map((kind, i) => `$${first + i}::${BOUND[kind].type}`)
  }

  /** The columns of such rows, named `n.c1`, `n.c2` and so on, as the table has them. */
  casts(): string[] {
    return this.kinds.map((kind, i) => `n.c${i + 1}${BOUND[kind].cast}`)
  }

  /** One array per column. */
  bind(rows: Row[], into: (string | null)[]): void {
    for (const [i, value] of this.values.entries()) {
      const kind = this.kinds[i]!
      into.push(`{${rows.map((row) => elementOf(kind, value(row))).join()}}`)
    }
  }
}

function valueOf(kind: Kind, text: string | null): unknown {
  if (text === null) return null
  if (kind === 'text' || kind === 'bytes') return text
  if (kind === 'json') return EMPTY[text] ?? JSON.parse(text)
  return kind === 'bool' ? text === 'true' : Number(text)
}

function elementOf(kind: Kind, value: unknown): string {
  if (value === null || value === undefined) return 'NULL'
  if (kind === 'text' || kind === 'bytes') return inArray(value as string)
  if (kind === 'json') return inArray(JSON.stringify(value))
  return `${value as number | boolean}`
}

/** A text as an element of an array literal. */
function inArray(text: string): string {
  return `"${/["\\]/.test(text) ? text.replaceAll(/["\\]/g, String.raw`\$&`) : text}"`
}

/** Texts as an array to bind. */
export function textArray(texts: string[]): string {
  return `{${texts.map(inArray).join()}}`
}

export const CODECS = Object.fromEntries(
  TABLES.map((table) => [table, new PostgresCodec<AnyRow>(SCHEMA[table])]),
) as Record<TableName, PostgresCodec<AnyRow>>

export const EVENT_CODEC = new PostgresCodec<Event>(event)
