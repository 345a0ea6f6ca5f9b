import type { Cursor } from '../../core/schema/indexes.ts'
import type { AnyRow, IndexName, TableName, Tables } from '../../core/schema/schema.ts'
import { planted } from '../../core/planted.ts'
import { Refusal } from '../../core/refusal.ts'
import { type Need, NotLoaded } from '../../core/view.ts'
import type { Event } from '../../core/event.ts'
import { uniqueId } from '../../machine/digest.ts'
import { Guesses } from '../writer/guesses.ts'
import { EMPTY_HEAD } from '../writer/chain.ts'
import { MemoryTables } from '../memory.ts'
import {
  Again,
  type Base,
  type Change,
  type Commit,
  CommitUnknown,
  type Contents,
  type CopyBackend,
  type Head,
  type LeaderBoard,
  type Sought,
} from '../port.ts'
import { type Address, channelOf } from './address.ts'
import { PostgresContents } from './contents.ts'
import { PostgresCounter, type PostgresRead } from './counter.ts'
import type { Connection, TextRow } from './driver.ts'
import { isAway, isMissing, isUnsent, mayGoBetter, refusalFor, sqlState, STATE } from './errors.ts'
import { type FoundHead, headOf, notDurable, SeenHead } from './head.ts'
import { Known } from './known.ts'
import { inLine, LINE_MS } from './line.ts'
import { leaderBoardOf } from './leader_row.ts'
import { Listening } from './listening.ts'
import { load } from './loads.ts'
import { migrate, SCHEMA_VERSION, schemaVersion } from './migrate.ts'
import { PATIENCE, Pool, Sessions, SILENT_MS } from './session.ts'
import { indexWords, PostgresFinder } from './search.ts'
import { type PostgresStatements, statementsFor } from './statements.ts'
import { write } from './writes.ts'

/** A round trip is dear, and shared by all asks of a batch; but the first waits for the last. */
const BATCH_MAX = 256
/** The lanes of those whose turn it is, and what is in them. */
const LEVELS_AHEAD = 2
const POLL_MS = 1_000
/** How often in a row a transaction may be cut short before its asks are told. */
const CUT_SHORT_MAX = 8

interface PostgresOptions {
  address: Address
  /** How long to try without the server, or without anybody making progress. */
  busy_timeout_ms: number
  /** Makes what the first write needs beside the database. */
  prepare?: () => void
  /** What this host has seen of the database. */
  seen?: SeenHead
  /** Whose clock leases are measured by; tests that decide the time have it on their machine. */
  clock?: 'database' | 'machine'
  /** A transaction that waits may wait for longer: the other end of a copy takes its time. */
  isPatient?: boolean
}
type Looked<T> = { answer: T } | { error: unknown }

/**
 * PostgreSQL. One writer at a time per schema: every batch is a READ COMMITTED transaction that
 * begins with an advisory lock, and only then reads the head and the clock. So whoever decides,
 * decides on all that was committed before, and positions of events become visible in order.
 */
export class PostgresBackend implements CopyBackend {
  readonly isDatabase = true
  readonly isRemote = true
  readonly isShared = true
  readonly batch_max = BATCH_MAX
  readonly poll_ms = POLL_MS
  readonly finder: PostgresFinder
  readonly counter: PostgresCounter
  readonly leaders: LeaderBoard
  private readonly statements: PostgresStatements
  private readonly sessions: Sessions
  private readonly readers: Pool
  private readonly known = new Known()
  private readonly seen: SeenHead
  private readonly id = uniqueId()
  private writer: Connection | undefined
  private listening: Listening | undefined
  private isOpen = false
  private isMigrated = false
  private commits = -1
  private cutShort = 0

  constructor(private readonly options: PostgresOptions) {
    this.statements = statementsFor(options.address)
    this.seen = options.seen ?? new SeenHead()
    this.sessions = new Sessions(options.address, options.busy_timeout_ms)
    this.readers = new Pool(this.sessions)
    const read: PostgresRead = (use, none) => this.reading(use, none)
    this.finder = new PostgresFinder(read, this.statements)
    this.counter = new PostgresCounter(read, options.address)
    this.leaders = leaderBoardOf(read, this.statements)
  }

  async begin(): Promise<Head> {
    for (;;) {
      try {
        return await this.sessions.patiently((isHere) => this.tryBegin(isHere))
      } catch (error) {
        // After a minute in line: somebody had the lock all that time, one after the other.
        if (sqlState(error) === STATE.lockTimeout) continue
        throw refusalFor(error, this.options.address.shown)
      }
    }
  }

  private async tryBegin(isHere: () => void): Promise<Head> {
    const { address } = this.options
    try {
      this.writer ??= await this.openWriter()
      const before = this.seen.newest
      const begun = await this.waitInLine(this.writer, isHere)
      this.isOpen = true
      if (this.options.isPatient) await this.writer.run(PATIENCE)
      const head = headOf(begun, address.shown, this.writer.pid)
      const found = this.seen.look(head, before, address.shown)
      if (!found.isDurable) throw notDurable(address.shown)
      this.catchUp(found)
      return this.clocked(found)
    } catch (error) {
      // A session that was refused is not asked again.
      await this.rollback(isAway(error) || error instanceof Refusal)
      if (!isMissing(error)) throw error
      // Somebody dropped our tables: the next step makes new ones.
      this.drop()
      throw new Refusal('unavailable', `${address.shown} has lost its tables`, {
        next: 'If they were dropped on purpose, ask again: they are made anew.',
      })
    }
  }

  /** What is known is true as long as nobody else has committed. */
  private catchUp({ commits }: FoundHead): void {
    const isShared = commits !== this.commits
    const isMissed = this.commits >= 0 && planted('R37')
    if (isShared && !isMissed) this.known.forget()
    this.known.makeReady(isShared)
    this.commits = commits
  }

  /** Begins a transaction when the lock is ours. A place in line is kept while others get on. */
  private async waitInLine(db: Connection, isHere: () => void): Promise<TextRow[]> {
    const { busy_timeout_ms, address } = this.options
    const { line, beginWriting } = this.statements
    const look = async () => {
      const found = await this.readers.with((reader) => reader.run(line))
      isHere()
      return found
    }
    const begun = db.run(beginWriting, LINE_MS + SILENT_MS)
    // Given up, it still waits for an answer: nothing more can be asked on that connection.
    const lose = () => this.drop()
    return inLine(begun, { pid: db.pid, shown: address.shown, busy_timeout_ms, look, lose })
  }

  private async openWriter(): Promise<Connection> {
    this.options.prepare?.()
    const db = await this.sessions.open(LINE_MS)
    try {
      if (!this.isMigrated) await migrate(db, this.options.address)
      this.isMigrated = true
      return db
    } catch (error) {
      await db.close()
      throw error
    }
  }

  private clocked({ head, clock_ms }: FoundHead): Head {
    return this.options.clock === 'machine' ? head : { ...head, clock_ms }
  }

  async prefetch(needs: Need[]): Promise<void> {
    const { quoted: schema } = this.options.address
    const wanted = this.known.lacking(needs)
    const lacked = wanted.keys.size + wanted.groups.size + wanted.pages.size > 0
    await this.step(async (db) => {
      await load(db, schema, wanted, this.known)
      // Nothing, unless somebody has looked whose turn it is.
      for (let level = 0; lacked && level < LEVELS_AHEAD; level += 1) {
        await load(db, schema, this.known.lackingAhead(), this.known)
      }
    })
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    return this.known.get(table, key)
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    return this.known.scan(index, group, after, limit)
  }

  contents(): Contents {
    return new PostgresContents(this.writer!, this.options.address)
  }

  apply(change: Partial<Change>): Promise<void> {
    // What is known was committed: nothing is taken for known of what is written here.
    this.known.forget()
    return this.step(async (db) => {
      await write(db, this.options.address.quoted, change, this.known)
      await indexWords(db, this.statements, change.changes)
    })
  }

  /** Written and committed in one round trip: a write that fails leaves nothing to commit. */
  async commit(commit: Commit): Promise<'done'> {
    const { quoted, shown } = this.options.address
    const { commits } = this
    const db = this.writer!
    if (db.isLost) return this.giveUp(new Error('connection lost'))
    const writing = write(db, quoted, { ...commit, commits }, this.known)
    const isIndexed = commit.changes.memory ?? commit.changes.memory_text
    const indexing =
      isIndexed && writing.then(() => indexWords(db, this.statements, commit.changes))
    // Words are taken from what was written, so notes are committed a round trip later.
    const finishing = indexing ? indexing.then(() => this.finish(db)) : this.finish(db)
    // It is asked for below, if at all.
    finishing.catch(() => undefined)
    try {
      if (!(await writing)) throw new Again('another was first')
      await indexing
    } catch (error) {
      if (isAway(error) && !sqlState(error) && !isUnsent(error)) {
        this.drop()
        throw new CommitUnknown(refusalFor(error, shown).message)
      }
      await finishing.catch(() => undefined)
      return this.giveUp(error)
    }
    await finishing
    this.isOpen = false
    this.known.keep(commit.changes)
    this.seen.keep(commit.head)
    this.commits += 1
    this.cutShort = 0
    return 'done'
  }

  /** A step of a transaction that has not been asked to commit: nothing of it stays if it fails. */
  private async step(take: (db: Connection) => Promise<void>): Promise<void> {
    try {
      await take(this.writer!)
    } catch (error) {
      await this.giveUp(error)
    }
  }

  private async giveUp(error: unknown): Promise<never> {
    const cutShort = this.cutShort + 1
    await this.rollback(isAway(error))
    this.cutShort = cutShort
    this.forget()
    const again = error instanceof Again || mayGoBetter(error)
    if (again && this.cutShort <= CUT_SHORT_MAX) throw new Again('cut short', { cause: error })
    throw refusalFor(error, this.options.address.shown)
  }

  private async finish(db: Connection): Promise<void> {
    const { schema, shown } = this.options.address
    const commit = `NOTIFY ${channelOf(schema)}, '${this.id}'; COMMIT`
    // The planted bug of S4: the answer is given, then it is written.
    if (planted('S4')) return void setImmediate(() => void db.run(commit).catch(() => undefined))
    try {
      await db.run(commit)
    } catch (error) {
      // The write was refused, and this with it: its transaction has yet to be ended.
      if (sqlState(error) === STATE.aborted) return
      // It may be on disk or not. A new connection sees which; this one cannot be trusted.
      this.drop()
      throw new CommitUnknown(refusalFor(error, shown).message)
    }
  }

  async rollback(isLost = false): Promise<void> {
    if (isLost) return this.drop()
    if (this.isOpen) this.cutShort = 0
    if (!this.isOpen && !this.writer) return
    this.isOpen = false
    await this.writer?.run('ROLLBACK').catch(() => this.drop())
  }

  private drop(): void {
    void this.writer?.close()
    this.writer = undefined
    this.isOpen = false
    this.isMigrated = false
    this.forget()
  }

  private forget(): void {
    this.known.forget()
    this.commits = -1
  }

  async snapshot<T>(look: (base: Base, head: Head) => T): Promise<T> {
    const looked = await this.reading<Looked<T>>(
      async (db) => {
        const found = await this.beginReading(db)
        const known = new Known()
        try {
          return await this.lookLoaded(db, known, (base) => look(base, found))
        } catch (error) {
          // What the look itself throws is its answer; the connection is as good as before.
          if (isAway(error) || sqlState(error)) throw error
          return { error }
        } finally {
          await db.run('ROLLBACK').catch(() => undefined)
        }
      },
      () => ({ answer: look(new MemoryTables(), this.emptyHead()) }),
    )
    if ('error' in looked) throw looked.error
    return looked.answer
  }

  private emptyHead(): Head {
    return this.options.clock === 'machine' ? EMPTY_HEAD : { ...EMPTY_HEAD, clock_ms: Date.now() }
  }

  private async beginReading(db: Connection): Promise<Head> {
    const before = this.seen.newest
    const { shown } = this.options.address
    const found = headOf(await db.run(this.statements.beginReading), shown, db.pid)
    return this.clocked(this.seen.look(found, before, shown))
  }

  /** Looks, and loads what that lacked, until it lacks nothing. */
  private async lookLoaded<T>(
    db: Connection,
    known: Known,
    look: (base: Base) => T,
  ): Promise<Looked<T>> {
    for (;;) {
      try {
        return { answer: look(known) }
      } catch (error) {
        if (!(error instanceof NotLoaded)) throw error
        const guesses = new Guesses(known)
        guesses.tryOut(() => look(guesses))
        const wanted = known.lacking([error.need, ...guesses.needs])
        await load(db, this.options.address.quoted, wanted, known)
      }
    }
  }

  /** Reading changes nothing: where there are no tables yet, it finds nothing. */
  private async reading<T>(use: (db: Connection) => Promise<T>, none: () => T): Promise<T> {
    const { address } = this.options
    try {
      return await this.sessions.patiently(() =>
        this.readers.with(async (db) => {
          if (!this.isMigrated && !(await this.hasTables(db))) return none()
          return use(db)
        }),
      )
    } catch (error) {
      if (!isMissing(error)) throw refusalFor(error, address.shown)
      this.isMigrated = false
      return none()
    }
  }

  private async hasTables(db: Connection): Promise<boolean> {
    const found = await schemaVersion(db, this.options.address)
    if (found === 0) return false
    if (found < SCHEMA_VERSION) await migrate(db, this.options.address)
    this.isMigrated = true
    return true
  }

  events(after: number, limit: number, sought?: Sought): Promise<Event[]> {
    return this.reading(
      (db) => new PostgresContents(db, this.options.address).events(after, limit, sought),
      () => [],
    )
  }

  listen(hint: () => void): void {
    const { schema } = this.options.address
    this.listening ??= new Listening(this.sessions, channelOf(schema), (who) => {
      if (who !== this.id) hint()
    })
  }

  async close(): Promise<void> {
    this.listening?.stop()
    if (this.isOpen) await this.rollback()
    await this.writer?.close()
    this.writer = undefined
    await this.readers.close()
  }
}
