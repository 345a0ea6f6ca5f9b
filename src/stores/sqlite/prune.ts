import { instantOf } from '../clock.ts'
import { type EventMark, type Keep, lastToGo } from '../event_age.ts'
import type { Head, Machine } from '../port.ts'
import { beginPatiently } from './busy.ts'
import { type Database, openDatabase } from './driver.ts'
import { refusalFor } from './errors.ts'

/** Of texts that no version says any more, and of a provider that no longer counts. */
const FORGET_VECTORS = `DELETE FROM vector
  WHERE NOT EXISTS (SELECT 1 FROM memory_version AS v WHERE v.hash = vector.hash AND v.kept = 1)
  OR provider <> (SELECT provider FROM embedding WHERE cursor IS NULL)`

/**
 * Forgets old events. The last one that goes is remembered as the checkpoint, where the chain of
 * the others begins, so that the chain can still be verified and no reader takes the gap for loss.
 */
export async function pruneSqlite(
  path: string,
  keep: Keep,
  busy_timeout_ms: number,
  machine: Machine,
): Promise<number> {
  const db = openDatabase(path, { readOnly: false })
  try {
    db.exec('PRAGMA synchronous = FULL')
    await beginPatiently(db, busy_timeout_ms)
    const cut = db
      .prepare(
        'SELECT position, hash FROM event WHERE position <= ? ORDER BY position DESC LIMIT 1',
      )
      .get(lastToGo(keep, ...markEvents(db, machine)))
    db.exec(FORGET_VECTORS)
    if (!cut) {
      db.exec('COMMIT')
      return 0
    }
    const { position, hash } = cut as { position: number; hash: string }
    const { changes } = db.prepare('DELETE FROM event WHERE position <= ?').run(position)
    db.prepare('DELETE FROM event_mark WHERE position < ?').run(position)
    db.prepare('UPDATE checkpoint SET position = ?, hash = ?').run(position, hash)
    db.exec('COMMIT')
    return changes
  } catch (error) {
    throw refusalFor(error, path)
  } finally {
    if (db.isTransaction) db.exec('ROLLBACK')
    db.close()
  }
}

/** Remembers how far events have come by now; of a position, only when it was first reached. */
function markEvents(
  db: Database,
  machine: Machine,
): [head: { position: number; now_ms: number }, marks: EventMark[]] {
  const head = db.prepare('SELECT * FROM head').get() as unknown as Head
  const { now: now_ms } = instantOf(head, machine).instant
  db.prepare('INSERT OR IGNORE INTO event_mark VALUES (?, ?)').run(head.position, now_ms)
  const marks = db.prepare('SELECT position, at_ms FROM event_mark').all() as unknown as EventMark[]
  return [{ position: head.position, now_ms }, marks]
}
