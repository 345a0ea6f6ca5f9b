import { DamageMark, refuseMarked } from '../damage.ts'
import { openDatabase } from './driver.ts'
import { refusalFor } from './errors.ts'

/** Writes the database anew without its free pages. In a file that is there already: see R36. */
export function compactSqlite(path: string, busy_timeout_ms: number): void {
  refuseMarked(new DamageMark(path).read())
  const db = openDatabase(path, { readOnly: false, timeout_ms: busy_timeout_ms })
  try {
    db.exec('PRAGMA synchronous = FULL; VACUUM; PRAGMA wal_checkpoint(TRUNCATE)')
  } catch (error) {
    throw refusalFor(error, path)
  } finally {
    db.close()
  }
}
