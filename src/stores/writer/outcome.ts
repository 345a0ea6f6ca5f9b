import type { Lease } from '../../core/schema/lock.ts'
import { Refusal, isRefusal } from '../../core/refusal.ts'
import type { RefusedWrite } from '../../core/stats/stat.ts'
import type { Need, NeedsKill, View } from '../../core/view.ts'
import type { Event } from '../../core/event.ts'
import { CommitUnknown, NotBegun } from '../port.ts'
import type { Batch } from './layer.ts'

/** Something to be decided, and whom to tell what became of it. */
export interface Ask {
  decide: (view: View) => unknown
  reads: Need[]
  resolve: (value: unknown) => void
  reject: (reason: unknown) => void
  unstoppable: Set<string>
}

/** What became of an ask. */
export type Outcome = { answer: unknown } | { refused: unknown } | { kill: NeedsKill }

/** A batch that is durable. */
export interface Committed {
  batch: Batch
  outcomes: Outcome[]
  refused: RefusedWrite[]
  events: Event[]
  /** Something may be claimed or started now that could not before. */
  opens: boolean
  orphaned: Lease[]
}

/** Leases that this batch took back while their command runs, unless an ask waits for its end. */
export function revokedIn(batch: Batch, outcomes: Outcome[]): Lease[] {
  const awaited = new Set(outcomes.map((each) => 'kill' in each && each.kill.lease.fence))
  const found: Lease[] = []
  for (const lease of batch.changes.lease?.values() ?? []) {
    const over = lease && lease.ended_at === null && lease.expires_ms <= batch.instant.now
    if (over && lease.group && !awaited.has(lease.fence)) found.push(lease)
  }
  return found
}

export function refusalsIn(outcomes: Outcome[]): RefusedWrite[] {
  return outcomes.flatMap((outcome) => {
    if (!('refused' in outcome) || !(outcome.refused instanceof Refusal)) return []
    const { code, details } = outcome.refused
    const { name } = details
    return [{ code, lock: typeof name === 'string' ? name : null }]
  })
}

/** The store cannot do what it is for; anything else is about one ask. */
export const isTrouble = (error: unknown) =>
  isRefusal(error, 'unavailable') || isRefusal(error, 'damaged')

/** What a failed batch means to those who asked: a commit of unknown outcome is no "no". */
export function explained(error: unknown): unknown {
  if (error instanceof NotBegun) return error.cause
  if (!(error instanceof CommitUnknown)) return error
  return new Refusal('unavailable', `Nobody can say whether this was written: ${error.message}`, {
    next: 'Ask again with the same request id: it takes effect once, whichever way this went.',
    details: { outcome: 'unknown' },
  })
}
