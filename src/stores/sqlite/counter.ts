import type { Cursor } from '../../core/schema/indexes.ts'
import { type IndexName, TABLES } from '../../core/schema/schema.ts'
import type { Bytes, Counter, Sizes } from '../port.ts'
import type { Look, Statements } from './statements.ts'

const BYTES = `SELECT (SELECT page_count FROM pragma_page_count) * page_size AS bytes,
  (SELECT freelist_count FROM pragma_freelist_count) * page_size AS free_bytes
  FROM pragma_page_size`
const EVENTS = `SELECT (SELECT position FROM head) - (SELECT position FROM checkpoint) AS events`

/** Counts on the connection for reading. */
export class SqliteCounter implements Counter {
  constructor(private readonly looked: Look) {}

  async cutoff(index: IndexName, group: string, keep: number): Promise<Cursor | undefined> {
    return this.looked((statements) => statements.cutoff(index, group, keep))
  }

  async sizes(): Promise<Sizes> {
    return (await this.looked(sizesIn)) ?? { rows: {}, bytes: 0, free_bytes: 0 }
  }

  async bytes(): Promise<Bytes> {
    return (await this.looked(bytesIn)) ?? { bytes: 0, free_bytes: 0 }
  }
}

function sizesIn(statements: Statements): Sizes {
  const { events } = statements.sql(EVENTS).get() as { events: number }
  const rows = Object.fromEntries(TABLES.map((table) => [table, statements.count(table)]))
  return { rows: { ...rows, event: events }, ...bytesIn(statements) }
}

const bytesIn = (statements: Statements) => statements.sql(BYTES).get() as unknown as Bytes
