import { join } from 'node:path'
import { Refusal } from '../../core/refusal.ts'
import { readEpoch, writeEpoch } from '../epoch.ts'
import { makePrivateFolder } from '../../machine/privacy.ts'
import type { CheckReport } from '../port.ts'
import { settleRestored } from '../writer/restored.ts'
import { isBehind, type Numbers } from '../witness.ts'
import { faultsIn } from '../invariants.ts'
import { type Address, addressOf } from './address.ts'
import { PostgresBackend } from './backend.ts'
import { PostgresContents } from './contents.ts'
import type { Connection } from './driver.ts'
import { refusalFor } from './errors.ts'
import { headOf, putBack, witnessOf } from './head.ts'
import { SCHEMA_VERSION, schemaVersion } from './migrate.ts'
import { Sessions } from './session.ts'
import { type PostgresStatements, statementsFor } from './statements.ts'

/** Where the store is: a `Place` of PostgreSQL. */
interface Where {
  url?: string
  folder: string
  busy_timeout_ms: number
}

async function withSession<T>(
  { url, busy_timeout_ms }: Where,
  use: (db: Connection, statements: PostgresStatements) => Promise<T>,
): Promise<T> {
  const address = addressOf(url!)
  const sessions = new Sessions(address, busy_timeout_ms)
  let db: Connection | undefined
  try {
    db = await sessions.patiently(() => sessions.open())
    return await use(db, statementsFor(address))
  } catch (error) {
    throw refusalFor(error, address.shown)
  } finally {
    await db?.close()
  }
}

/** The chain of events, rows that disagree, and settings that make promises worth less. */
export async function checkPostgres(where: Where): Promise<CheckReport> {
  const report: CheckReport = { ok: false, problems: [], events: 0, head: undefined }
  try {
    const address = addressOf(where.url!)
    const seen = witnessOf(where.folder, address).read().committed
    await withSession(where, async (db, statements) => {
      const found = await schemaVersion(db, address)
      if (found === 0) return
      if (found === SCHEMA_VERSION) await inspect(db, statements, report, address, seen)
      else report.problems.push(`schema ${found} instead of ${SCHEMA_VERSION}`)
    })
  } catch (error) {
    if (error instanceof Refusal && error.code !== 'damaged') report.hindered = error
    report.problems.push((error as Error).message)
  }
  return { ...report, ok: report.problems.length === 0 }
}

async function inspect(
  db: Connection,
  statements: PostgresStatements,
  report: CheckReport,
  address: Address,
  seen: Numbers | undefined,
): Promise<void> {
  const { shown } = address
  const { head } = headOf(await db.run(statements.beginReading), shown, db.pid)
  const contents = new PostgresContents(db, address)
  report.head = head
  report.events = head.position - (await contents.start()).position
  if (seen && isBehind(head, seen)) report.problems.push(putBack(head, seen, shown).message)
  for await (const fault of faultsIn(contents, head)) report.problems.push(fault)
  const [setting] = await db.run(`SELECT current_setting('fsync')`)
  if (setting?.[0] === 'off') {
    const next = 'A power cut may lose what was answered: set fsync = on, and restart that server.'
    hinder(report, `${shown} runs with fsync = off`, next)
  }
  for (const [pid, seconds] of await db.run(statements.leftOpen)) {
    const next = `Work gets slower until it ends. To end it: pg_terminate_backend(${pid})`
    hinder(report, `A transaction of process ${pid} has been open for ${seconds} s`, next)
  }
}

/** No damage, but not as it should be. */
function hinder(report: CheckReport, what: string, next: string): void {
  if (report.problems.length === 0) report.hindered = new Refusal('unavailable', what, { next })
  report.problems.push(what)
}

/**
 * Raises the epoch above that of the database as it is, and of every time before that this host
 * remembers. Every lease ends: its lock may have moved on after the backup was made.
 */
export async function raisePostgresEpoch(where: Where): Promise<void> {
  const address = addressOf(where.url!)
  const memory = join(where.folder, 'postgres')
  makePrivateFolder(where.folder)
  const epoch = await withSession(where, async (db, statements) => {
    const { head } = headOf(await db.run(statements.beginWriting), address.shown, db.pid)
    const seen = witnessOf(where.folder, address).read().committed?.epoch ?? 0
    const raised = Math.max(head.epoch, seen, readEpoch(memory)) + 1
    writeEpoch(memory, raised)
    await db.query(statements.raiseEpoch, [raised])
    await db.run('COMMIT')
    return raised
  })
  const { busy_timeout_ms } = where
  await settleRestored(new PostgresBackend({ address, busy_timeout_ms }), epoch)
}
