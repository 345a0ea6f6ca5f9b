import { TABLES } from '../../core/rows.ts'
import type { Cursor, IndexName } from '../../core/view.ts'
import type { Counter, Sizes } from '../port.ts'
import type { Look, Statements } from './statements.ts'

const SIZES = `SELECT (SELECT page_count FROM pragma_page_count) AS pages,
  (SELECT freelist_count FROM pragma_freelist_count) AS free,
  (SELECT page_size FROM pragma_page_size) AS page,
  (SELECT position FROM head) - (SELECT position FROM checkpoint) AS events`

/** Counts on the connection for reading. */
export class SqliteCounter implements Counter {
  private readonly looked: Look

  constructor(looked: Look) {
    this.looked = looked
  }

  async cutoff(index: IndexName, group: string, keep: number): Promise<Cursor | undefined> {
    return this.looked((statements) => statements.cutoff(index, group, keep))
  }

  async sizes(): Promise<Sizes> {
    return (await this.looked(sizesIn)) ?? { rows: {}, bytes: 0, free_bytes: 0 }
  }
}

function sizesIn(statements: Statements): Sizes {
  const { pages, free, page, events } = statements.sql(SIZES).get() as Record<string, number>
  const rows = Object.fromEntries(TABLES.map((table) => [table, statements.count(table)]))
  const bytes = { bytes: pages! * page!, free_bytes: free! * page! }
  return { rows: { ...rows, event: events! }, ...bytes }
}
