import { SCHEMA, type AnyRow, type TableName } from '../../core/schema/schema.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Event } from '../../core/event.ts'
import type { Head } from '../port.ts'

/** An event by its place in the chain. */
export interface Mark {
  position: number
  hash: string
}

type Soon<T> = Promise<T> | T

/**
 * One end of a copy: a transaction on a store, which keeps other writers out where it can. Rows
 * come in the order of their keys, byte by byte. What is written can be read back at once; others
 * see it after `commit`, all together. Closing without that leaves the store as it was.
 */
export interface Side {
  readonly isFile: boolean
  /** Names a clock that is not this machine's; undefined where store time is our own. */
  readonly clock: string | undefined
  /** With `clock_ms`, read just now, where the store has a clock of its own. */
  head(): Soon<Head>
  /** Another text after every commit that anybody made. */
  stamp(): Soon<string>
  checkpoint(): Soon<Mark>
  rows(table: TableName, after: string | undefined, limit: number): Soon<AnyRow[]>
  events(after: number, limit: number): Soon<Event[]>
  write(table: TableName, rows: AnyRow[]): Soon<void>
  append(events: Event[]): Soon<void>
  /** The last part to be written. */
  finish(head: Head, checkpoint: Mark): Soon<void>
  commit(): Soon<void>
  /** Instead: only the head gets another `boot`; what was read stays as it is. */
  leave(boot: string): Soon<void>
  close(): Soon<void>
}

/**
 * A row with exactly the fields of its table, in their order. Documents of file stores may lack
 * fields that are younger than they are, and may have some that no other store could keep: those
 * are refused (`invalid`), not dropped.
 */
export function wholeRow(table: TableName, key: string, found: object): AnyRow {
  const { columns } = SCHEMA[table]
  const fields = found as Record<string, unknown>
  const strange = Object.keys(fields).find((name) => !Object.hasOwn(columns, name))
  if (strange !== undefined) {
    throw new Refusal('invalid', `${table} ${key} has a field that we do not know: ${strange}`, {
      next: 'Copying would lose it. Take it out of the source, or upgrade leasehold.',
    })
  }
  const values = Object.entries(columns).map(([name, { kind }]) => [
    name,
    fields[name] ?? (kind === 'bool' ? false : null),
  ])
  return Object.fromEntries(values) as AnyRow
}
