import { randomBytes } from 'node:crypto'
import { rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { sha256 } from '../../machine/digest.ts'
import { host, ownProcess, processFact, seat } from '../../machine/process.ts'
import { type Listing, statePath } from './folder.ts'

/** States that stay: what a damaged newest one falls back on, and what slow readers still open. */
const STATES_KEPT = 16

/** A temporary file of a process that cannot be asked is a leftover after this long. */
const FOREIGN_MS = 3600_000

const TEMPORARY_NAME = /^tmp\.([0-9a-f]{8})\.(\d+)\.(\d+)\.[0-9a-f]+$/

const seatMark = () => sha256(seat).slice(0, 8)

/** Names the process that writes it, so that others can tell when nobody will finish it. */
export function temporaryPath(dir: string): string {
  const { pid, start } = ownProcess()
  return join(dir, `tmp.${seatMark()}.${pid}.${start}.${randomBytes(6).toString('hex')}`)
}

/**
 * Removes old states, lowest first, and temporary files of the dead. Only called after a commit
 * was read back. That something cannot be removed now is no reason to fail: the next one tries.
 */
export function prune(dir: string, listing: Listing): void {
  try {
    const old = listing.numbers.slice(STATES_KEPT).toReversed()
    for (const number of old) rmSync(statePath(dir, number), { force: true })
    for (const name of listing.names) {
      if (isLeftover(dir, name)) rmSync(join(dir, name), { force: true })
    }
  } catch {
    // Kept until the next commit.
  }
}

function isLeftover(dir: string, name: string): boolean {
  const [, mark, pid, start] = TEMPORARY_NAME.exec(name) ?? []
  if (mark === undefined) return false
  if (mark === seatMark()) {
    return processFact({ host, seat, pid: Number(pid), start: Number(start) }) === 'dead'
  }
  const stat = statSync(join(dir, name), { throwIfNoEntry: false })
  return stat !== undefined && Date.now() - stat.mtimeMs > FOREIGN_MS
}
