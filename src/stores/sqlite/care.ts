import { closeSync, existsSync, linkSync, mkdirSync, openSync, renameSync, rmSync } from 'node:fs'
import { dirname } from 'node:path'
import { Refusal } from '../../core/refusal.ts'
import { settleAfterRestore } from '../../core/restore.ts'
import { chainFault } from '../chain.ts'
import { readEpoch, writeEpoch } from '../epoch.ts'
import { EMPTY_HEAD } from '../head.ts'
import { machine } from '../machine.ts'
import type { Head } from '../port.ts'
import { Store } from '../store.ts'
import { Witness } from '../witness.ts'
import { copyDatabase, type Database, openDatabase } from './driver.ts'
import { SqliteBackend } from './backend.ts'
import { refusalFor } from './errors.ts'
import { SCHEMA_VERSION, schemaVersion } from './migrate.ts'
import { readHead } from './snapshot.ts'
import { Statements } from './statements.ts'

export interface Report {
  ok: boolean
  problems: string[]
  events: number
  head: Head | undefined
}

const EVENTS_PER_STEP = 1_000
const CHECK_PATIENCE_MS = 5_000

/** Everything that can be known to be wrong: pages, the chain of events, and rows that disagree. */
export function checkSqlite(path: string): Report {
  const report: Report = { ok: false, problems: [], events: 0, head: undefined }
  if (!existsSync(path)) return { ...report, problems: [`There is no database at ${path}`] }
  let db: Database | undefined
  try {
    const witness = new Witness(path)
    const kept = witness.read()
    // Another process that opens or closes the file just now is no damage.
    db = openDatabase(path, { readOnly: true, timeout_ms: CHECK_PATIENCE_MS })
    if (schemaVersion(db) !== SCHEMA_VERSION) {
      if (schemaVersion(db) === 0) witness.check(EMPTY_HEAD, kept)
      report.problems.push(`schema ${schemaVersion(db)} instead of ${SCHEMA_VERSION}`)
    } else {
      db.exec('BEGIN')
      inspect(db, report)
      witness.check(report.head!, kept)
    }
  } catch (error) {
    report.problems.push(refusalFor(error, path).message)
  } finally {
    // A connection is closed for good when its statements are collected; its locks go now.
    if (db?.isTransaction) db.exec('ROLLBACK')
    db?.close()
  }
  return { ...report, ok: report.problems.length === 0 }
}

function inspect(db: Database, report: Report): void {
  const statements = new Statements(db)
  for (const row of db.prepare('PRAGMA integrity_check').all()) {
    const said = String(row['integrity_check'])
    if (said !== 'ok') report.problems.push(said)
  }
  const head = readHead(statements)
  const start = db.prepare('SELECT position, hash FROM checkpoint').get() as unknown as Head
  report.head = head
  report.events = head.position - start.position
  const fault = chainFault(eventsBehind(statements, start.position), start, head)
  if (fault) report.problems.push(fault)
  for (const [question, sentence] of QUESTIONS) {
    const found = db.prepare(question).all() as { id: string }[]
    if (found.length > 0) report.problems.push(`${sentence}: ${found.map((r) => r.id).join(', ')}`)
  }
}

function* eventsBehind(statements: Statements, position: number) {
  for (;;) {
    const events = statements.events(position, EVENTS_PER_STEP)
    yield* events
    if (events.length < EVENTS_PER_STEP) return
    position = events.at(-1)!.position
  }
}

/** What the rules keep true of each other's rows. */
const QUESTIONS = [
  [
    `SELECT id FROM task WHERE (status = 'todo' AND unmet = 0 AND lock_fence IS NULL)
     IS NOT EXISTS (SELECT 1 FROM ready WHERE ready.task_id = task.id) LIMIT 20`,
    'tasks whose readiness is not what their rows say',
  ],
  [
    `SELECT id FROM task WHERE status = 'in_progress' AND NOT EXISTS (
       SELECT 1 FROM lease WHERE name = 'task:' || task.id AND ended_at IS NULL) LIMIT 20`,
    'tasks in progress without a lease',
  ],
  [
    `SELECT id FROM run WHERE ended_at IS NULL AND NOT EXISTS (
       SELECT 1 FROM task WHERE task.run_id = run.id) LIMIT 20`,
    'open runs that no task knows of',
  ],
  [
    `SELECT replace(id, char(10), ' ') AS id FROM memory AS m WHERE EXISTS (
       SELECT value FROM json_each(m.heads) EXCEPT SELECT version FROM (
         SELECT version FROM memory_version WHERE memory_id = m.id EXCEPT SELECT p.value
         FROM memory_version AS v, json_each(v.parents) AS p WHERE v.memory_id = m.id))
     OR EXISTS (SELECT version FROM memory_version WHERE memory_id = m.id EXCEPT
       SELECT value FROM (SELECT value FROM json_each(m.heads) UNION ALL SELECT p.value
         FROM memory_version AS v, json_each(v.parents) AS p WHERE v.memory_id = m.id)) LIMIT 20`,
    'notes whose present is not what their history says',
  ],
  [
    `SELECT replace(id, char(10), ' ') AS id FROM memory_version AS v WHERE kept = 1
     AND NOT EXISTS (SELECT 1 FROM memory_text AS t WHERE t.id = v.id) LIMIT 20`,
    'versions of notes whose text is missing',
  ],
  [
    `SELECT replace(id, char(10), ' ') AS id FROM memory AS m
     WHERE max(0, json_array_length(heads) - 1) <> (SELECT count(*) FROM memory_conflict AS c
       WHERE c.memory_id = m.id AND c.status = 'open') LIMIT 20`,
    'notes whose siblings are in no conflict',
  ],
] as const

/** A consistent copy while others write, checked before it gets its name. */
export async function backupSqlite(path: string, to: string): Promise<Report> {
  if (existsSync(to)) {
    throw new Refusal('conflict', `${to} exists already`, { next: 'Name a new file.' })
  }
  mkdirSync(dirname(to), { recursive: true, mode: 0o700 })
  const partial = `${to}.partial`
  try {
    await copyTo(path, partial, 'DELETE')
    const report = checkSqlite(partial)
    renameSync(partial, to)
    return report
  } catch (error) {
    throw refusalFor(error, path)
  }
}

/**
 * Copies a database into a new file that only this login may read. A backup is one file, without
 * the side files of WAL that reading it would leave beside it.
 */
async function copyTo(from: string, to: string, mode: 'WAL' | 'DELETE'): Promise<void> {
  remove(to)
  closeSync(openSync(to, 'wx', 0o600))
  const source = openDatabase(from, { readOnly: true, timeout_ms: CHECK_PATIENCE_MS })
  await copyDatabase(source, to).finally(() => source.close())
  const copy = openDatabase(to, { readOnly: false })
  copy.exec(mode === 'WAL' ? 'PRAGMA journal_mode = WAL' : 'PRAGMA journal_mode = DELETE')
  copy.close()
}

/**
 * Puts a backup in the place of the store. Every lease in it has ended, and the epoch is raised
 * above the backup's, the replaced store's and any restore before, so that no fence ever given is
 * accepted again. Processes that have the store open see the restored one with their next step.
 */
export async function restoreSqlite(path: string, from: string): Promise<Report> {
  const checked = checkSqlite(from)
  if (!checked.ok) {
    throw new Refusal(
      'damaged',
      `The backup ${from} is not sound: ${checked.problems.join('; ')}`,
      {
        next: 'Use another backup. The store was left as it is.',
      },
    )
  }
  const present = existsSync(path) ? checkSqlite(path) : undefined
  const known = [checked.head, present?.head].map((head) => head?.epoch ?? 0)
  const epoch = Math.max(...known, readEpoch(path)) + 1
  const prepared = `${path}.restoring`
  try {
    await copyTo(from, prepared, 'DELETE')
    await settle(prepared, epoch)
    writeEpoch(path, epoch)
    await replace(path, prepared, present)
  } catch (error) {
    throw refusalFor(error, path)
  } finally {
    remove(prepared)
  }
  return checkSqlite(path)
}

/** The copy is made ready under another name: whoever looks sees the old store or the new one. */
async function settle(path: string, epoch: number): Promise<void> {
  const db = openDatabase(path, { readOnly: false, timeout_ms: CHECK_PATIENCE_MS })
  db.prepare(`UPDATE head SET epoch = ?, fences = 0, boot = '' WHERE id = 1`).run(epoch)
  db.close()
  const backend = new SqliteBackend({ path, busy_timeout_ms: 0, isWitnessed: false })
  const store = new Store(backend, machine)
  await store.write((view) => settleAfterRestore(view, epoch))
  await store.close()
}

/** Goes on with a store that was left, as a restore of itself would. */
export async function reviveSqlite(path: string, head: Head): Promise<void> {
  const epoch = Math.max(head.epoch, readEpoch(path)) + 1
  try {
    writeEpoch(path, epoch)
    await settle(path, epoch)
  } catch (error) {
    throw refusalFor(error, path)
  }
}

async function replace(path: string, prepared: string, present: Report | undefined): Promise<void> {
  if (present?.head) {
    // Through SQLite, so that others who have the store open notice.
    const db = openDatabase(prepared, { readOnly: true })
    await copyDatabase(db, path).finally(() => db.close())
    return
  }
  // A file of its own: the prepared one may still be open here until its statements are collected.
  const fresh = `${path}.fresh`
  await copyTo(prepared, fresh, 'WAL')
  remove(`${path}.damaged`)
  for (const side of ['-wal', '-shm']) {
    if (existsSync(path + side)) renameSync(path + side, `${path}.damaged${side}`)
  }
  // In one step: those who have the store open would take a moment without it for its end.
  if (existsSync(path)) linkSync(path, `${path}.damaged`)
  renameSync(fresh, path)
}

function remove(path: string): void {
  for (const side of ['', '-wal', '-shm', '-journal']) rmSync(path + side, { force: true })
}
