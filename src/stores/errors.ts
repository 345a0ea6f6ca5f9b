import { Refusal } from '../core/refusal.ts'

/** What the operating system said about a file of the store, as a typed refusal. */
export function fileRefusal(error: unknown, path: string): Error {
  const { code, message } = error as NodeJS.ErrnoException
  switch (code) {
    case 'ENOSPC':
    case 'EDQUOT':
      return new Refusal('unavailable', `The disk is full: ${path} cannot grow`, {
        next: 'Free some space. Nothing that was acknowledged is lost; reads go on.',
      })
    case 'EACCES':
    case 'EPERM':
    case 'EROFS':
    case 'ENOTDIR':
    case 'ELOOP':
      return new Refusal('unavailable', `The store ${path} cannot be written: ${message}`, {
        next: 'Check that the folder exists and is writable, or point LEASEHOLD_DIR elsewhere.',
      })
    case 'EIO':
      return new Refusal('unavailable', `The disk did not answer for ${path}: ${message}`, {
        next: 'Try again; if it stays so, look at the disk.',
      })
    default:
      return error as Error
  }
}
