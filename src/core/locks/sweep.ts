import type { Cursor } from '../schema/indexes.ts'
import type { Lease, Ticket } from '../schema/lock.ts'
import { settleLease } from './lease.ts'
import { LOOKS_MAX, SWEEP_MAX } from '../bounds.ts'
import { isGone, leaveLines } from './line.ts'
import { processKey } from '../rows.ts'
import { type Fact, NeedsKill, type View } from '../view.ts'

/** How far sweeps have come: each goes on where the one before it stopped. */
export interface SweepProgress {
  /** Among leases whose time is up: behind those that could not be settled. */
  due?: Cursor | undefined
  /** Among waiters that fell silent: behind those whose process lives. */
  tickets_due?: Cursor | undefined
  /** Among what processes of this seat have; null: all of them were looked at. */
  leases?: Cursor | null | undefined
  tickets?: Cursor | null | undefined
}

interface Bounds {
  /** How much may be cleared away. What is live does not count. */
  clears: number
  /** How many processes, and leases that cannot be settled yet, may be looked at. */
  looks: number
}

const PER_WRITE: Readonly<Bounds> = { clears: SWEEP_MAX, looks: LOOKS_MAX }

/** For reads: they see what is left when sweeps have gone through everything. */
export const UNBOUNDED: Readonly<Bounds> = { clears: Infinity, looks: Infinity }

interface Swept {
  /** Leases whose command the caller has to stop first, outside of any transaction. */
  orphaned: Lease[]
  progress: SweepProgress
  /** Whether a bound was reached: what is left is for the next sweep. */
  more: boolean
}

/**
 * Clears away what is over: leases and waiters whose time is up and, at `seat`, those whose process
 * died there. Bounded by what it clears and whom it asks about, never by what it passes over: the
 * next sweep goes on from there, so that nothing hides what is behind it.
 */
export function sweep(
  view: View,
  seat: string | null,
  from: SweepProgress = {},
  bounds: Readonly<Bounds> = PER_WRITE,
): Swept {
  const orphaned: Lease[] = []
  const left = { ...bounds }
  const clear = (lease: Lease) => settleQuietly(view, lease, orphaned)
  const overdue = (after?: Cursor) => view.due('leases_by_expiry', '', view.now, after)
  const due = sweepOverdue(overdue, from.due, left, clear, expiryOf)
  const silent = (after?: Cursor) => view.due('tickets_due', '', view.now - 1, after)
  const clearSilent = (ticket: Ticket) => clearTicket(view, ticket)
  const tickets_due = sweepOverdue(silent, from.tickets_due, left, clearSilent, dueOf)
  const at = (cursor: Cursor | null | undefined, look: (after?: Cursor) => Cursor | null) =>
    seat === null || cursor === null ? cursor : look(cursor)
  const leases = at(from.leases, (after) =>
    sweepDead(view, (behind) => view.scan('leases_seated_at', seat!, behind), after, left, clear),
  )
  const tickets = at(from.tickets, (after) =>
    sweepDead(
      view,
      (behind) => view.scan('tickets_seated_at', seat!, behind),
      after,
      left,
      (one) => clearTicket(view, one),
    ),
  )
  const more = left.clears <= 0 || left.looks <= 0
  return { orphaned, progress: { due, tickets_due, leases, tickets }, more }
}

const expiryOf = ({ expires_ms, name }: Lease): Cursor => ({ order: expires_ms, key: name })
const dueOf = ({ due_ms, id }: Ticket): Cursor => ({ order: due_ms!, key: id })

/** Clears what is overdue. Undefined at the end: the next sweep begins with the first again. */
function sweepOverdue<Row>(
  rowsBehind: (after: Cursor | undefined) => Iterable<Row>,
  after: Cursor | undefined,
  left: Bounds,
  clear: (row: Row) => boolean,
  placeOf: (row: Row) => Cursor,
): Cursor | undefined {
  let at = after
  for (const row of rowsBehind(after)) {
    if (left.clears <= 0 || left.looks <= 0) return at
    if (clear(row)) left.clears -= 1
    else left.looks -= 1
    at = placeOf(row)
  }
  return undefined
}

/** Rows of one process that are read before its rest is passed over. */
const ALIKE_MAX = 8

/**
 * What dead processes have left. Each process is asked about once, however much it has; that of a
 * living one is passed over. Returns where to go on, null at the end.
 */
function sweepDead<Row extends Lease | Ticket>(
  view: View,
  rowsBehind: (after: Cursor | undefined) => Iterable<Row>,
  from: Cursor | undefined,
  left: Bounds,
  clear: (row: Row) => boolean,
): Cursor | null {
  for (let after = from; ;) {
    const passed = sweepUntilAlike(view, rowsBehind(after), left, clear)
    if (passed === null || left.looks <= 0 || left.clears <= 0) return passed
    after = passed
  }
}

function sweepUntilAlike<Row extends Lease | Ticket>(
  view: View,
  rows: Iterable<Row>,
  left: Bounds,
  clear: (row: Row) => boolean,
): Cursor | null {
  let process = ''
  let fact: Fact = 'unknown'
  let alike = 0
  for (const row of rows) {
    const next = processKey(row.process!)
    if (next !== process) {
      if (left.looks <= 0) return { order: next, key: '' }
      left.looks -= 1
      process = next
      fact = view.process(row.process!)
      alike = 0
    }
    alike += 1
    if (fact === 'dead') {
      if (left.clears <= 0 || left.looks < 0) return { order: process, key: '' }
      if (clear(row)) left.clears -= 1
      // Its command has to be stopped first: it is found here again.
      else left.looks -= 1
    } else if (alike > ALIKE_MAX) return { order: `${process} `, key: '' }
  }
  return null
}

/** Whether it was cleared away, or at least changed: then it is not found here again. */
function clearTicket(view: View, ticket: Ticket): boolean {
  const gone = isGone(view, ticket)
  if (gone) leaveLines(view, ticket)
  return gone || view.get('ticket', ticket.id) !== ticket
}

/** Whether the lease is over now. One whose command still runs is added to `orphaned`. */
export function settleQuietly(view: View, lease: Lease, orphaned: Lease[]): boolean {
  try {
    return settleLease(view, lease.name) === undefined
  } catch (stopped) {
    if (!(stopped instanceof NeedsKill)) throw stopped
    orphaned.push(stopped.lease)
    return false
  }
}
