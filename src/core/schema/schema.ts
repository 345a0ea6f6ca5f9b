import { request, token } from './caller.ts'
import { landing, landing_rule } from './landing.ts'
import { agent, lease, place, ticket } from './lock.ts'
import { memory, memory_conflict, memory_text, memory_version } from './memory.ts'
import { dispatcher, host_settings, lane, limit, parking, queue, resource, share } from './queue.ts'
import { duplicate, embedding, note_attempt, vector } from './search.ts'
import { alert, stat } from './stats.ts'
import type { Column, Derived, IndexOf, RowOf, Table } from './table.ts'
import { dependency, ready, run, task, task_text } from './task.ts'
import { worktree } from './worktree.ts'

/**
 * All tables, with the names they have in databases. Columns have the names they have on the wire:
 * `*_at` is ISO 8601 UTC for people; `*_ms` is the store's own clock, the only one rules compare.
 */
const ALL = {
  task,
  task_text,
  dependency,
  ready,
  lease,
  run,
  ticket,
  place,
  agent,
  request,
  token,
  share,
  lane,
  parking,
  limit,
  queue,
  dispatcher,
  host_settings,
  resource,
  worktree,
  landing,
  landing_rule,
  memory,
  memory_version,
  memory_text,
  memory_conflict,
  stat,
  alert,
  note_attempt,
  vector,
  embedding,
  duplicate,
}

type All = typeof ALL
export type TableName = keyof All
export type Tables = { [T in TableName]: RowOf<All[T]> }
export type AnyRow = Tables[TableName]
export type IndexName = { [T in TableName]: keyof All[T]['indexes'] }[TableName]
type TableByIndex = {
  [I in IndexName]: { [T in TableName]: I extends keyof All[T]['indexes'] ? T : never }[TableName]
}
/** The table of an index. */
export type TableOf<I extends IndexName> = TableByIndex[I]

/** The rows of one transaction: what each key becomes, null where it goes away. */
export type Changes = { [T in TableName]?: Map<string, Tables[T] | null> }

/** What is known of a table whose name is only known when the program runs. */
export interface AnyTable extends Omit<Table, 'derived'> {
  columns: Readonly<Record<string, Column<unknown>>>
  derived: Readonly<Record<string, Derived<AnyRow>>>
  indexes: Readonly<Record<string, IndexOf>>
}

export const SCHEMA = ALL as unknown as Readonly<Record<TableName, AnyTable>>
export const TABLES = Object.keys(ALL) as TableName[]

const perTable = <T>(of: (table: AnyTable) => T) =>
  Object.fromEntries(TABLES.map((name) => [name, of(SCHEMA[name])])) as Record<TableName, T>

/** Which field of a row is its key. */
export const KEYS = perTable(({ key }) => key) as {
  readonly [T in TableName]: keyof Tables[T] & string
}

/** Tables of long values: nobody remembers their rows from one batch to the next. */
export const IS_APART = perTable(({ columns }) =>
  Object.values(columns).some(({ flags }) => flags.isApart),
)
