import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { Refusal } from '../../core/refusal.ts'
import { diskFull, fileRefusal, systemCode, unanswered, unwritable } from '../errors.ts'
import { RESULT, resultCode } from './driver.ts'

/** Of the index that SQLite makes beside a database, and what one commit takes. */
const ROOM_BYTES = 128 * 1024

/** Without room for that index, SQLite says no more than "disk I/O error". */
function hasRoom(path: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(path))
    return bavail * bsize >= ROOM_BYTES
  } catch {
    return true
  }
}

/** What SQLite said, as a typed refusal that says what to do. Bugs stay what they are. */
export function refusalFor(error: unknown, path: string): Error {
  if (error instanceof Refusal) return error
  const said = error instanceof Error ? error.message : String(error)
  if (systemCode(error)) return fileRefusal(error, path)
  switch (resultCode(error)) {
    case RESULT.full:
      return diskFull(path)
    case RESULT.readonly:
    case RESULT.cantopen:
      return unwritable(path, said)
    case RESULT.corrupt:
    case RESULT.notadb:
      return new Refusal('damaged', `The store ${path} is damaged: ${said}`, {
        next: 'Nothing is written until it is mended: leasehold db restore BACKUP',
      })
    case RESULT.io:
      return hasRoom(path) ? unanswered(path, said) : diskFull(path)
    case RESULT.busy:
    case RESULT.locked:
      return unanswered(path, said)
    default:
      return error instanceof Error ? error : new Error(said)
  }
}
