import { TABLE_AHEAD } from '../../core/ahead.ts'
import { KEYS, TABLES, type TableName } from '../../core/rows.ts'
import type { AnyRow } from '../port.ts'
import { PostgresCodec } from './codec.ts'
import { type ColumnKind, COLUMNS } from '../columns.ts'

interface Hot {
  codec: PostgresCodec<AnyRow>
  rest: string[]
}

/**
 * The columns that claims change. A row of which nothing else changed is updated in these alone:
 * its texts need not be sent again. Fixed sets, not those that happened to change, so that there
 * are few different statements and all are prepared.
 */
const hotOf = new Map<TableName, Hot>()
for (const table of TABLES) {
  const hot = TABLE_AHEAD[table]?.changes
  if (!hot) continue
  const columns: Record<string, ColumnKind> = COLUMNS[table]
  const names = [KEYS[table] as string, ...hot]
  const codec = new PostgresCodec<AnyRow>(
    Object.fromEntries(names.map((each) => [each, columns[each]!])),
  )
  const rest = Object.keys(columns).filter((each) => !names.includes(each))
  hotOf.set(table, { codec, rest })
}

/** How to write rows of which only hot columns changed; undefined if none are hot. */
export function hotCodec(table: TableName): PostgresCodec<AnyRow> | undefined {
  return hotOf.get(table)?.codec
}

/** Whether nothing but hot columns differs. Rows never change in place: what is kept is shared. */
export function isHotChange(table: TableName, before: AnyRow, after: AnyRow): boolean {
  const rest = hotOf.get(table)?.rest as (keyof AnyRow)[] | undefined
  return rest !== undefined && rest.every((name) => before[name] === after[name])
}
