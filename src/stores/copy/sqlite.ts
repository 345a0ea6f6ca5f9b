import type { AnyRow, TableName } from '../../core/schema/schema.ts'
import type { Event } from '../../core/event.ts'
import type { Head } from '../port.ts'
import { beginPatiently } from '../sqlite/busy.ts'
import { CODECS } from '../sqlite/codec.ts'
import { type Database, openDatabase } from '../sqlite/driver.ts'
import { refusalFor } from '../sqlite/errors.ts'
import { schemaVersion } from '../sqlite/migrate.ts'
import { indexAllWords } from '../sqlite/search.ts'
import { readHead } from '../sqlite/snapshot.ts'
import { Statements } from '../sqlite/statements.ts'
import { sumAnew } from '../sqlite/sums.ts'
import { readText } from './scans.ts'
import { unknownOutcome } from './refusals.ts'
import type { Mark, Side } from './side.ts'

const SET_HEAD = `UPDATE head SET epoch = ?, fences = ?, task_number = ?, position = ?, hash = ?,
  boot = ?, offset_ms = ?, last_ms = ? WHERE id = 1`

/** A database under `BEGIN IMMEDIATE`: nobody else can write it until this is closed. */
export class SqliteSide implements Side {
  readonly isFile = false
  readonly clock = undefined
  private readonly statements: Statements

  private constructor(
    private readonly path: string,
    private readonly db: Database,
  ) {
    this.statements = new Statements(db)
  }

  /** Undefined where there are no tables of ours. */
  static async open(path: string, busy_timeout_ms: number): Promise<SqliteSide | undefined> {
    let db: Database | undefined
    try {
      db = openDatabase(path, { readOnly: false })
      db.exec('PRAGMA synchronous = FULL')
      await beginPatiently(db, busy_timeout_ms)
      if (schemaVersion(db) === 0) {
        db.close()
        return undefined
      }
      return new SqliteSide(path, db)
    } catch (error) {
      db?.close()
      throw refusalFor(error, path)
    }
  }

  private attempt<T>(step: () => T): T {
    try {
      return step()
    } catch (error) {
      throw refusalFor(error, this.path)
    }
  }

  head(): Head {
    return this.attempt(() => readHead(this.statements))
  }

  stamp(): string {
    return JSON.stringify(this.head())
  }

  checkpoint(): Mark {
    const text = 'SELECT position, hash FROM checkpoint'
    return this.attempt(() => this.statements.sql(text).get() as unknown as Mark)
  }

  rows(table: TableName, after: string | undefined, limit: number): AnyRow[] {
    const codec = CODECS[table]
    return this.attempt(() => {
      const found = this.statements.sql(readText(table, after)).all(after ?? '', limit)
      return found.map((row) => codec.decode(codec.names.map((name) => row[name])))
    })
  }

  events(after: number, limit: number): Event[] {
    return this.attempt(() => this.statements.events(after, limit))
  }

  write(table: TableName, rows: AnyRow[]): void {
    this.attempt(() => this.statements.write(table, rows))
  }

  append(events: Event[]): void {
    this.attempt(() => this.statements.append(events))
  }

  finish(head: Head, checkpoint: Mark): void {
    const { epoch, fences, task_number, position, hash, boot, offset_ms, last_ms } = head
    const values = [epoch, fences, task_number, position, hash, boot, offset_ms, last_ms]
    this.attempt(() => {
      this.statements.sql(SET_HEAD).run(...values)
      indexAllWords(this.statements)
      const set = this.statements.sql('UPDATE checkpoint SET position = ?, hash = ?')
      set.run(checkpoint.position, checkpoint.hash)
      sumAnew(this.db)
    })
  }

  leave(boot: string): void {
    this.attempt(() => this.statements.sql('UPDATE head SET boot = ?').run(boot))
    this.commit()
  }

  commit(): void {
    // A full disk makes SQLite drop the transaction; part of it would then be committed.
    if (!this.db.isTransaction) throw new Error('SQLite dropped the transaction')
    try {
      this.db.exec('COMMIT')
    } catch (error) {
      throw unknownOutcome(this.path, refusalFor(error, this.path).message)
    }
  }

  close(): void {
    try {
      if (this.db.isTransaction) this.db.exec('ROLLBACK')
    } finally {
      this.db.close()
    }
  }
}
