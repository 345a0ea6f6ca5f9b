import { event } from '../../core/schema/event.ts'
import type { AnyRow } from '../../core/schema/schema.ts'
import type { Kind } from '../../core/schema/table.ts'
import type { Event } from '../../core/event.ts'
import { Codec, fromJson, perTable } from '../codec.ts'
import type { Dialect } from '../sql.ts'

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

/** Rows as text, column by column. */
export class PostgresCodec<Row> extends Codec<Row, string | null> {
  protected override read(kind: Kind, text: string): unknown {
    if (kind === 'text' || kind === 'bytes') return text
    if (kind === 'json') return fromJson(text)
    return kind === 'bool' ? text === 'true' : Number(text)
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
    for (const [i, kind] of this.kinds.entries()) {
      into.push(`{${rows.map((row) => elementOf(kind, this.fieldOf(row, i))).join()}}`)
    }
  }
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

export const CODECS = perTable((table) => new PostgresCodec<AnyRow>(table))

export const EVENT_CODEC = new PostgresCodec<Event>(event)
