import * as fs from 'node:fs'
import { join } from 'node:path'
import { Refusal } from '../core/refusal.ts'
import { uniqueId } from './digest.ts'

/** A new file for this login only, never through a planted link. */
export function openPrivate(path: string): number {
  const { O_APPEND, O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = fs.constants
  return fs.openSync(path, O_APPEND | O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
}

/**
 * Whole or not at all, for this login only, in place of what is there. Unless `synced`, a power cut
 * may take it.
 */
export function writePrivate(
  folder: string,
  name: string,
  text: string | Uint8Array,
  { synced = true } = {},
): void {
  const temporary = join(folder, `${name}.${uniqueId()}`)
  const fd = openPrivate(temporary)
  try {
    const bytes = typeof text === 'string' ? Buffer.from(text) : text
    for (let at = 0; at < bytes.length;) at += fs.writeSync(fd, bytes, at)
    if (synced) fs.fsyncSync(fd)
    fs.renameSync(temporary, join(folder, name))
  } catch (error) {
    fs.rmSync(temporary, { force: true })
    throw error
  } finally {
    fs.closeSync(fd)
  }
}

/**
 * A file that nobody but this login can have written or read; undefined where there is none.
 * Refuses (`forbidden`) one of another login, or that others may have written or read.
 */
export function readPrivate(path: string): string | undefined {
  let fd: number
  try {
    fd = fs.openSync(path, fs.constants.O_RDONLY | fs.constants.O_NOFOLLOW)
  } catch {
    return undefined
  }
  try {
    const { uid, mode } = fs.fstatSync(fd)
    if (uid === process.getuid?.() && (mode & 0o077) === 0) return fs.readFileSync(fd, 'utf8')
    const octal = (mode & 0o777).toString(8)
    throw new Refusal('forbidden', `${path} is not for this login alone (mode ${octal})`, {
      next: 'Remove it. What a server left is made anew by: leasehold up',
      details: { path, uid, mode: octal },
    })
  } finally {
    fs.closeSync(fd)
  }
}
