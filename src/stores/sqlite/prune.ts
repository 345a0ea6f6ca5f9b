import { DamageMark, refuseMarked } from '../damage.ts'
import { beginPatiently } from './busy.ts'
import { openDatabase } from './driver.ts'
import { refusalFor } from './errors.ts'

/** Which events stay: at most so many, and none from before that time. */
export interface Keep {
  events: number
  since: Date
}

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
): Promise<number> {
  refuseMarked(new DamageMark(path).read())
  const db = openDatabase(path, { readOnly: false })
  try {
    db.exec('PRAGMA synchronous = FULL')
    await beginPatiently(db, busy_timeout_ms)
    const cut = db
      .prepare(
        `SELECT position, hash FROM event
         WHERE position <= (SELECT position FROM head) - ? OR at < ?
         ORDER BY position DESC LIMIT 1`,
      )
      .get(keep.events, keep.since.toISOString())
    db.exec(FORGET_VECTORS)
    if (!cut) {
      db.exec('COMMIT')
      return 0
    }
    const { position, hash } = cut as { position: number; hash: string }
    const { changes } = db.prepare('DELETE FROM event WHERE position <= ?').run(position)
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
