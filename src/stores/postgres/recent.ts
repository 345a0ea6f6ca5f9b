import { TABLE_AHEAD } from '../../core/ahead.ts'
import { KEYS, TABLES, type TableName } from '../../core/rows.ts'
import { COLUMNS } from '../columns.ts'
import { sha256 } from '../../machine/digest.ts'
import type { AnyRow, Changes } from '../port.ts'
import { CODECS } from './codec.ts'
import type { KnownChange } from './known.ts'

/** How many commits are remembered: more than processes that take turns. */
export const RECENT_MAX = 64

/** To be raised when what `pack` writes changes. */
const FORMAT = 1

/** Programs that write otherwise, or whose rows differ, do not understand each other's changes. */
export const SHAPE = sha256(JSON.stringify([FORMAT, COLUMNS])).slice(0, 16)

/**
 * Rows as lists of their values, in the order of the columns; keys of those that are gone, and of
 * those that are to be loaded again.
 */
type Packed = Partial<Record<TableName, { rows: unknown[][]; gone: string[]; other: string[] }>>

/** What a commit changed, in one line. */
export function pack(changes: Changes): string {
  const packed: Packed = {}
  for (const table of TABLES) {
    const changed = changes[table] as Map<string, AnyRow | null> | undefined
    if (!changed) continue
    const rows: unknown[][] = []
    const gone: string[] = []
    const other: string[] = []
    for (const [key, row] of changed) {
      if (!row) gone.push(key)
      // Of rows that not every claim looks at, it is enough to say that they changed.
      else if (TABLE_AHEAD[table]?.claimed) rows.push(CODECS[table].list(row))
      else other.push(key)
    }
    packed[table] = { rows, gone, other }
  }
  return JSON.stringify(packed)
}

export function* unpack(line: string): Generator<KnownChange> {
  const packed = JSON.parse(line) as Packed
  for (const [name, { rows, gone, other }] of Object.entries(packed)) {
    const table = name as TableName
    const codec = CODECS[table]
    const at = codec.names.indexOf(KEYS[table])
    for (const key of gone) yield { table, key, row: () => null }
    for (const key of other) yield { table, key, row: undefined }
    for (const values of rows) {
      yield { table, key: values[at] as string, row: () => codec.unlist(values) }
    }
  }
}
