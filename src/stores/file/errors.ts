import { Refusal } from '../../core/refusal.ts'

/** What the system said, as a typed refusal that says what to do. Bugs stay what they are. */
export function refusalFor(error: unknown, dir: string): Error {
  if (error instanceof Refusal) return error
  if (!(error instanceof Error)) return new Error(String(error))
  switch (codeOf(error)) {
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return new Refusal('unavailable', `The disk is full: ${dir} cannot take another state`, {
        next: 'Free some space. Nothing that was acknowledged is lost; reads go on.',
      })
    case 'EROFS':
    case 'EACCES':
    case 'ENOTDIR':
    case 'EEXIST':
      return new Refusal('unavailable', `The store ${dir} cannot be written: ${error.message}`, {
        next: 'Check that it is a folder and writable, or point LEASEHOLD_DIR elsewhere.',
      })
    case 'EPERM':
    case 'ENOTSUP':
    case 'ENOSYS':
    case 'EMLINK':
    case 'EXDEV':
      return new Refusal('unavailable', `The file system of ${dir} refused: ${error.message}`, {
        next: 'A file store needs hard links: use another file system, or SQLite.',
      })
    case undefined:
      return error
    default:
      return new Refusal('unavailable', `The store ${dir} did not answer: ${error.message}`, {
        next: 'Try again; if it stays so: leasehold doctor',
      })
  }
}

export function codeOf(error: unknown): string | undefined {
  const code = (error as NodeJS.ErrnoException | null)?.code
  const system = typeof (error as NodeJS.ErrnoException | null)?.syscall === 'string'
  return system ? code : undefined
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
