import { Refusal } from '../core/refusal.ts'
import type { Head } from './port.ts'
import { isBehind } from './witness.ts'

/** That this process cannot serve its store any more: a daemon ends, and those who asked go on. */
const ENDS = { stopping: true }

/** Whether a refusal says that this process has to end: whatever is asked next, it stays so. */
export const isEnd = (error: unknown) =>
  error instanceof Refusal && error.details['stopping'] === true

/**
 * Refuses (`unavailable`) a store that is not what this process knew: where it saw `seen`, another
 * one begins now. A restored one goes on (its epoch is higher), and so does a whole copy.
 * `hashAt` gives the hash of an event that is still there.
 */
export function refuseStranger(
  path: string,
  head: Head,
  seen: Head | undefined,
  hashAt: (position: number) => string | undefined,
): void {
  if (!seen || head.epoch > seen.epoch) return
  const hash = head.position === seen.position ? head.hash : hashAt(seen.position)
  if (isBehind(head, seen) || (hash !== seen.hash && seen.position > 0)) throw stranger(path)
}

/** Somebody put another store where this process had opened one. */
export function stranger(path: string): Refusal {
  return new Refusal('unavailable', `Another store stands at ${path} than this process opened`, {
    next: 'Start it anew to use that one, or put the former one back: leasehold db restore BACKUP',
    details: { ...ENDS, path },
  })
}

/** The store was removed under a process that had it open. */
export function gone(path: string): Refusal {
  return new Refusal('unavailable', `${path} was removed while this process had it open`, {
    next: 'Put a backup in its place: leasehold db restore BACKUP. Nothing is written before.',
    details: { ...ENDS, path },
  })
}

/** Files that belong to the store were removed under a process that had them open. */
export function sidesGone(path: string): Refusal {
  const what = `The files ${path}-wal and -shm were removed while this process had them open`
  return new Refusal('unavailable', what, {
    next: 'Start it anew. They are part of the store: what is in them is nowhere else.',
    details: { ...ENDS, path },
  })
}

/** What a newer program wrote, perhaps while this process had it open. `what` is its version. */
export function outgrown(path: string, what: string): Refusal {
  return new Refusal('unavailable', `${path} was written by a newer leasehold (${what})`, {
    next:
      'Upgrade leasehold, and restart what still runs of the older version: it would misread ' +
      'what it finds, or drop part of it.',
    details: { ...ENDS, path },
  })
}

/** Refuses the schema of a newer program; `known` is that of this one. */
export function refuseNewerSchema(path: string, found: number, known: number): number {
  if (found > known) throw outgrown(path, `schema ${found}, and this one knows ${known}`)
  return found
}
