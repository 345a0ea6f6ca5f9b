import { existsSync } from 'node:fs'
import { Refusal } from '../../core/refusal.ts'
import { KEYS, TABLES, type TableName, type Tables } from '../../core/rows.ts'
import { type Cursor, type Event, INDEXES, type IndexName, type Need } from '../../core/view.ts'
import { EMPTY_HEAD } from '../head.ts'
import { MemoryTables } from '../memory.ts'
import { type AnyRow, type Backend, type Base, type Commit, CommitUnknown, type Head } from '../port.ts'
import { beginPatiently } from './busy.ts'
import { type Database, openDatabase } from './driver.ts'
import { refusalFor } from './errors.ts'
import { migrate, schemaVersion, SCHEMA_VERSION } from './migrate.ts'
import { Statements } from './statements.ts'

/** Rows of a table kept in memory between batches; beyond this the cache starts over. */
const CACHE_MAX = 20_000

const INSERT_HEAD = `UPDATE head SET epoch = ?, fences = ?, task_number = ?, position = ?, hash = ?,
  boot = ?, offset_ms = ?, last_ms = ? WHERE id = 1`

interface Connection {
  db: Database
  statements: Statements
}

interface Index {
  table: TableName
  group(row: AnyRow): string | null
}

type Rows = Map<string, AnyRow | null>

interface SqliteOptions {
  path: string
  /** How long to try without anybody making progress before answering `unavailable`. */
  busy_timeout_ms: number
  /** Makes folder and file with the right modes, before SQLite would with laxer ones. */
  prepare?: () => void
}

/**
 * SQLite in WAL mode with `synchronous=FULL`. One writing connection, one for reading; both are
 * opened when first needed. Several processes may write: whoever has `BEGIN IMMEDIATE` decides on
 * what is committed then, because everything remembered is dropped when `data_version` has moved.
 */
export class SqliteBackend implements Backend {
  private readonly options: SqliteOptions
  private writer: Connection | undefined
  private reader: Connection | undefined
  private version: unknown
  private head: Head | undefined
  /** Rows by table and key; null for those known not to be there. */
  private readonly cache = Object.fromEntries(TABLES.map((table) => [table, new Map()])) as {
    [T in TableName]: Map<string, AnyRow | null>
  }
  /** Tables known to have no rows: most stores have no waiters, and need not ask for them. */
  private readonly empty = new Map<TableName, boolean>()
  /** Groups known to have no rows: most agents have no tasks of their own, most locks no line. */
  private readonly barren = new Map<IndexName, Set<string>>()

  constructor(options: SqliteOptions) {
    this.options = options
  }

  async begin(): Promise<Head> {
    try {
      this.writer ??= await this.connect()
      const { db, statements } = this.writer
      await beginPatiently(db, this.options.busy_timeout_ms)
      const { data_version } = statements.sql('PRAGMA data_version').get() as Record<string, unknown>
      if (data_version !== this.version) this.forget()
      this.version = data_version
      return (this.head ??= readHead(statements))
    } catch (error) {
      throw refusalFor(error, this.options.path)
    }
  }

  private async connect(): Promise<Connection> {
    this.options.prepare?.()
    const db = openDatabase(this.options.path, { readOnly: false })
    try {
      await migrate(db, this.options)
    } catch (error) {
      db.close()
      throw error
    }
    return { db, statements: new Statements(db) }
  }

  private forget(): void {
    this.forgetRows()
    this.empty.clear()
    this.head = undefined
  }

  private forgetRows(): void {
    for (const table of TABLES) this.cache[table].clear()
    this.barren.clear()
  }

  prefetch(needs: Need[]): void {
    const wanted = new Map<TableName, Set<string>>()
    for (const need of needs) {
      if (!('table' in need) || this.cache[need.table].has(need.key)) continue
      const keys = wanted.get(need.table) ?? new Set()
      wanted.set(need.table, keys.add(need.key))
    }
    for (const [table, keys] of wanted) this.load(table, [...keys])
  }

  private load(table: TableName, keys: string[]): void {
    if (this.isEmpty(table)) return
    const known = this.cache[table]
    for (const key of keys) known.set(key, null)
    for (const row of this.writer!.statements.getMany(table, keys)) {
      known.set(row[KEYS[table] as keyof AnyRow] as string, row)
    }
  }

  private isEmpty(table: TableName): boolean {
    let empty = this.empty.get(table)
    if (empty === undefined) {
      empty = this.writer!.statements.isEmpty(table)
      this.empty.set(table, empty)
    }
    return empty
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const known = this.cache[table].get(key)
    if (known !== undefined) return (known ?? undefined) as Tables[T] | undefined
    if (this.isEmpty(table)) return undefined
    const row = this.writer!.statements.get(table, key)
    this.cache[table].set(key, row ?? null)
    return row as Tables[T] | undefined
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    if (this.isEmpty(INDEXES[index].table) || this.barren.get(index)?.has(group)) return []
    const rows = this.writer!.statements.scan(index, group, valuesOf(after), limit)
    if (rows.length === 0 && !after) this.rememberBarren(index, group)
    if (index === 'ready_in') {
      const ids = rows.map((row) => (row as Tables['ready']).task_id)
      this.prefetch(ids.map((key) => ({ table: 'task', key })))
      this.prefetch(ids.map((id) => ({ table: 'lease', key: `task:${id}` })))
    }
    return rows
  }

  private rememberBarren(index: IndexName, group: string): void {
    const groups = this.barren.get(index) ?? new Set()
    this.barren.set(index, groups.add(group))
  }

  commit({ changes, events, head }: Commit): 'done' {
    const { db, statements } = this.writer!
    try {
      for (const table of TABLES) {
        this.write(statements, table, changes[table] as Rows | undefined)
      }
      statements.append(events)
      const { epoch, fences, task_number, position, hash, boot, offset_ms, last_ms } = head
      statements
        .sql(INSERT_HEAD)
        .run(epoch, fences, task_number, position, hash, boot, offset_ms, last_ms)
      // A full disk makes SQLite drop the transaction; what follows would then commit by itself.
      if (!db.isTransaction) throw new Error('SQLite dropped the transaction')
    } catch (error) {
      this.rollback()
      throw refusalFor(error, this.options.path)
    }
    this.finish(db)
    this.keep(changes, head)
    return 'done'
  }

  private write(statements: Statements, table: TableName, changes: Rows = new Map()): void {
    const known = this.cache[table]
    const [before, after, rows]: AnyRow[][] = [[], [], []]
    const gone: string[] = []
    for (const [key, row] of changes) {
      const old = known.get(key)
      if (row === null) gone.push(key)
      else if (!old) rows!.push(row)
      else if (before!.push(old)) after!.push(row)
    }
    statements.update(table, before!, after!)
    if (rows!.length > 0) statements.write(table, rows!)
    if (gone.length > 0) statements.remove(table, gone)
  }

  private finish(db: Database): void {
    try {
      db.exec('COMMIT')
    } catch (error) {
      // It may be on disk or not. A new connection sees which; this one cannot be trusted.
      this.drop()
      const { message } = refusalFor(error, this.options.path)
      throw new CommitUnknown(message)
    }
  }

  private keep(changes: Commit['changes'], head: Head): void {
    this.head = head
    for (const table of TABLES) {
      const rows = this.cache[table]
      if (rows.size > CACHE_MAX) this.forgetRows()
      for (const [key, row] of changes[table] ?? []) {
        rows.set(key, row)
        if (row !== null) this.empty.set(table, false)
      }
    }
    for (const [index, groups] of this.barren) {
      const { table, group } = INDEXES[index] as Index
      if (groups.size > CACHE_MAX) groups.clear()
      for (const row of changes[table]?.values() ?? []) {
        if (row !== null) groups.delete(group(row) ?? '')
      }
    }
  }

  rollback(): void {
    if (!this.writer?.db.isTransaction) return
    try {
      this.writer.db.exec('ROLLBACK')
    } catch {
      this.drop()
    }
  }

  private drop(): void {
    this.writer?.db.close()
    this.writer = undefined
    this.version = undefined
    this.forget()
  }

  async snapshot<T>(look: (base: Base, head: Head) => T): Promise<T> {
    try {
      const reader = await this.openReader()
      if (!reader) return look(new MemoryTables(), EMPTY_HEAD)
      const { db, statements } = reader
      db.exec('BEGIN')
      try {
        return look(new Snapshot(statements), readHead(statements))
      } finally {
        db.exec('ROLLBACK')
      }
    } catch (error) {
      throw error instanceof Refusal ? error : refusalFor(error, this.options.path)
    }
  }

  /** A missing database reads as an empty one, and stays missing: reading changes nothing. */
  private async openReader(): Promise<Connection | undefined> {
    if (this.reader) return this.reader
    if (!existsSync(this.options.path)) return undefined
    const db = openDatabase(this.options.path, { readOnly: true })
    const found = schemaVersion(db)
    if (found < SCHEMA_VERSION) {
      db.close()
      if (found === 0) return undefined
      this.writer ??= await this.connect()
      return this.openReader()
    }
    this.reader = { db, statements: new Statements(db) }
    return this.reader
  }

  async events(after: number, limit: number): Promise<Event[]> {
    const reader = await this.openReader()
    return reader ? reader.statements.events(after, limit) : []
  }

  close(): void {
    this.rollback()
    this.writer?.db.close()
    this.reader?.db.close()
    this.writer = undefined
    this.reader = undefined
  }
}

class Snapshot implements Base {
  private readonly statements: Statements

  constructor(statements: Statements) {
    this.statements = statements
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    return this.statements.get(table, key) as Tables[T] | undefined
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    return this.statements.scan(index, group, valuesOf(after), limit)
  }
}

function valuesOf(after: Cursor | undefined): (string | number)[] | undefined {
  return after && [after.order, after.key]
}

export function readHead(statements: Statements): Head {
  const row = statements.sql('SELECT * FROM head').get() as unknown as Head & { id: number }
  const { id: _, ...head } = row
  return head
}
