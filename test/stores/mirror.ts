import type { Cursor } from '../../src/core/schema/indexes.ts'
import type { AnyRow, IndexName, TableName, Tables } from '../../src/core/schema/schema.ts'
import { expect } from 'vitest'
import { MemoryTables } from '../../src/stores/memory.ts'
import type { Commit } from '../../src/stores/port.ts'

/** What of a backend is watched. */
interface Watched {
  get<T extends TableName>(table: T, key: string): Tables[T] | undefined
  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[]
  commit(commit: Commit): 'done' | Promise<'done' | 'again'>
}

/**
 * All rows that were committed, by whichever backend. What a watched one remembers between batches
 * must be that: every row that it gives is compared.
 */
export class Mirror {
  private readonly tables = new MemoryTables()

  /** From now on `backend` is watched; says how often it was looked at. */
  watch(backend: Watched): { count: number } {
    const looks = { count: 0 }
    const { tables } = this
    const [get, scan] = [backend.get.bind(backend), backend.scan.bind(backend)]
    backend.get = (table, key) => {
      const row = get(table, key)
      looks.count += 1
      expect(row, `${table} ${key}`).toEqual(tables.get(table, key))
      return row
    }
    backend.scan = (index, group, after, limit) => {
      const rows = scan(index, group, after, limit)
      looks.count += 1
      expect(rows, `${index} ${group}`).toEqual(tables.scan(index, group, after, limit))
      return rows
    }
    const commit = backend.commit.bind(backend)
    // A commit that waits for nobody stays one: its writer does not wait either.
    backend.commit = (made) => {
      const done = commit(made)
      if (done instanceof Promise) return done.then((how) => this.keep(made, how))
      return this.keep(made, done)
    }
    return looks
  }

  private keep<How>({ changes }: Commit, how: How): How {
    if (how === 'done') this.tables.apply(changes)
    return how
  }
}
