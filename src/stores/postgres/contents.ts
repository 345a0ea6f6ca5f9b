import type { AnyRow, TableName } from '../../core/schema/schema.ts'
import type { Event } from '../../core/event.ts'
import type { EventPlace } from '../../core/view.ts'
import type { Contents, Sought } from '../port.ts'
import type { Address } from './address.ts'
import { CODECS, EVENT_CODEC } from './codec.ts'
import type { Connection, TextRow, Value } from './driver.ts'
import { refusalFor } from './errors.ts'
import { nameOf } from './loads.ts'
import { rowsText } from './scans.ts'
import { statementsFor } from './statements.ts'

/** All that a schema keeps, as a connection sees it. */
export class PostgresContents implements Contents {
  constructor(
    private readonly db: Connection,
    private readonly address: Address,
  ) {}

  private async query(text: string, values: Value[]): Promise<TextRow[]> {
    try {
      return await this.db.query(text, values, nameOf(text))
    } catch (error) {
      throw refusalFor(error, this.address.shown)
    }
  }

  async rows(table: TableName, after: string | undefined, limit: number): Promise<AnyRow[]> {
    const text = rowsText(table, this.address.quoted, after === undefined)
    const found = await this.query(text, [after ?? '', limit])
    return found.map((row) => CODECS[table].decode(row))
  }

  async events(after: number, limit: number, sought?: Sought): Promise<Event[]> {
    const text = statementsFor(this.address).events(sought)
    const found = await this.query(text, [after, limit, ...(sought?.flat() ?? [])])
    return found.map((row) => EVENT_CODEC.decode(row))
  }

  async start(): Promise<EventPlace> {
    const [row] = await this.query(statementsFor(this.address).checkpoint, [])
    return { position: Number(row?.[0]), hash: row?.[1] ?? '' }
  }
}
