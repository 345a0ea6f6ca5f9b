import { Refusal } from '../core/refusal.ts'

/** The code of an error that the operating system gave; undefined for any other error. */
export function systemCode(error: unknown): string | undefined {
  const { code, syscall } = (error ?? {}) as NodeJS.ErrnoException
  return typeof syscall === 'string' ? code : undefined
}

/**
 * What the operating system said about a file of the store, as a typed refusal that says what to
 * do. Bugs stay what they are.
 */
export function fileRefusal(error: unknown, path: string): Error {
  const said = error instanceof Error ? error.message : String(error)
  switch (systemCode(error)) {
    case undefined:
      return error instanceof Error ? error : new Error(said)
    case 'ENOSPC':
    case 'EDQUOT':
    case 'EFBIG':
      return diskFull(path)
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOTDIR':
    case 'ENOENT':
    case 'EEXIST':
    case 'ELOOP':
      return unwritable(path, said)
    default:
      return unanswered(path, said)
  }
}

export function diskFull(path: string): Refusal {
  return new Refusal('unavailable', `The disk is full: ${path} cannot grow`, {
    next: 'Free some space. Nothing that was acknowledged is lost; reads go on.',
  })
}

export function unwritable(path: string, said: string): Refusal {
  return new Refusal('unavailable', `The store ${path} cannot be written: ${said}`, {
    next: 'Check that its folder exists and is writable, or point LEASEHOLD_DIR elsewhere.',
  })
}

export function unanswered(
  path: string,
  said: string,
  next = 'Try again; if it stays so: leasehold doctor',
): Refusal {
  return new Refusal('unavailable', `The store ${path} did not answer: ${said}`, { next })
}
