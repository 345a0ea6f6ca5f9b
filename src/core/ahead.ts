import type { IndexName, TableName, TableOf, Tables } from './schema/schema.ts'
import { lockOf } from './locks/lease.ts'
import { scopeOfLane } from './queue/lane.ts'
import { groupLimit, projectLimit } from './queue/limit.ts'
import { userLock } from './queue/share.ts'
import type { Need } from './view.ts'

/**
 * What rules are likely to read next. The rules are right without it; a store across a network
 * loads less often with it. It is data, so that no store has to know a rule.
 */

/** A row by its key, or the first rows of a group, as a row that was read before names them. */
export type Likely = ({ table: TableName } | { index: IndexName }) & {
  prefix?: string
  /** Joined as `keyOf` does; where one is null there is nothing to read. */
  fields: readonly string[]
  /** What is likely to be read after those rows. */
  next?: readonly Likely[]
}

interface IndexAhead {
  /** Every ask of a batch takes a row, so that the next ask looks at the row behind it. */
  taken?: true
  /** So many rows of a group are looked at: the first, and the one behind it when that is taken. */
  looked?: number
  /** What is likely to be read after a row was found here. */
  next?: readonly Likely[]
}

type RowOfIndex<I extends IndexName> = TableOf<I>
type Field<T extends TableName> = keyof Tables[T] & string
/** Steps from rows of `T`: a field that such a row does not have does not compile. */
type From<T extends TableName> = readonly (Likely & { fields: readonly Field<T>[] })[]

const AFTER_READY: From<'ready'> = [
  { table: 'task', fields: ['task_id'] },
  { table: 'lease', prefix: lockOf(''), fields: ['task_id'] },
]

/** A lane that meets a full limit is parked, and the next lane of the same user is tried. */
const AFTER_LANE: From<'lane'> = [
  { table: 'task', fields: ['head_task'] },
  { table: 'lease', prefix: lockOf(''), fields: ['head_task'] },
  { table: 'limit', prefix: projectLimit(''), fields: ['project'] },
  { table: 'limit', prefix: groupLimit(''), fields: ['group'] },
  { index: 'line_of', prefix: lockOf(''), fields: ['head_task'] },
  { index: 'ready_in_lane', prefix: scopeOfLane(''), fields: ['key'] },
  { index: 'lanes_parked_at', prefix: projectLimit(''), fields: ['project', 'user'] },
]

/** Whether it is the turn of a user, or one of its parked lanes can be woken. */
const AFTER_USER: From<'share'> & From<'parking'> = [
  { table: 'lease', prefix: userLock(''), fields: ['user'] },
  { index: 'line_of', prefix: userLock(''), fields: ['user'] },
  { index: 'lanes_of', fields: ['user'], next: AFTER_LANE },
  { index: 'parkings_of', fields: ['user'] },
]

const AFTER_SHARE: From<'share'> = [
  { table: 'lane', fields: ['next_lane'], next: AFTER_LANE },
  ...AFTER_USER,
]

const AFTER_PARKING: From<'parking'> = [
  { table: 'share', fields: ['user'] },
  { index: 'lanes_parked_at', fields: ['key'], next: AFTER_LANE },
  ...AFTER_USER,
]

/** By index; one that is not named here is read a few rows at a time, with nothing behind them. */
export const AHEAD: Partial<Record<IndexName, IndexAhead>> = {
  ready_in: { taken: true, next: AFTER_READY },
  ready_in_lane: { looked: 2 },
  shares_in_turn: { taken: true, next: AFTER_SHARE },
  parkings_at: { taken: true, next: AFTER_PARKING },
} satisfies { [I in IndexName]?: IndexAhead & { next?: From<RowOfIndex<I>> } }

/** The indexes that have something to read behind their rows. */
export const FOLLOWED = Object.entries(AHEAD).flatMap(([index, { next }]) =>
  next ? [{ index: index as IndexName, next }] : [],
)

/** What `likely` names, seen from `row`, as a store is asked to load it; undefined if nothing. */
export function needFrom(row: object, likely: Likely): Need | undefined {
  const { prefix = '', fields } = likely
  const parts = fields.map((name) => (row as Record<string, string | null>)[name] ?? null)
  if (parts.includes(null)) return undefined
  const name = prefix + parts.join('\n')
  if ('table' in likely) return { table: likely.table, key: name }
  const limit = AHEAD[likely.index]?.looked
  return { index: likely.index, group: name, ...(limit !== undefined && { limit }) }
}

interface TableAhead {
  /** Without a row unless somebody waits or depends on something. */
  often_empty?: true
}

/** By table: how claims use its rows. */
export const TABLE_AHEAD: Partial<Record<TableName, TableAhead>> = {
  dependency: { often_empty: true },
  ticket: { often_empty: true },
  place: { often_empty: true },
  parking: { often_empty: true },
}
