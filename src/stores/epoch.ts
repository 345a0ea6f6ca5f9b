import * as fs from 'node:fs'
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
  if (!fs.existsSync(file)) return 0
  const epoch = Number(fs.readFileSync(file, 'utf8').trim() || Number.NaN)
  if (Number.isSafeInteger(epoch) && epoch >= 0) return epoch
  throw new Refusal('damaged', `${file} does not hold a number`, {
    next: 'Write the number of restores this store has seen into it; a higher one does no harm.',
  })
}

/** Durable before the restored store is put in place: an epoch may be skipped, never repeated. */
export function writeEpoch(storePath: string, epoch: number): void {
  const file = fileFor(storePath)
  const temporary = `${file}.${process.pid}`
  fs.rmSync(temporary, { force: true })
  const fd = fs.openSync(temporary, 'wx', 0o600)
  fs.writeSync(fd, String(epoch))
  fs.fsyncSync(fd)
  fs.closeSync(fd)
  fs.renameSync(temporary, file)
  const folder = fs.openSync(dirname(file), 'r')
  fs.fsyncSync(folder)
  fs.closeSync(folder)
}
