import { type Cursor, cursorOf, INDEXES, isBefore } from '../core/schema/indexes.ts'
import {
  type AnyRow,
  type Changes,
  type IndexName,
  KEYS,
  type TableName,
  TABLES,
  type Tables,
} from '../core/schema/schema.ts'
import type { Base, Bytes, Counter, Sizes } from './port.ts'

/** Rows in memory, found by the indexes' own definitions. Serves the file store and the tests. */
export class MemoryTables implements Base {
  readonly rows: { [T in TableName]: Map<string, Tables[T]> }

  constructor(rows?: Partial<Record<TableName, AnyRow[]>>) {
    const maps = TABLES.map((table) => {
      const entries = (rows?.[table] ?? []).map((row) => [keyIn(table, row), row] as const)
      return [table, new Map(entries)] as const
    })
    this.rows = Object.fromEntries(maps) as unknown as this['rows']
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    return this.rows[table].get(key)
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    const definition = INDEXES[index] as { table: TableName; group(row: AnyRow): string | null }
    const found: { row: AnyRow; at: Cursor }[] = []
    for (const row of this.rows[definition.table].values()) {
      if (definition.group(row) !== group) continue
      const at = cursorOf(index, row)
      if (!after || isBefore(after, at)) found.push({ row, at })
    }
    found.sort((a, b) => (isBefore(a.at, b.at) ? -1 : 1))
    return found.slice(0, limit).map(({ row }) => row)
  }

  apply(changes: Changes): void {
    for (const table of TABLES) {
      const mine = this.rows[table] as Map<string, AnyRow>
      for (const [key, row] of changes[table] ?? []) {
        if (row === null) mine.delete(key)
        else mine.set(key, row)
      }
    }
  }
}

function keyIn(table: TableName, row: AnyRow): string {
  return row[KEYS[table] as keyof AnyRow]
}

interface Held {
  tables: MemoryTables
  events: number
  bytes: number
}

/** Counts rows that are in memory. */
export class MemoryCounter implements Counter {
  constructor(private readonly look: () => Promise<Held> | Held) {}

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
