import type { Ready, Task } from '../../core/schema/task.ts'
import { existsSync } from 'node:fs'
import { inFront, readyRowsOf } from '../../core/tasks/ready.ts'
import { chainFault, EMPTY_HEAD } from '../writer/chain.ts'
import { DamageMark } from '../damage.ts'
import { sha256 } from '../../machine/digest.ts'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { FENCES_PER_EPOCH } from '../writer/layer.ts'
import type { CheckReport, Head } from '../port.ts'
import { Witness } from '../witness.ts'
import { type Database, openDatabase, RESULT, resultCode } from './driver.ts'
import { refusalFor } from './errors.ts'
import { applyScripts, refuseNewer, SCHEMA_VERSION } from './migrate.ts'
import { makeTables, shapeOf } from './shape.ts'
import { readHead } from './snapshot.ts'
import { Statements } from './statements.ts'
import { strangeTables } from './sums.ts'

const EVENTS_PER_STEP = 1_000
/** Rows that are named; one that is wrong is seldom alone. */
const NAMED_MAX = 20
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
  const head = readHead(statements)
  const start = db.prepare('SELECT position, hash FROM checkpoint').get() as unknown as Head
  report.head = head
  report.events = head.position - start.position
  const fault = chainFault(eventsBehind(statements, start.position), start, head)
  if (fault) problems.push(fault)
  if (found !== SCHEMA_VERSION) return
  for (const [question, sentence] of QUESTIONS) {
    const rows = db.prepare(`${question} LIMIT ${NAMED_MAX}`).all() as { id: string }[]
    if (rows.length > 0) problems.push(`${sentence}: ${rows.map(({ id }) => id).join(', ')}`)
  }
  problems.push(...lostReadiness(statements), ...otherTexts(statements))
  problems.push(...strangeFences(statements, head), ...strangeTables(statements))
}

function* eventsBehind(statements: Statements, position: number) {
  for (;;) {
    const events = statements.events(position, EVENTS_PER_STEP)
    yield* events
    if (events.length < EVENTS_PER_STEP) return
    position = events.at(-1)!.position
  }
}

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

/** Ready rows follow from tasks; the first of each list of a user stands in the scope, too. */
function* lostReadiness(statements: Statements): Generator<string> {
  const there = new Map<string, Ready>()
  for (const { row } of statements.all('ready')) there.set((row as Ready).key, row as Ready)
  const wrong = new Set<string>()
  const heads = new Map<string, Ready>()
  const follows = (ready: Ready) => {
    const isThere = isSame(ready, there.get(ready.key))
    there.delete(ready.key)
    return isThere
  }
  for (const { row } of statements.all('task')) {
    for (const ready of readyRowsOf(row as Task)) {
      const front = inFront(ready)
      // What an older program wrote stands in front alone, whether it is the first or not.
      const isOld = front !== undefined && !there.has(ready.key)
      if (!(isOld ? follows(front) : follows(ready))) wrong.add(ready.task_id)
      const head = heads.get(ready.scope)
      if (front && !isOld && !(head && head.key < front.key)) heads.set(ready.scope, front)
    }
  }
  for (const head of heads.values()) if (!follows(head)) wrong.add(head.task_id)
  for (const { task_id } of there.values()) wrong.add(task_id)
  if (wrong.size === 0) return
  const named = [...wrong].slice(0, NAMED_MAX).join(', ')
  yield `tasks whose readiness is not what their rows say: ${named}`
}

function isSame(one: Ready, other: Ready | undefined): boolean {
  const { scope, rank, task_id, high } = one
  const isHere = other?.scope === scope && other.rank === rank
  return isHere && other.task_id === task_id && other.high === high
}

/** Every version of a note knows the hash of its text. */
function* otherTexts(statements: Statements): Generator<string> {
  const text = `SELECT replace(v.id, char(10), ' ') AS id, v.hash, t.content
    FROM memory_version AS v JOIN memory_text AS t USING (id) WHERE v.kept = 1`
  const wrong: string[] = []
  for (const row of statements.sql(text).iterate()) {
    const { id, hash, content } = row as { id: string; hash: string; content: string }
    if (sha256(content) !== hash && wrong.length < NAMED_MAX) wrong.push(id)
  }
  if (wrong.length > 0) yield `notes whose text is not what was written: ${wrong.join(', ')}`
}

function* strangeFences(statements: Statements, { epoch, fences }: Head): Generator<string> {
  const row = statements.sql('SELECT max(fence) AS fence FROM lease').get()
  const highest = epoch * FENCES_PER_EPOCH + fences
  const found = Number(row?.['fence'] ?? 0)
  if (found > highest) yield `a lease has fence ${found}, but only ${highest} was given`
}

/** What the rules keep true of each other's rows. An inner query without an index is read once. */
const QUESTIONS = [
  [
    `SELECT id FROM task WHERE status = 'in_progress' AND NOT EXISTS (
       SELECT 1 FROM lease WHERE name = 'task:' || task.id AND ended_at IS NULL)`,
    'tasks in progress without a lease',
  ],
  [
    `SELECT id FROM run WHERE ended_at IS NULL
     AND id NOT IN (SELECT run_id FROM task WHERE run_id IS NOT NULL)`,
    'open runs that no task knows of',
  ],
  [
    `SELECT replace(id, char(10), ' ') AS id FROM memory AS m WHERE EXISTS (
       SELECT value FROM json_each(m.heads) EXCEPT SELECT version FROM (
         SELECT version FROM memory_version WHERE memory_id = m.id EXCEPT SELECT p.value
         FROM memory_version AS v, json_each(v.parents) AS p WHERE v.memory_id = m.id))
     OR EXISTS (SELECT version FROM memory_version WHERE memory_id = m.id EXCEPT
       SELECT value FROM (SELECT value FROM json_each(m.heads) UNION ALL SELECT p.value
         FROM memory_version AS v, json_each(v.parents) AS p WHERE v.memory_id = m.id))`,
    'notes whose present is not what their history says',
  ],
  [
    `SELECT replace(id, char(10), ' ') AS id FROM memory_version AS v WHERE kept = 1
     AND NOT EXISTS (SELECT 1 FROM memory_text AS t WHERE t.id = v.id)`,
    'versions of notes whose text is missing',
  ],
  [
    `SELECT replace(id, char(10), ' ') AS id FROM memory AS m
     WHERE max(0, json_array_length(heads) - 1) <> (SELECT count(*) FROM memory_conflict AS c
       WHERE c.memory_id = m.id AND c.status = 'open')`,
    'notes whose siblings are in no conflict',
  ],
  [
    `SELECT replace(id, char(10), ' ') AS id FROM memory WHERE live = 1
     AND id NOT IN (SELECT id FROM memory_row)`,
    'notes that cannot be found by their words',
  ],
] as const
