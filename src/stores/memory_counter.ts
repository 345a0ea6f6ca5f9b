import { TABLES } from '../core/rows.ts'
import { cursorOf } from '../core/cursor.ts'
import type { Cursor, IndexName } from '../core/view.ts'
import type { MemoryTables } from './memory.ts'
import type { Bytes, Counter, Sizes } from './port.ts'

interface Held {
  tables: MemoryTables
  events: number
  bytes: number
}

/** Counts rows that are in memory. */
export class MemoryCounter implements Counter {
  private readonly look: () => Promise<Held> | Held

  constructor(look: () => Promise<Held> | Held) {
    this.look = look
  }

  async cutoff(index: IndexName, group: string, keep: number): Promise<Cursor | undefined> {
    const { tables } = await this.look()
    const rows = tables.scan(index, group, undefined, Number.POSITIVE_INFINITY)
    const last = rows.at(-1 - keep)
    return last && cursorOf(index, last)
  }

  async sizes(): Promise<Sizes> {
    const { tables, events, bytes } = await this.look()
    const rows = Object.fromEntries(TABLES.map((table) => [table, tables.rows[table].size]))
    return { rows: { ...rows, event: events }, bytes, free_bytes: 0 }
  }

  async bytes(): Promise<Bytes> {
    const { bytes } = await this.look()
    return { bytes, free_bytes: 0 }
  }
}
