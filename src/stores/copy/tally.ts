import type { TableName } from '../../core/rows.ts'
import type { Event } from '../../core/event.ts'
import { COLUMNS, EVENT_COLUMNS } from '../columns.ts'
import { sha256 } from '../../machine/digest.ts'
import type { AnyRow } from '../port.ts'

/** How many rows were seen, and a digest over all of their fields, in the order seen. */
export class Tally {
  rows = 0
  private digest = ''

  add(table: TableName | 'event', rows: (AnyRow | Event)[]): void {
    const names = Object.keys(table === 'event' ? EVENT_COLUMNS : COLUMNS[table])
    for (const row of rows) {
      const fields = row as unknown as Record<string, unknown>
      this.digest = sha256(`${this.digest}\n${JSON.stringify(names.map((name) => fields[name]))}`)
    }
    this.rows += rows.length
  }

  /** What is different in the other, if anything. */
  difference(other: Tally): string | undefined {
    if (this.rows !== other.rows) return `${other.rows} rows in place of ${this.rows}`
    return this.digest === other.digest ? undefined : 'the rows differ'
  }
}
