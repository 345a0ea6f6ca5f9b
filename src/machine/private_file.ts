import { closeSync, constants, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { uniqueId } from './digest.ts'

/**
 * Whole or not at all, for this login only, and never through a planted link. Unless `synced`, a
 * power cut may take it.
 */
export function writePrivate(
  folder: string,
  name: string,
  text: string | Uint8Array,
  { synced = true } = {},
): void {
  const temporary = join(folder, `${name}.${uniqueId()}`)
  const { O_CREAT, O_EXCL, O_NOFOLLOW, O_WRONLY } = constants
  const fd = openSync(temporary, O_CREAT | O_EXCL | O_NOFOLLOW | O_WRONLY, 0o600)
  const bytes = typeof text === 'string' ? Buffer.from(text) : text
  for (let at = 0; at < bytes.length;) at += writeSync(fd, bytes, at)
  if (synced) fsyncSync(fd)
  closeSync(fd)
  renameSync(temporary, join(folder, name))
}
