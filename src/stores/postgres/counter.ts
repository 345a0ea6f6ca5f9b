import { INDEXES, kindOf } from '../../core/schema/indexes.ts'
import { SCHEMA } from '../../core/schema/schema.ts'
import type { IndexName } from '../../core/schema/schema.ts'
import type { Cursor } from '../../core/schema/indexes.ts'
import type { Bytes, Counter, Sizes } from '../port.ts'
import type { Address } from './address.ts'
import type { Connection } from './driver.ts'
import { cutoffText } from './scans.ts'
import { COUNTED, statementsFor } from './statements.ts'

export type PostgresRead = <T>(use: (db: Connection) => Promise<T>, none: () => T) => Promise<T>

/** Counts on connections for reading. What is free within a table only the server knows. */
export class PostgresCounter implements Counter {
  constructor(
    private readonly read: PostgresRead,
    private readonly address: Address,
  ) {}

  cutoff(index: IndexName, group: string, keep: number): Promise<Cursor | undefined> {
    const text = cutoffText(index, this.address.quoted)
    const isText = kindOf(SCHEMA[INDEXES[index].table], INDEXES[index].is.order) === 'text'
    return this.read(
      async (db) => {
        const [row] = await db.query(text, [group, keep])
        const order = row && (isText ? row[0]! : Number(row[0]))
        return order === undefined ? undefined : { order, key: row![1]! }
      },
      () => undefined,
    )
  }

  sizes(): Promise<Sizes> {
    const { counts } = statementsFor(this.address)
    return this.read(
      async (db) => {
        const [found] = await db.run(counts)
        const rows = COUNTED.map((table, i) => [table, Number(found![i])])
        const counted = Object.fromEntries(rows) as Record<string, number>
        return { rows: counted, ...(await this.bytesIn(db)) }
      },
      () => ({ rows: {}, bytes: 0, free_bytes: 0 }),
    )
  }

  bytes(): Promise<Bytes> {
    return this.read(
      (db) => this.bytesIn(db),
      () => ({ bytes: 0, free_bytes: 0 }),
    )
  }

  private async bytesIn(db: Connection): Promise<Bytes> {
    const { bytes } = statementsFor(this.address)
    const [size] = await db.query(bytes, [this.address.schema])
    return { bytes: Number(size![0]), free_bytes: 0 }
  }
}
