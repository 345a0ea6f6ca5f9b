import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { Refusal } from '../../core/refusal.ts'
import { diskFull, fileRefusal, systemCode, unanswered, unwritable } from '../../machine/errors.ts'
import { Unreadable } from './codec.ts'
import { damaged } from '../damage.ts'
import { isShortRead, RESULT, resultCode } from './driver.ts'

/** What SQLite calls a mistake in a statement; ours have none in a store that is whole. */
const MISSING = /^(?:no such (?:table|column|index)|vtable constructor failed|.* already exists$)/
/** An event comes behind the newest one: if there is one already, the head is an old one. */
const TAKEN = /^UNIQUE constraint failed: event\.position/

/** The one place that tells damage from all else that may go wrong. */
function isDamage(error: unknown, said: string): boolean {
  if (error instanceof Unreadable || isShortRead(error)) return true
  switch (resultCode(error)) {
    case RESULT.corrupt:
    case RESULT.notadb:
      return true
    case RESULT.error:
      return MISSING.test(said) || said.startsWith('duplicate column name')
    case RESULT.constraint:
      return TAKEN.test(said)
    default:
      return false
  }
}

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
  if (isDamage(error, said)) return damaged(path, said)
  switch (resultCode(error)) {
    case RESULT.full:
      return diskFull(path)
    case RESULT.readonly:
    case RESULT.cantopen:
      return unwritable(path, said)
    case RESULT.io:
      return hasRoom(path) ? unanswered(path, said) : diskFull(path)
    case RESULT.busy:
    case RESULT.locked:
      return unanswered(path, said)
    default:
      return error instanceof Error ? error : new Error(said)
  }
}
