import { existsSync } from 'node:fs'
import { Chain, EMPTY_HEAD } from '../writer/chain.ts'
import { DamageMark } from '../damage.ts'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { Invariants, NAMED_MAX } from '../invariants.ts'
import type { CheckReport } from '../port.ts'
import { Witness } from '../witness.ts'
import { type Database, openDatabase, RESULT, resultCode } from './driver.ts'
import { refusalFor } from './errors.ts'
import { applyScripts, refuseNewer, SCHEMA_VERSION } from './migrate.ts'
import { makeTables, shapeOf } from './shape.ts'
import { Statements } from './statements.ts'
import { strangeTables } from './sums.ts'

export const CHECK_PATIENCE_MS = 5_000

/** Checks the store itself: what is found stops all writers, and nothing found lets them go on. */
export function checkSqlite(path: string): CheckReport {
  const { isDamaged, ...report } = inspectSqlite(path)
  const mark = new DamageMark(path)
  if (report.ok) mark.remove()
  else if (isDamaged) isProved(path, mark)
  return report
}

/**
 * Whether damage that somebody met is there; then all are told. One look is no proof that may stop
 * everybody: the store may have been begun, mended or replaced behind it, or the disk was away for
 * a moment. So it is looked for once more, under the write lock; `isOurs`: this process has that.
 */
export function isProved(path: string, mark: DamageMark, isOurs = false): boolean {
  if (mark.read()) return true
  let lock: Database | undefined
  try {
    const subject = mark.subject()
    if (!isOurs && existsSync(path)) lock = lockedAgainstWriters(path)
    const { isDamaged, problems } = inspectSqlite(path)
    if (isDamaged) mark.leave(`The store ${path} is damaged: ${problems[0]}`, subject)
    return isDamaged
  } catch (error) {
    // Somebody has it all that time: whether there is damage is not known.
    if (resultCode(error) === RESULT.busy) return false
    throw error
  } finally {
    if (lock) endReading(lock)
  }
}

/** Undefined where nobody can write, or where that is no database any more. */
function lockedAgainstWriters(path: string): Database | undefined {
  let db: Database | undefined
  try {
    db = openDatabase(path, { readOnly: false, timeout_ms: CHECK_PATIENCE_MS })
    db.exec('BEGIN IMMEDIATE')
    return db
  } catch (error) {
    db?.close()
    if (resultCode(error) === RESULT.busy) throw error
    return undefined
  }
}

/**
 * Everything that can be known to be wrong: pages, schema, the chain of events, rows that are not
 * as they were written, and rows that disagree. Changes nothing. Of an older schema only what was
 * there from the beginning: pages and the chain. The time it takes grows with the store, no faster.
 */
export function inspectSqlite(path: string): CheckReport & { isDamaged: boolean } {
  const report: CheckReport = { ok: false, problems: [], events: 0, head: undefined }
  let isDamaged = true
  let db: Database | undefined
  try {
    // Before the database is looked at: others go on meanwhile.
    const witness = new Witness(path)
    const kept = witness.read()
    const isThere = existsSync(path)
    if (isThere) {
      // Another process that opens or closes the file just now is no damage.
      db = openDatabase(path, { readOnly: true, timeout_ms: CHECK_PATIENCE_MS })
      db.exec('BEGIN')
      if (refuseNewer(db, path) > 0) inspect(db, path, report)
    }
    witness.check(report.head ?? EMPTY_HEAD, kept)
    if (!report.head) {
      isDamaged = false
      report.problems.push(isThere ? 'there is nothing in it' : `There is no database at ${path}`)
    }
  } catch (error) {
    const refusal = refusalFor(error, path)
    isDamaged = report.problems.length > 0 || isRefusal(refusal, 'damaged')
    if (!isDamaged && refusal instanceof Refusal) report.hindered = refusal
    report.problems.push(refusal.message)
  } finally {
    if (db) endReading(db)
  }
  const ok = report.problems.length === 0
  return { ...report, ok, isDamaged: isDamaged && !ok }
}

/** The driver lets go of a closed database only when its statements are collected. */
function endReading(db: Database): void {
  try {
    if (db.isTransaction) db.exec('ROLLBACK')
  } finally {
    db.close()
  }
}

function inspect(db: Database, path: string, report: CheckReport): void {
  const { problems } = report
  const found = refuseNewer(db, path)
  for (const row of db.prepare('PRAGMA integrity_check').all()) {
    const said = String(row['integrity_check'])
    if (said !== 'ok') problems.push(said)
  }
  problems.push(...strangeSchema(db, found))
  const statements = new Statements(db)
  const head = statements.head()
  const start = statements.start()
  report.head = head
  report.events = head.position - start.position
  const invariants = new Invariants(head)
  const chain = new Chain(start)
  for (const event of statements.allEvents()) {
    chain.see(event)
    if (chain.fault !== undefined) break
    invariants.seeEvent(event)
  }
  const fault = chain.faultAt(head)
  if (fault !== undefined) problems.push(fault)
  if (found !== SCHEMA_VERSION) return
  problems.push(...strangeTables(statements, (table, row) => invariants.see(table, row)))
  problems.push(...invariants.found())
  const lost = db.prepare(`${UNFOUND} LIMIT ${NAMED_MAX}`).all() as { id: string }[]
  if (lost.length === 0) return
  problems.push(`notes that cannot be found by their words: ${lost.map(({ id }) => id).join(', ')}`)
}

const UNFOUND = `SELECT replace(id, char(10), ' ') AS id FROM memory WHERE live = 1
  AND id NOT IN (SELECT id FROM memory_row)`

/** Tables and indexes that are not as they should be; others of somebody's own are let be. */
function* strangeSchema(db: Database, version: number): Generator<string> {
  const model = openDatabase(':memory:', { readOnly: false })
  try {
    if (version === SCHEMA_VERSION) makeTables(model, version)
    else applyScripts(model, 0, version)
    const there = shapeOf(db)
    for (const [name, shape] of shapeOf(model)) {
      if (!there.has(name)) yield `the ${name} is missing`
      else if (there.get(name) !== shape) yield `the ${name} is another`
    }
    for (const name of there.keys()) {
      if (name.startsWith('trigger ')) yield `there is a ${name} that is not ours`
    }
  } finally {
    model.close()
  }
}
