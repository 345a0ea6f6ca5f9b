import type { Lease } from '../../core/schema/lock.ts'
import type { AnyRow, TableName } from '../../core/schema/schema.ts'
import { Refusal } from '../../core/refusal.ts'
import { machine } from '../../machine/machine.ts'
import type { Contents } from '../port.ts'
import { TASKS_MAX } from '../file/errors.ts'

/** Locks of our own begin so, and names are read in the order of their bytes. */
const ROLES = 'leasehold:'
const ROLES_MAX = 1_000

/**
 * Refuses (`held`) a source that a daemon or a dispatcher serves: it would go on there. One whose
 * process is proved dead, or whose time is up, is gone.
 */
export async function refuseServed(contents: Contents, now: number, shown: string): Promise<void> {
  const rows = (await contents.rows('lease', ROLES, ROLES_MAX)) as Lease[]
  const served = rows.find(({ name, ended_at, expires_ms, process }) => {
    if (!/^leasehold:(?:daemon|dispatcher)(?::|$)/.test(name)) return false
    const isDead = process !== null && machine.process(process) === 'dead'
    return ended_at === null && expires_ms > now && !isDead
  })
  if (!served) return
  const { process, holder } = served
  const who = served.name.startsWith('leasehold:daemon') ? 'server' : 'dispatcher'
  const where = process ? ` (PID: ${process.pid} on ${process.host})` : ''
  throw new Refusal('held', `A leasehold ${who} is running on ${shown}${where}`, {
    next: 'Stop it, then copy: what it did meanwhile would be missing from the copy.',
    details: { holder, pid: process?.pid ?? null, host: process?.host ?? null },
  })
}

export function missing(shown: string): Refusal {
  return new Refusal('not_found', `There is no store at ${shown}`, {
    next: 'Name the store to copy: --from sqlite:PATH, file:FOLDER or postgres://…',
  })
}

export function notEmpty(shown: string): Refusal {
  return new Refusal('conflict', `${shown} is not empty, so nothing is copied there`, {
    next: 'Copy to a new place: another file, folder, or ?schema=NAME of a database.',
  })
}

export function sameStore(shown: string): Refusal {
  return new Refusal('invalid', `--from and --to are the same store: ${shown}`, {
    next: 'Name another one to copy to.',
  })
}

export function changedMeanwhile(shown: string): Refusal {
  return new Refusal('conflict', `${shown} was written while it was copied`, {
    next: 'Nothing was copied. Stop what writes there, then copy again.',
  })
}

export function brokenChain(shown: string, fault: string): Refusal {
  return new Refusal('damaged', `${shown} is damaged: ${fault}`, {
    next: 'Nothing was copied. Restore a backup of it first: leasehold db restore',
  })
}

export function differs(shown: string, what: string): Refusal {
  return new Refusal('damaged', `The copy in ${shown} is not what was read: ${what}`, {
    next: 'Look for a fault of its disk, or a trigger in its database. The source is as it was.',
  })
}

/** A commit that fails may be on disk or not. */
export function unknownOutcome(shown: string, said: string): Refusal {
  return new Refusal('unavailable', `Nobody can say whether ${shown} has the copy: ${said}`, {
    next: 'Copy again: it is all there, and you are told that it is not empty, or none of it.',
    details: { outcome: 'unknown' },
  })
}

/** Only what is enqueued has rows here; limits and shares also count what agents claim. */
const QUEUE: ReadonlySet<TableName> = new Set(['lane', 'parking'])

/**
 * Refuses (`invalid`) what a file store does not keep: queue, memory, more tasks than it may.
 * `before`: so many rows of that table are there already.
 */
export function refuseInFile(table: TableName, rows: AnyRow[], before: number): void {
  const isQueued = rows.some((row) => table === 'task' && 'queue' in row && row.queue !== null)
  if (QUEUE.has(table) || isQueued)
    throw unkept('The source has a queue, which a file store does not keep')
  if (table === 'memory')
    throw unkept('The source has shared memory, which a file store does not keep')
  if (table !== 'task' || before + rows.length <= TASKS_MAX) return
  throw unkept(`A file store keeps at most ${TASKS_MAX} tasks`)
}

function unkept(what: string): Refusal {
  return new Refusal('invalid', what, {
    next: 'Copy to SQLite or PostgreSQL: --to sqlite:PATH, or --to postgres://…',
  })
}
