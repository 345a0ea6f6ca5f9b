import { existsSync, statSync } from 'node:fs'
import { scopeOfLane } from '../../core/lane.ts'
import { lockOf } from '../../core/lease.ts'
import { planted } from '../../core/planted.ts'
import { KEYS, TABLES, type TableName, type Tables } from '../../core/rows.ts'
import { type Cursor, type Event, INDEXES, type IndexName, type Need } from '../../core/view.ts'
import { type Damage, DamageMark, refuseMarked } from '../damage.ts'
import { isRefusal } from '../errors.ts'
import { EMPTY_HEAD } from '../head.ts'
import { MemoryTables } from '../memory.ts'
import {
  type AnyRow,
  type Backend,
  type Base,
  type Commit,
  CommitUnknown,
  type Head,
} from '../port.ts'
import { beginPatiently, patiently } from './busy.ts'
import { Cache } from './cache.ts'
import { type Database, openDatabase, openUnchanging, RESULT, resultCode } from './driver.ts'
import { refusalFor } from './errors.ts'
import { migrate, refuseNewer, SCHEMA_VERSION } from './migrate.ts'
import { indexWords, SqliteFinder } from './search.ts'
import { readHead, Snapshot } from './snapshot.ts'
import { type Change, Statements } from './statements.ts'
import { isSummed, type RowSums, sumsWith } from './sums.ts'

const INSERT_HEAD = `UPDATE head SET epoch = ?, fences = ?, task_number = ?, position = ?, hash = ?,
  boot = ?, offset_ms = ?, last_ms = ?, sums = ? WHERE id = 1`

const HEADS = 2

interface Connection {
  db: Database
  statements: Statements
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
  readonly isDatabase = true
  readonly finder = new SqliteFinder(
    async () => (await this.openReader())?.statements,
    (error) => this.refusal(error),
  )
  private readonly options: SqliteOptions
  private writer: Connection | undefined
  private reader: Connection | undefined
  private version: unknown
  private head: Head | undefined
  private readonly cache = new Cache()
  private sums: RowSums | undefined
  /** The first ready rows of lanes, as they were committed before this batch. */
  private readonly heads = new Map<string, Tables['ready'][]>()

  private readonly mark: DamageMark

  constructor(options: SqliteOptions) {
    this.options = options
    this.mark = new DamageMark(options.path)
  }

  get damage(): Damage | undefined {
    return this.mark.read()
  }

  /** What went wrong, as a refusal. Damage is remembered: nobody writes until it is mended. */
  private refusal(error: unknown): Error {
    const refusal = refusalFor(error, this.options.path)
    if (isRefusal(refusal, 'damaged')) this.mark.leave(refusal.message)
    return refusal
  }

  private guarded<T>(step: () => T): T {
    try {
      return step()
    } catch (error) {
      throw this.refusal(error)
    }
  }

  async begin(): Promise<Head> {
    try {
      refuseMarked(this.mark.read())
      this.writer ??= await this.connect()
      const { db, statements } = this.writer
      await beginPatiently(db, this.options.busy_timeout_ms)
      const { data_version } = statements.sql('PRAGMA data_version').get() as Record<
        string,
        unknown
      >
      this.heads.clear()
      if (data_version !== this.version) this.forget()
      this.version = data_version
      if (!this.head) {
        const head = readHead(statements)
        this.sums = sumsWith(statements, head)
        this.head = head
      }
      return this.head
    } catch (error) {
      this.rollback()
      throw this.refusal(error)
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
    this.cache.forget()
    this.sums = undefined
    this.head = undefined
  }

  prefetch(needs: Need[]): void {
    const wanted = new Map<TableName, string[]>()
    for (const need of needs) {
      if (!('table' in need)) continue
      const keys = wanted.get(need.table)
      if (keys) keys.push(need.key)
      else wanted.set(need.table, [need.key])
    }
    this.guarded(() => {
      for (const [table, keys] of wanted) this.load(table, keys)
    })
  }

  /** Rows that the cache does not know yet, in one statement. */
  private load(table: TableName, keys: string[]): void {
    if (this.isEmpty(table)) return
    const known = this.cache.of(table)
    const unknown = keys.filter((key) => !known.has(key))
    if (unknown.length === 0) return
    for (const key of unknown) known.set(key, null)
    for (const row of this.writer!.statements.getMany(table, unknown)) {
      known.set(row[KEYS[table] as keyof AnyRow], row)
    }
  }

  private isEmpty(table: TableName): boolean {
    return this.cache.isEmpty(table, () => this.writer!.statements.isEmpty(table))
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const known = this.cache.of(table).get(key)
    if (known !== undefined) return (known ?? undefined) as Tables[T] | undefined
    return this.guarded(() => {
      if (this.isEmpty(table)) return undefined
      const row = this.writer!.statements.get(table, key)
      this.cache.of(table).set(key, row ?? null)
      return row as Tables[T] | undefined
    })
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    return this.guarded(() => this.found(index, group, after, limit))
  }

  private found(
    index: IndexName,
    group: string,
    after: Cursor | undefined,
    limit: number,
  ): AnyRow[] {
    if (this.isEmpty(INDEXES[index].table) || this.cache.isBarren(index, group)) return []
    const heads = index === 'ready_in_lane' && !after ? this.heads.get(group) : undefined
    if (heads && (limit <= HEADS || heads.length < HEADS)) return heads.slice(0, limit)
    const rows = this.writer!.statements.scan(index, group, after, limit)
    if (rows.length === 0 && !after) this.cache.learnBarren(index, group)
    if (index === 'ready_in') this.loadTasks(rows.map((row) => (row as Tables['ready']).task_id))
    if (index === 'shares_in_turn') {
      const shares = rows as Tables['share'][]
      this.loadTasks(shares.map((share) => share.next_task!))
      const lanes = shares.map((share) => share.next_lane!)
      this.load('lane', lanes)
      this.loadHeads(lanes.map(scopeOfLane))
    }
    return rows
  }

  isDue(index: IndexName, group: string, until: number): boolean {
    const look = () => this.writer!.statements.first(index, group)
    return this.guarded(() => this.cache.isDue(index, group, until, look))
  }

  /** When the first task of a lane is claimed, the second becomes its head. */
  private loadHeads(scopes: string[]): void {
    const unknown = scopes.filter((scope) => !this.heads.has(scope))
    for (const scope of unknown) this.heads.set(scope, [])
    for (const row of this.writer!.statements.firstReady(unknown, HEADS)) {
      this.heads.get(row.scope)!.push(row)
    }
  }

  /** Whoever is shown tasks to choose from claims one: they and their locks come together. */
  private loadTasks(ids: string[]): void {
    this.load('task', ids)
    this.load('lease', ids.map(lockOf))
  }

  commit({ changes, events, head }: Commit): 'done' {
    const { db, statements } = this.writer!
    try {
      const sums = this.sums!
      for (const table of TABLES) {
        this.write(statements, table, changes[table], sums)
      }
      if (changes.memory) indexWords(statements, [...changes.memory.keys()])
      statements.append(events)
      const { epoch, fences, task_number, position, hash, boot, offset_ms, last_ms } = head
      statements
        .sql(INSERT_HEAD)
        .run(
          epoch,
          fences,
          task_number,
          position,
          hash,
          boot,
          offset_ms,
          last_ms,
          sums.textFor(head),
        )
      // A full disk makes SQLite drop the transaction; what follows would then commit by itself.
      if (!db.isTransaction) throw new Error('SQLite dropped the transaction')
    } catch (error) {
      this.rollback()
      // If what was remembered is at fault, the next try begins without it.
      this.forget()
      throw this.refusal(error)
    }
    this.finish(db)
    this.cache.keep(changes)
    this.head = head
    return 'done'
  }

  private write(
    statements: Statements,
    table: TableName,
    changes: Rows = new Map(),
    sums: RowSums,
  ): void {
    // A rule may write a row that it did not read; what that was before has to be known.
    if (changes.size > 0 && isSummed(table)) this.load(table, [...changes.keys()])
    const known = this.cache.of(table)
    const changed: Change[] = []
    const rows: AnyRow[] = []
    const gone: string[] = []
    for (const [key, after] of changes) {
      const before = known.get(key)
      sums.change(table, before, after)
      if (after === null) gone.push(key)
      else if (before) changed.push({ before, after })
      else rows.push(after)
    }
    if (changed.length > 0) statements.update(table, changed)
    if (rows.length > 0) statements.write(table, rows)
    if (gone.length > 0) statements.remove(table, gone)
  }

  private finish(db: Database): void {
    // The planted bug of S4: the answer is given, then it is written.
    if (planted('S4')) return void setImmediate(() => db.isOpen && db.exec('COMMIT'))
    try {
      db.exec('COMMIT')
    } catch (error) {
      // It may be on disk or not. A new connection sees which; this one cannot be trusted.
      this.drop()
      const { message } = this.refusal(error)
      throw new CommitUnknown(message)
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
      // All in one step: another read on this connection may begin as soon as this one pauses.
      return await patiently(db, this.options.busy_timeout_ms, () => {
        db.exec('BEGIN')
        try {
          return look(new Snapshot(statements), readHead(statements))
        } finally {
          db.exec('ROLLBACK')
          if (reader !== this.reader) db.close()
        }
      })
    } catch (error) {
      throw this.refusal(error)
    }
  }

  /** A missing database reads as an empty one, and stays missing: reading changes nothing. */
  private async openReader(): Promise<Connection | undefined> {
    if (this.reader) return this.reader
    if (!existsSync(this.options.path)) return undefined
    const db = openDatabase(this.options.path, { readOnly: true })
    const { path, busy_timeout_ms } = this.options
    let found: number
    try {
      found = await patiently(db, busy_timeout_ms, () => refuseNewer(db, path))
    } catch (error) {
      db.close()
      return unchangingReader(path, error)
    }
    if (found < SCHEMA_VERSION) {
      db.close()
      if (found === 0) return undefined
      this.writer ??= await this.connect()
      return this.openReader()
    }
    // Another read may have opened one while this one was kept waiting.
    if (this.reader) db.close()
    return (this.reader ??= { db, statements: new Statements(db) })
  }

  stamp(): unknown {
    try {
      return this.reader?.statements.sql('PRAGMA data_version').get()?.['data_version']
    } catch {
      // Whoever reads in earnest finds out what is wrong.
      return undefined
    }
  }

  async events(after: number, limit: number): Promise<Event[]> {
    try {
      const reader = await this.openReader()
      return reader ? reader.statements.events(after, limit) : []
    } catch (error) {
      throw this.refusal(error)
    }
  }

  close(): void {
    this.rollback()
    this.writer?.db.close()
    this.reader?.db.close()
    this.writer = undefined
    this.reader = undefined
  }
}

/**
 * Even reading needs a side file in WAL mode. Where none can be made (a read-only folder, a full
 * disk), nobody has the database open: it is read as it is, for one look. Any other error stands.
 */
function unchangingReader(path: string, error: unknown): Connection {
  const code = resultCode(error)
  const { readonly, cantopen, io, full } = RESULT
  const unwritable = [readonly, cantopen, io, full].some((each) => each === code)
  // What is only in the side file would be missed.
  const waiting = statSync(`${path}-wal`, { throwIfNoEntry: false })?.size ?? 0
  if (!unwritable || waiting > 0) throw error
  const db = openUnchanging(path)
  refuseNewer(db, path)
  return { db, statements: new Statements(db) }
}
