import { closeSync, existsSync, fsyncSync, openSync, readFileSync, renameSync, rmSync, writeSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { Refusal } from '../core/refusal.ts'

/**
 * The highest epoch that any store in this folder has had, kept beside it in a file of its own: a
 * restore must raise the fences above those of the store it replaces, even when that is unreadable
 * or gone.
 */
function fileFor(storePath: string): string {
  return join(dirname(storePath), 'epoch')
}

export function readEpoch(storePath: string): number {
  const file = fileFor(storePath)
  if (!existsSync(file)) return 0
  const epoch = Number(readFileSync(file, 'utf8').trim() || Number.NaN)
  if (Number.isSafeInteger(epoch) && epoch >= 0) return epoch
  throw new Refusal('damaged', `${file} does not hold a number`, {
    next: 'Write the number of restores this store has seen into it; a higher one does no harm.',
  })
}

/** Durable before the restored store is put in place: an epoch may be skipped, never repeated. */
export function writeEpoch(storePath: string, epoch: number): void {
  const file = fileFor(storePath)
  const temporary = `${file}.${process.pid}`
  rmSync(temporary, { force: true })
  const fd = openSync(temporary, 'wx', 0o600)
  writeSync(fd, String(epoch))
  fsyncSync(fd)
  closeSync(fd)
  renameSync(temporary, file)
  const folder = openSync(dirname(file), 'r')
  fsyncSync(folder)
  closeSync(folder)
}
