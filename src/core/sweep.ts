import { settleLease } from './lease.ts'
import { SWEEP_MAX } from './limits.ts'
import { isGone, leaveLines } from './line.ts'
import type { Lease } from './rows.ts'
import { NeedsKill, type View } from './view.ts'

/**
 * Clears away leases that are over: overdue ones and, at `seat`, those whose process died there;
 * then also waiters that are gone.
 * Returns the leases whose command has to be stopped first; stopping is for the caller to do,
 * outside the transaction.
 */
export function sweep(view: View, seat: string | null): Lease[] {
  const orphaned: Lease[] = []
  for (const lease of take(view.due('leases_by_expiry', '', view.now))) {
    settleQuietly(view, lease, orphaned)
  }
  if (seat !== null) {
    for (const lease of take(view.scan('leases_seated_at', seat))) {
      settleQuietly(view, lease, orphaned)
    }
    for (const ticket of take(view.scan('tickets', ''))) {
      if (isGone(view, ticket)) leaveLines(view, ticket)
    }
  }
  return orphaned
}

function take<Row>(rows: Iterable<Row>): Row[] {
  const found: Row[] = []
  for (const row of rows) {
    if (found.length === SWEEP_MAX) break
    found.push(row)
  }
  return found
}

function settleQuietly(view: View, lease: Lease, orphaned: Lease[]): void {
  try {
    settleLease(view, lease.name)
  } catch (stopped) {
    if (!(stopped instanceof NeedsKill)) throw stopped
    orphaned.push(stopped.lease)
  }
}
