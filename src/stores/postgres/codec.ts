import { TABLES, type TableName } from '../../core/rows.ts'
import type { Event } from '../../core/event.ts'
import { type ColumnKind, COLUMNS, EVENT_COLUMNS } from '../columns.ts'
import type { AnyRow } from '../port.ts'
import type { TextRow } from './driver.ts'

type Fields = Record<string, unknown>

/** How values of a kind are bound, many at once, and what turns them into those of the column. */
const BOUND: Record<ColumnKind, { type: string; cast: string }> = {
  text: { type: 'text[]', cast: '' },
  int: { type: 'bigint[]', cast: '' },
  real: { type: 'float8[]', cast: '' },
  json: { type: 'text[]', cast: '::json' },
  bool: { type: 'boolean[]', cast: '' },
  bytes: { type: 'bytea[]', cast: '' },
}

/** Rows never change in place, so empty lists and objects can be shared. */
const EMPTY: Record<string, unknown> = { '[]': Object.freeze([]), '{}': Object.freeze({}) }

export const quoted = (name: string) => `"${name}"`

/** Rows as text, column by column, in the order of `names`. */
export class PostgresCodec<Row> {
  readonly names: string[]
  private readonly kinds: ColumnKind[]
  /** Rows are copies of this, filled in, so that V8 gives them all one shape. */
  private readonly blank: Fields

  constructor(columns: Record<string, ColumnKind>) {
    this.names = Object.keys(columns)
    this.kinds = Object.values(columns)
    this.blank = JSON.parse(JSON.stringify(columns)) as Fields
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
    for (let i = 0; i < this.names.length; i += 1) {
      const name = this.names[i]!
      const kind = this.kinds[i]!
      into.push(`{${rows.map((row) => elementOf(kind, (row as Fields)[name])).join()}}`)
    }
  }
}

function valueOf(kind: ColumnKind, text: string | null): unknown {
  if (text === null) return null
  if (kind === 'text' || kind === 'bytes') return text
  if (kind === 'json') return EMPTY[text] ?? JSON.parse(text)
  return kind === 'bool' ? text === 'true' : Number(text)
}

function elementOf(kind: ColumnKind, value: unknown): string {
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
  TABLES.map((table) => [table, new PostgresCodec<AnyRow>(COLUMNS[table])]),
) as Record<TableName, PostgresCodec<AnyRow>>

export const EVENT_CODEC = new PostgresCodec<Event>(EVENT_COLUMNS)
