import { type AnyRow, SCHEMA, type TableName, TABLES } from '../../core/schema/schema.ts'
import { PostgresCodec } from './codec.ts'

interface Hot {
  codec: PostgresCodec<AnyRow>
  rest: string[]
}

/**
 * The columns that claims change, and what follows from any. A row of which nothing else changed is
 * updated in these alone: its texts need not be sent again. Fixed sets, not those that happened to
 * change, so that there are few different statements and all are prepared.
 */
const hotOf = new Map<TableName, Hot>()
for (const table of TABLES) {
  const { key, columns } = SCHEMA[table]
  const hot = Object.entries(columns).filter(([, { flags }]) => flags.isHot)
  if (hot.length === 0) continue
  const its = { [key]: columns[key]!, ...Object.fromEntries(hot) }
  const codec = new PostgresCodec<AnyRow>({ ...SCHEMA[table], columns: its })
  const rest = Object.keys(columns).filter((each) => !Object.hasOwn(its, each))
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
