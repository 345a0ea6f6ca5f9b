import { Refusal } from '../../core/refusal.ts'
import { fileRefusal } from '../errors.ts'
import { RESULT, resultCode } from './driver.ts'

/** What SQLite said, as a typed refusal that says what to do. Bugs stay what they are. */
export function refusalFor(error: unknown, path: string): Error {
  if (error instanceof Refusal) return error
  const said = error instanceof Error ? error.message : String(error)
  if ((error as NodeJS.ErrnoException).syscall) return fileRefusal(error, path)
  switch (resultCode(error)) {
    case RESULT.full:
      return new Refusal('unavailable', `The disk is full: ${path} cannot grow`, {
        next: 'Free some space. Nothing that was acknowledged is lost; reads go on.',
      })
    case RESULT.readonly:
    case RESULT.cantopen:
      return new Refusal('unavailable', `The store ${path} cannot be opened for writing: ${said}`, {
        next: 'Check that the folder exists and is writable, or point LEASEHOLD_DIR elsewhere.',
      })
    case RESULT.corrupt:
    case RESULT.notadb:
      return new Refusal('damaged', `The store ${path} is damaged: ${said}`, {
        next: 'Nothing is written until it is mended: leasehold db restore BACKUP',
      })
    case RESULT.io:
    case RESULT.busy:
    case RESULT.locked:
      return new Refusal('unavailable', `The store ${path} did not answer: ${said}`, {
        next: 'Try again; if it stays so: leasehold doctor',
      })
    default:
      return error instanceof Error ? error : new Error(said)
  }
}
