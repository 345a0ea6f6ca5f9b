import { existsSync, statSync } from 'node:fs'
import { EMPTY_HEAD } from '../writer/chain.ts'
import type { Head } from '../port.ts'
import { gone, refuseStranger, sidesGone } from '../successor.ts'
import { type Kept, Witness } from '../witness.ts'
import { patiently } from './busy.ts'
import { type Database, openDatabase, openUnchanging, RESULT, resultCode } from './driver.ts'
import { migrate, refuseNewer, SCHEMA_VERSION } from './migrate.ts'
import { fileAt, Opened } from './opened.ts'
import { Statements } from './statements.ts'
import { type RowSums, sumsWith } from './sums.ts'

export interface SqliteOptions {
  path: string
  /** How long to try without anybody making progress before answering `unavailable`. */
  busy_timeout_ms: number
  /** Makes folder and file with the right modes, before SQLite would with laxer ones. */
  prepare?: () => void
  /** False for a copy that is made ready under another name. */
  isWitnessed?: boolean
}

export interface SqliteConnection {
  db: Database
  statements: Statements
  /** Absent for one look at a database that nobody can write. */
  opened?: Opened
}

export const isInPlace = ({ opened }: SqliteConnection) => opened?.isInPlace() ?? true

/**
 * The connections of one process, one for writing and one for reading, each opened when first
 * needed; and what makes sure that they are to the store that is known, and to all of it.
 */
export class Connections {
  writer: SqliteConnection | undefined
  readonly witness: Witness | undefined
  private reader: SqliteConnection | undefined
  /** The newest commit that this process has seen, in whichever file. */
  private seen: Head | undefined

  constructor(private readonly options: SqliteOptions) {
    if (options.isWitnessed !== false) this.witness = new Witness(options.path)
  }

  async forWriting(): Promise<SqliteConnection> {
    return (this.writer ??= await this.connect())
  }

  private connect(): Promise<SqliteConnection> {
    const { path, prepare } = this.options
    const kept = this.witness?.read()
    if (!existsSync(path)) this.refuseEmpty(kept)
    prepare?.()
    // Under the write lock: nobody makes the store meanwhile.
    const refuseEmpty = () => this.refuseEmpty(this.witness?.read())
    return this.open({ readOnly: false }, (db) => migrate(db, { ...this.options, refuseEmpty }))
  }

  /**
   * Nothing is there: fine for a new store, not for one that this process or another has seen.
   * `kept` has to be read before that look: another process may make the store behind it.
   */
  private refuseEmpty(kept: Kept | undefined): void {
    if (this.seen && this.seen.position > 0) throw gone(this.options.path)
    if (kept) this.witness?.check(EMPTY_HEAD, kept)
  }

  /** Opens the database, and notes which files these are. `first` has to read something. */
  private async open(
    how: { readOnly: boolean },
    first: (db: Database) => Promise<unknown>,
  ): Promise<SqliteConnection & { opened: Opened }> {
    const { path } = this.options
    for (;;) {
      const before = fileAt(path)
      const db = openDatabase(path, how)
      try {
        await first(db)
        const opened = new Opened(path)
        if (opened.isOf(before)) return { db, statements: new Statements(db), opened }
      } catch (error) {
        db.close()
        throw error
      }
      db.close()
    }
  }

  /** The head to decide on, under the write lock. */
  headForWriting({ statements }: SqliteConnection): { head: Head; sums: RowSums } {
    const found = statements.head()
    const sums = sumsWith(statements, found)
    const head = this.witness?.checked(found) ?? found
    this.recognize(found, statements)
    return { head, sums }
  }

  /** Refuses what does not follow the newest commit that was seen; else remembers it. */
  private recognize(head: Head, statements: Statements): void {
    refuseStranger(this.options.path, head, this.seen, (at) => statements.hashOf(at))
    this.seen = head
  }

  /** Our own commit, durable and in place: whoever is told of it may rely on it. */
  committed(head: Head): void {
    this.witness?.end(head)
    this.seen = head
  }

  /** A missing database reads as an empty one, and stays missing: reading changes nothing. */
  async forReading(): Promise<SqliteConnection | undefined> {
    if (this.reader && isInPlace(this.reader)) return this.reader
    this.leaveReader()
    const { path, busy_timeout_ms } = this.options
    const kept = this.witness?.read()
    if (!existsSync(path)) return this.none(kept)
    let found = 0
    let reader: SqliteConnection
    try {
      reader = await this.open({ readOnly: true }, async (db) => {
        found = await patiently(db, busy_timeout_ms, () => refuseNewer(db, path))
      })
    } catch (error) {
      return this.trusted(unchangingReader(path, error), kept)
    }
    if (found < SCHEMA_VERSION) {
      reader.db.close()
      if (found === 0) return this.none(kept)
      await this.forWriting()
      return this.forReading()
    }
    this.trusted(reader, kept)
    // Another read may have opened one while this one was kept waiting.
    if (this.reader) reader.db.close()
    return (this.reader ??= reader)
  }

  private none(kept: Kept | undefined): undefined {
    this.refuseEmpty(kept)
  }

  private trusted(reader: SqliteConnection, kept: Kept | undefined): SqliteConnection {
    try {
      const head = reader.statements.head()
      this.witness?.check(head, kept)
      this.recognize(head, reader.statements)
      return reader
    } catch (error) {
      reader.db.close()
      throw error
    }
  }

  /** Another value after every commit of others; undefined where only a real look can tell. */
  stamp(): unknown {
    // Of files that are no longer those at the path it would never say anything new.
    if (!this.reader || !isInPlace(this.reader)) return undefined
    return this.reader.statements.sql('PRAGMA data_version').get()?.['data_version']
  }

  /** Ends what was begun. False when the connection cannot be trusted any more. */
  rollback(): boolean {
    if (!this.writer?.db.isTransaction) return true
    try {
      this.writer.db.exec('ROLLBACK')
      return true
    } catch {
      return false
    }
  }

  /** Lets go of the connection for writing: its files may not be those at the path any more. */
  leaveWriter(): void {
    this.writer?.db.close()
    this.writer = undefined
  }

  private leaveReader(): void {
    if (this.reader) this.refuseLostSides(this.reader)
    this.reader?.db.close()
    this.reader = undefined
  }

  /**
   * Where only the side files were removed, what is in ours alone is brought into the database,
   * unless others use that by now. Then this process ends (`unavailable`): SQLite keeps to the side
   * files of a first connection to a file for as long as anything of that is left.
   */
  refuseLostSides({ opened }: SqliteConnection): void {
    if (!opened?.hasLostSides()) return
    const { db } = this.writer ?? {}
    if (db && !db.isTransaction && !opened.hasRivals()) db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    throw sidesGone(this.options.path)
  }

  close(): void {
    this.writer?.db.close()
    this.reader?.db.close()
    this.writer = undefined
    this.reader = undefined
    this.witness?.close()
  }
}

/**
 * Even reading needs a side file in WAL mode. Where none can be made (a read-only folder, a full
 * disk), nobody has the database open: it is read as it is, for one look. Any other error stands.
 */
function unchangingReader(path: string, error: unknown): SqliteConnection {
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
