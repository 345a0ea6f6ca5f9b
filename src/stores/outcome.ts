import { Refusal } from '../core/refusal.ts'
import type { Lease } from '../core/rows.ts'
import type { RefusedWrite } from '../core/stat.ts'
import type { NeedsKill } from '../core/view.ts'
import type { Batch } from './layer.ts'
import { CommitUnknown, NotBegun } from './port.ts'

/** What became of an ask. */
export type Outcome = { answer: unknown } | { refused: unknown } | { kill: NeedsKill }

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

export function isRefusal(error: unknown, code: Refusal['code']): boolean {
  return error instanceof Refusal && error.code === code
}

/** The store cannot do what it is for; anything else is about one ask. */
export const isTrouble = (error: unknown) =>
  isRefusal(error, 'unavailable') || isRefusal(error, 'damaged')

export function explained(error: unknown): unknown {
  if (error instanceof NotBegun) return error.cause
  if (!(error instanceof CommitUnknown)) return error
  return new Refusal('unavailable', `Nobody can say whether this was written: ${error.message}`, {
    next: 'Ask again with the same request id: it takes effect once, whichever way this went.',
    details: { outcome: 'unknown' },
  })
}
