import { Refusal } from '../../core/refusal.ts'
import { fileRefusal, systemCode } from '../../machine/errors.ts'

/** What the system said, as a typed refusal; that links cannot be made means something here. */
export function refusalFor(error: unknown, dir: string): Error {
  if (error instanceof Refusal) return error
  switch (systemCode(error)) {
    case 'EPERM':
    case 'ENOTSUP':
    case 'ENOSYS':
    case 'EMLINK':
    case 'EXDEV':
      return new Refusal('invalid', `The file system of ${dir} refused: ${String(error)}`, {
        next: 'A file store needs hard links: use another file system, or SQLite.',
      })
    default:
      return fileRefusal(error, dir)
  }
}

export function damaged(dir: string, why: string): Refusal {
  return new Refusal('damaged', `The store ${dir} is damaged: ${why}`, {
    next: 'Nothing is written until it is mended: leasehold db restore --last-good',
  })
}

export function stuck(dir: string, busy_timeout_ms: number): Refusal {
  const seconds = busy_timeout_ms / 1000
  return new Refusal('unavailable', `Nobody could publish a state in ${dir} for ${seconds} s`, {
    next: 'Look for a program that removes files there (leasehold doctor), then try again.',
  })
}

/** The bound of a document that is rewritten with every commit. */
export const TASKS_MAX = 5_000

export function tooManyTasks(): Refusal {
  return new Refusal('unavailable', `A file store keeps at most ${TASKS_MAX} tasks`, {
    next: 'Move to SQLite or PostgreSQL: leasehold db copy. The tasks that are here stay usable.',
    details: { tasks_max: TASKS_MAX },
  })
}
