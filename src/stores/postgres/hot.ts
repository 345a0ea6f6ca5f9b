import { KEYS, type TableName } from '../../core/rows.ts'
import type { AnyRow } from '../port.ts'
import { PostgresCodec } from './codec.ts'
import { type ColumnKind, COLUMNS } from '../columns.ts'

/**
 * The columns that a claim, a renewal or an end changes. A row of which nothing else changed is
 * updated in these alone: its texts need not be sent again. Fixed sets, not those that happened to
 * change, so that there are few different statements and all are prepared.
 */
const HOT: Partial<Record<TableName, readonly string[]>> = {
  task: [
    'status',
    'version',
    'assignee',
    'assigned_at',
    'attempts',
    'updated_at',
    'lock_fence',
    'run_id',
  ],
  lease: ['expires_ms', 'ended_at', 'reason'],
  run: ['status', 'ended_at', 'outcome'],
  agent: ['last_seen_at', 'last_seen_ms'],
  lane: ['ready', 'head_rank', 'head_task', 'head_high', 'parked_on'],
  share: [
    'running',
    'pending',
    'pending_high',
    'waits',
    'last_ms',
    'vt',
    'run_ms',
    'lanes',
    'next_lane',
    'next_task',
    'next_high',
    'turn',
  ],
}

interface Hot {
  codec: PostgresCodec<AnyRow>
  rest: string[]
}

const hotOf = new Map<TableName, Hot>()
for (const [name, hot] of Object.entries(HOT)) {
  const table = name as TableName
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
