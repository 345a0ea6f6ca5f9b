import { Client } from 'pg'
import { TABLES, type TableName } from '../src/core/rows.ts'
import { MemoryTables } from '../src/stores/memory.ts'
import type { AnyRow, Base, Head } from '../src/stores/port.ts'
import { addressOf } from '../src/stores/postgres/address.ts'
import { PostgresBackend } from '../src/stores/postgres/backend.ts'
import { sha256 } from '../src/stores/digest.ts'
import { Store } from '../src/stores/store.ts'
import type { Open } from './helpers.ts'
import { startPostgres } from './postgres_server.ts'

/** The tests' server is started once for all; what runs outside of them asks for one. */
export async function ensurePostgres(): Promise<() => Promise<void>> {
  if (process.env['DATABASE_URL']) return async () => undefined
  const server = await startPostgres()
  process.env['DATABASE_URL'] = server.url
  return () => server.stop()
}

/** A schema of its own for every folder that a store would be kept in. */
export function postgresUrl(dir: string): string {
  const url = new URL(process.env['DATABASE_URL']!)
  url.searchParams.set('schema', `test_${sha256(dir).slice(0, 16)}`)
  return url.href
}

interface Timed {
  clock?: 'database' | 'machine'
  busy_timeout_ms?: number
}

/** Tests decide the time, so it is their machine's unless they say otherwise. */
export function postgresBackend(dir: string, options: Timed = {}): PostgresBackend {
  const address = addressOf(postgresUrl(dir))
  return new PostgresBackend({ address, busy_timeout_ms: 30_000, clock: 'machine', ...options })
}

/** With a look at all rows at once, for those who cannot say beforehand which they want. */
export class WholePostgres extends PostgresBackend {
  private readonly schema: string

  constructor(dir: string) {
    const address = addressOf(postgresUrl(dir))
    super({ address, busy_timeout_ms: 30_000, clock: 'machine' })
    this.schema = address.quoted
  }

  async whole<T>(look: (base: Base, head: Head) => T): Promise<T> {
    const client = new Client({ connectionString: process.env['DATABASE_URL'] })
    await client.connect()
    try {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY')
      const rowsOf = async (table: string): Promise<AnyRow[]> => {
        const from = `${this.schema}."${table}" AS t`
        const text = `SELECT coalesce(json_agg(t), '[]') AS rows FROM ${from}`
        const { rows } = await client.query<{ rows: AnyRow[] }>(text)
        return rows[0]!.rows
      }
      const tables: Partial<Record<TableName, AnyRow[]>> = {}
      for (const table of TABLES) tables[table] = await rowsOf(table)
      const [head] = (await rowsOf('head')) as unknown as Head[]
      return look(new MemoryTables(tables), head!)
    } finally {
      await client.end()
    }
  }
}

export const openPostgres: Open = (dir, machine) => new Store(postgresBackend(dir), machine)
