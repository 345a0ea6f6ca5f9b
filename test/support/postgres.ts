import {
  type AnyRow,
  SCHEMA,
  type TableName,
  type Tables,
  TABLES,
} from '../../src/core/schema/schema.ts'
import { Client } from 'pg'
import { MemoryTables } from '../../src/stores/memory.ts'
import type { Base, Head } from '../../src/stores/port.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { statementsFor } from '../../src/stores/postgres/statements.ts'
import { EMPTY_HEAD } from '../../src/stores/writer/chain.ts'
import { sha256 } from '../../src/machine/digest.ts'
import { Store } from '../../src/stores/writer/store.ts'
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

/** A row as rules have it: of what is in the database, some only serves to find it. */
export function rowIn<T extends TableName>(table: T, found: object): Tables[T] {
  const { columns } = SCHEMA[table]
  const its = Object.entries(found).filter(([name]) => Object.hasOwn(columns, name))
  return Object.fromEntries(its) as unknown as Tables[T]
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
  private readonly all: string
  private client: Promise<Client> | undefined

  constructor(dir: string) {
    const address = addressOf(postgresUrl(dir))
    super({ address, busy_timeout_ms: 30_000, clock: 'machine' })
    const parts = [...TABLES, 'head'].map((table) => {
      const from = `${address.quoted}."${table}" AS t`
      return `'${table}', (SELECT coalesce(json_agg(t), '[]') FROM ${from})`
    })
    // One statement sees one state of the database.
    this.all = `SELECT json_build_object(${parts.join()}) AS tables`
  }

  async whole<T>(look: (base: Base, head: Head) => T): Promise<T> {
    this.client ??= connected()
    const client = await this.client
    type Found = Record<TableName, AnyRow[]> & { head: Head[] }
    const { rows } = await client.query<{ tables: Found }>(this.all)
    const { head, ...tables } = rows[0]!.tables
    const known = TABLES.map((table) => [table, tables[table].map((row) => rowIn(table, row))])
    return look(new MemoryTables(Object.fromEntries(known)), head[0]!)
  }

  override async close(): Promise<void> {
    await (await this.client)?.end()
    await super.close()
  }
}

async function connected(): Promise<Client> {
  const client = new Client({ connectionString: process.env['DATABASE_URL'] })
  await client.connect()
  return client
}

export const openPostgres: Open = (dir, machine) => new Store(postgresBackend(dir), machine)

/**
 * Stores whose tables are used again by the next test: the server takes far longer to make them
 * than to empty them.
 */
export class EmptiedPostgres {
  private readonly used = new Map<string, string>()
  private readonly empty: string[] = []
  private client: Promise<Client> | undefined

  readonly open: Open = (dir, machine) => {
    const place = this.used.get(dir) ?? this.empty.pop() ?? dir
    this.used.set(dir, place)
    return openPostgres(place, machine)
  }

  /** When all stores are closed: leaves nothing in them, as if they had just been made. */
  async clear(): Promise<void> {
    for (const place of this.used.values()) await this.clearPlace(place)
    this.empty.push(...this.used.values())
    this.used.clear()
  }

  private async clearPlace(place: string): Promise<void> {
    this.client ??= connected()
    const client = await this.client
    const address = addressOf(postgresUrl(place))
    const find = `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables
      WHERE schemaname = $1 AND tablename <> 'migration'`
    const { rows } = await client.query<{ name: string }>(find, [address.schema])
    await client.query(rows.map(({ name }) => `DELETE FROM ${name}`).join(';'))
    // One that was never opened has no tables.
    if (rows.length === 0) return
    const { firstHead, firstCheckpoint } = statementsFor(address)
    for (const first of [firstHead, firstCheckpoint]) await client.query(first, [EMPTY_HEAD.hash])
  }

  async close(): Promise<void> {
    await (await this.client)?.end()
  }
}
