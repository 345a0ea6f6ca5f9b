import { type Cursor, INDEXES } from '../../core/schema/indexes.ts'
import {
  type AnyRow,
  type IndexName,
  KEYS,
  type TableName,
  TABLES,
  type Tables,
} from '../../core/schema/schema.ts'
import { planted } from '../../core/planted.ts'
import type { Need } from '../../core/view.ts'
import type { Event } from '../../core/event.ts'
import { type Damage, DamageMark, refuseMarked } from '../damage.ts'
import { isRefusal } from '../../core/refusal.ts'
import { EMPTY_HEAD } from '../writer/chain.ts'
import { MemoryTables } from '../memory.ts'
import {
  type Base,
  type Change,
  type Commit,
  CommitUnknown,
  type Contents,
  type CopyBackend,
  type Head,
  type Sought,
} from '../port.ts'
import { beginPatiently, patiently } from './busy.ts'
import { isProved } from './check.ts'
import { Cache } from './cache.ts'
import { type SqliteConnection, Connections, isInPlace, type SqliteOptions } from './connections.ts'
import { SqliteCounter } from './counter.ts'
import { refusalFor } from './errors.ts'
import { isCurrent } from './migrate.ts'
import { indexWords, SqliteFinder } from './search.ts'
import type { RowChange, Statements } from './statements.ts'
import { isSummed, type RowSums } from './sums.ts'

type Rows = Map<string, AnyRow | null>

/**
 * SQLite in WAL mode with `synchronous=FULL`. One writing connection, one for reading; both are
 * opened when first needed. Several processes may write: whoever has `BEGIN IMMEDIATE` decides on
 * what is committed then, because everything remembered is dropped when `data_version` has moved.
 */
export class SqliteBackend implements CopyBackend {
  readonly isDatabase = true
  readonly finder = new SqliteFinder((look) => this.looked(look))
  readonly counter = new SqliteCounter((look) => this.looked(look))
  private readonly connections: Connections
  private version: unknown
  private head: Head | undefined
  private readonly cache = new Cache()
  private readonly mark: DamageMark
  private sums: RowSums | undefined

  constructor(private readonly options: SqliteOptions) {
    this.connections = new Connections(options)
    this.mark = new DamageMark(options.path)
  }

  get damage(): Damage | undefined {
    return this.mark.read()
  }

  /** What went wrong, as a refusal. Once damage is proved, nobody writes until it is mended. */
  private refusal(error: unknown): Error {
    const { path, isWitnessed = true } = this.options
    const refusal = refusalFor(error, path)
    const isDamage = isRefusal(refusal, 'damaged') && isWitnessed
    if (isDamage) isProved(path, this.mark, this.connections.writer?.db.isTransaction)
    return refusal
  }

  private guarded<T>(step: () => T): T {
    try {
      return step()
    } catch (error) {
      throw this.refusal(error)
    }
  }

  /** Once more where something looked damaged and is not: see `isProved`. */
  private async surely<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (error) {
      const refusal = this.refusal(error)
      if (!isRefusal(refusal, 'damaged') || this.mark.read()) throw refusal
    }
    try {
      return await step()
    } catch (error) {
      throw this.refusal(error)
    }
  }

  /** What a look at the committed rows finds; undefined where there is no database yet. */
  private looked<T>(look: (statements: Statements) => T): Promise<T | undefined> {
    return this.surely(async () => {
      const reader = await this.connections.forReading()
      return reader && look(reader.statements)
    })
  }

  private get statements(): Statements {
    return this.connections.writer!.statements
  }

  async begin(): Promise<Head> {
    refuseMarked(this.mark.read())
    try {
      return await this.surely(() => this.tryBegin())
    } catch (error) {
      this.rollback()
      throw error
    }
  }

  private async tryBegin(): Promise<Head> {
    for (;;) {
      const writer = await this.connections.forWriting()
      if (!writer.db.isTransaction) await beginPatiently(writer.db, this.options.busy_timeout_ms)
      const head = isInPlace(writer) && this.beginWith(writer)
      if (head) return head
      // What would be decided here were written where nobody else looks.
      this.rollback()
      this.connections.refuseLostSides(writer)
      this.drop()
    }
  }

  /** False where an older program's backup took the place of the rows: it has to be migrated. */
  private beginWith(writer: SqliteConnection): Head | false {
    const { statements } = writer
    const { data_version } = statements.sql('PRAGMA data_version').get() as Record<string, unknown>
    if (data_version !== this.version) this.forget()
    this.cache.trim()
    if (!this.head && !isCurrent(statements, this.options.path)) return false
    this.version = data_version
    if (this.head) return this.head
    const { head, sums } = this.connections.headForWriting(writer)
    this.sums = sums
    return (this.head = head)
  }

  private forget(): void {
    this.cache.forget()
    this.head = undefined
    this.sums = undefined
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
    for (const row of this.statements.getMany(table, unknown)) {
      known.set(row[KEYS[table] as keyof AnyRow], row)
    }
  }

  private isEmpty(table: TableName): boolean {
    return this.cache.isEmpty(table, () => this.statements.isEmpty(table))
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const known = this.cache.of(table).get(key)
    if (known !== undefined) return (known ?? undefined) as Tables[T] | undefined
    return this.guarded(() => {
      if (this.isEmpty(table)) return undefined
      const row = this.statements.get(table, key)
      this.cache.of(table).set(key, row ?? null)
      return row
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
    const rows = this.statements.scan(index, group, after, limit)
    if (rows.length === 0 && !after) this.cache.learnBarren(index, group)
    return rows
  }

  contents(): Contents {
    const { statements } = this
    return {
      rows: (...which) => this.guarded(() => statements.rows(...which)),
      events: (...which) => this.guarded(() => statements.events(...which)),
      start: () => this.guarded(() => statements.start()),
    }
  }

  apply(change: Partial<Change>): void {
    this.step(() => this.writeAll(change))
    // What is remembered was committed. So the next batch begins without what is read from here on.
    this.cache.forget()
    this.version = undefined
  }

  commit(commit: Commit): 'done' {
    const writer = this.connections.writer!
    const { changes, head } = commit
    this.step(() => {
      this.writeAll(commit)
      writer.statements.setHead(head, this.sums!.textFor(head))
      // A full disk makes SQLite drop the transaction; what follows would then commit by itself.
      if (!writer.db.isTransaction) throw new Error('SQLite dropped the transaction')
      this.connections.witness?.begin(head)
    })
    this.finish(writer, head)
    this.cache.keep(changes)
    this.head = head
    return 'done'
  }

  /** A step of a transaction that was not asked to commit: nothing of it stays if it fails. */
  private step(take: () => void): void {
    try {
      take()
    } catch (error) {
      this.rollback()
      // If what was remembered is at fault, the next try begins without it.
      this.forget()
      throw this.refusal(error)
    }
  }

  private writeAll({ changes = {}, events = [], forgets, begins }: Partial<Change>): void {
    const { statements } = this
    for (const table of TABLES) this.write(statements, table, changes[table])
    indexWords(statements, changes)
    if (begins) statements.beginBehind(begins)
    statements.append(events)
    if (forgets) statements.forgetEvents(forgets)
  }

  private write(statements: Statements, table: TableName, changes: Rows = new Map()): void {
    const sums = this.sums!
    // A rule may write a row that it did not read; what that was before has to be known.
    if (changes.size > 0 && isSummed(table)) this.load(table, [...changes.keys()])
    const known = this.cache.of(table)
    const changed: RowChange[] = []
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

  private finish(writer: SqliteConnection, head: Head): void {
    const { db } = writer
    // The planted bug of S4: the answer is given, then it is written.
    if (planted('S4')) return void setImmediate(() => db.isOpen && db.exec('COMMIT'))
    try {
      db.exec('COMMIT')
      if (isInPlace(writer)) return this.connections.committed(head)
    } catch (error) {
      // It may be on disk or not. A new connection sees which; this one cannot be trusted.
      this.drop()
      const { message } = this.refusal(error)
      throw new CommitUnknown(message)
    }
    // On disk, but perhaps where nobody will look for it: the next batch finds out.
    this.forget()
    throw new CommitUnknown(`${this.options.path} was replaced or removed meanwhile`)
  }

  rollback(): void {
    if (!this.connections.rollback()) this.drop()
  }

  private drop(): void {
    this.version = undefined
    this.forget()
    this.connections.leaveWriter()
  }

  snapshot<T>(look: (base: Base, head: Head) => T): Promise<T> {
    return this.surely(() => this.trySnapshot(look))
  }

  private async trySnapshot<T>(look: (base: Base, head: Head) => T): Promise<T> {
    const { path, busy_timeout_ms } = this.options
    let reader: SqliteConnection | undefined
    try {
      reader = await this.connections.forReading()
      if (!reader) return look(new MemoryTables(), EMPTY_HEAD)
      const { db, statements, opened } = reader
      // All in one step: another read on this connection may begin as soon as this one pauses.
      return await patiently(db, busy_timeout_ms, () => {
        db.exec('BEGIN')
        try {
          isCurrent(statements, path)
          return look(statements, statements.head())
        } finally {
          db.exec('ROLLBACK')
          if (!opened) db.close()
        }
      })
    } catch (error) {
      // While this one waited, another read found that the files are others.
      if (reader?.opened && !reader.db.isOpen) return this.trySnapshot(look)
      throw error
    }
  }

  stamp(): unknown {
    try {
      return this.connections.stamp()
    } catch {
      // Whoever reads in earnest finds out what is wrong.
      return undefined
    }
  }

  async events(after: number, limit: number, sought?: Sought): Promise<Event[]> {
    return (await this.looked((statements) => statements.events(after, limit, sought))) ?? []
  }

  close(): void {
    this.connections.rollback()
    this.connections.close()
  }
}
