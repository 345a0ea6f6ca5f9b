import { join } from 'node:path'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'

/** Whether somebody is in a transaction just now, who may have been stopped in it. */
export function isBeingWritten(state: string): boolean {
  const db = openDatabase(join(state, 'leasehold.db'), { readOnly: false, timeout_ms: 0 })
  try {
    db.exec('BEGIN IMMEDIATE; ROLLBACK')
    return false
  } catch {
    return true
  } finally {
    db.close()
  }
}
