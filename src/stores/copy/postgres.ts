import { type AnyRow, type Changes, KEYS, type TableName } from '../../core/schema/schema.ts'
import { Refusal } from '../../core/refusal.ts'
import type { Event } from '../../core/event.ts'
import type { Head } from '../port.ts'
import { type Address, addressOf } from '../postgres/address.ts'
import { CODECS, EVENT_CODEC } from '../postgres/codec.ts'
import type { Connection } from '../postgres/driver.ts'
import { isMissing, refusalFor } from '../postgres/errors.ts'
import { headOf } from '../postgres/head.ts'
import { Known } from '../postgres/known.ts'
import { indexAllWords } from '../postgres/search.ts'
import { Sessions } from '../postgres/session.ts'
import { type PostgresStatements, statementsFor } from '../postgres/statements.ts'
import { HEAD, write } from '../postgres/writes.ts'
import { readText } from './scans.ts'
import { unknownOutcome } from './refusals.ts'
import type { Mark, Side } from './side.ts'

/** The other end of a copy may take its time; a copy that was stopped must not hold up for ever. */
const PATIENCE = `SET LOCAL idle_in_transaction_session_timeout = '60s'`
const READ_HEAD = 'SELECT row_to_json(t)::text FROM head AS t'
const LEAVE = 'UPDATE head SET boot = $1, commits = commits + 1'
const READ_CLOCK = 'SELECT (extract(epoch FROM clock_timestamp()) * 1000)::text'

/** Nothing is known of an empty store: every row is a new one. */
const KNOWN = new Known()

/** A schema under the lock of its writers, in one transaction. */
export class PostgresSide implements Side {
  readonly isFile = false
  readonly clock: string
  private readonly statements: PostgresStatements
  private started: Head

  private constructor(
    private readonly address: Address,
    private readonly db: Connection,
    head: Head,
    private commits: number,
  ) {
    this.statements = statementsFor(address)
    this.clock = new URL(address.url).host
    this.started = head
  }

  /** Undefined where there are no tables of ours. */
  static async open(url: string, busy_timeout_ms: number): Promise<PostgresSide | undefined> {
    const address = addressOf(url)
    const statements = statementsFor(address)
    const sessions = new Sessions(address, busy_timeout_ms)
    let db: Connection | undefined
    try {
      db = await sessions.patiently(() => sessions.open())
      const begun = await db.run(statements.beginWriting)
      const { head, commits } = headOf(begun, address.shown, db.pid)
      await db.run(`${statements.useSchema}; ${PATIENCE}`)
      return new PostgresSide(address, db, head, commits)
    } catch (error) {
      await db?.close()
      if (isMissing(error)) return undefined
      throw refusalFor(error, address.shown)
    }
  }

  private async attempt<T>(step: () => Promise<T>): Promise<T> {
    try {
      return await step()
    } catch (error) {
      throw refusalFor(error, this.address.shown)
    }
  }

  head(): Promise<Head> {
    return this.attempt(async () => {
      const found = JSON.parse(await this.stamp()) as Head
      const [clock] = await this.db.run(READ_CLOCK)
      const kept = Object.fromEntries(HEAD.map((name) => [name, found[name]]))
      return { ...(kept as unknown as Head), clock_ms: Number(clock?.[0]) }
    })
  }

  async stamp(): Promise<string> {
    const [row] = await this.attempt(() => this.db.run(READ_HEAD))
    return row?.[0] ?? '{}'
  }

  async checkpoint(): Promise<Mark> {
    const [row] = await this.attempt(() => this.db.run(this.statements.checkpoint))
    return { position: Number(row?.[0]), hash: row?.[1] ?? '' }
  }

  async rows(table: TableName, after: string | undefined, limit: number): Promise<AnyRow[]> {
    const columns = CODECS[table].names.map((name) => `t."${name}"::text`).join(', ')
    const text = readText(table, after).replace('*', columns).replaceAll('?', '$')
    const found = await this.attempt(() => this.db.query(text, [after ?? '', limit]))
    return found.map((row) => CODECS[table].decode(row))
  }

  async events(after: number, limit: number): Promise<Event[]> {
    const found = await this.attempt(() => this.db.query(this.statements.events(), [after, limit]))
    return found.map((row) => EVENT_CODEC.decode(row))
  }

  write(table: TableName, rows: AnyRow[]): Promise<void> {
    const keyed = rows.map((row) => [row[KEYS[table] as keyof AnyRow] as string, row] as const)
    return this.put({ [table]: new Map(keyed) }, [])
  }

  append(events: Event[]): Promise<void> {
    return this.put({}, events)
  }

  private async put(changes: Changes, events: Event[]): Promise<void> {
    const { quoted, shown } = this.address
    const { commits, started: head } = this
    const commit = { changes, events, head, commits, tells: false }
    if (!(await this.attempt(() => write(this.db, quoted, commit, KNOWN)))) {
      throw new Refusal('conflict', `${shown} was written while it was copied to`, {
        next: 'Nothing was copied. Stop what writes there, empty it, and copy again.',
      })
    }
    this.commits += 1
  }

  async finish(head: Head, { position, hash }: Mark): Promise<void> {
    this.started = head
    await this.put({}, [])
    await this.attempt(() => indexAllWords(this.db, this.statements))
    await this.attempt(() => this.db.query(this.statements.setCheckpoint, [position, hash]))
  }

  async leave(boot: string): Promise<void> {
    await this.attempt(() => this.db.query(LEAVE, [boot]))
    await this.commit()
  }

  async commit(): Promise<void> {
    try {
      await this.db.run('COMMIT')
    } catch (error) {
      const { shown } = this.address
      throw unknownOutcome(shown, refusalFor(error, shown).message)
    }
  }

  async close(): Promise<void> {
    await this.db.close()
  }
}
