import type { Lease } from '../schema/lock.ts'
import { GRACE_MS } from '../bounds.ts'
import type { ProcessRef, Terms } from '../rows.ts'
import { busyWith, isBusyUser } from '../queue/share.ts'
import type { View } from '../view.ts'

/**
 * What a lease is worth now.
 * - `live`: in force.
 * - `ended`: released or freed before.
 * - `expired`, `dead`: still written down, but anyone may take the lock: time is up, or the
 *   holder's process is proved gone.
 * - `orphaned`: time is up or the wrapper died, but the command we started under it still runs.
 *   It must be stopped before the lock is free, or there would be two commands.
 * - `lingering`: time is up, and whether its command still runs cannot be known from here. Nothing
 *   more is accepted under it, but the lock is free only after the grace.
 */
type Standing = 'live' | 'ended' | 'expired' | 'dead' | 'orphaned' | 'lingering'

/** Judges a lease at this instant. Asks about processes only where time does not decide. */
export function standing(view: View, lease: Lease): Standing {
  if (lease.ended_at !== null) return 'ended'
  const expired = view.now >= lease.expires_ms
  if (!expired && !(lease.process && view.process(lease.process) === 'dead')) return 'live'
  const over = expired ? 'expired' : 'dead'
  if (lease.group === null) return over
  const group = view.group(lease.group)
  if (group !== 'unknown') return group === 'dead' ? over : 'orphaned'
  return view.now >= lease.expires_ms + GRACE_MS ? 'expired' : 'lingering'
}

/** When a lease ends that is granted or renewed now: no later than its claim's own time. */
export function expiryOf(now: number, ttl_ms: number, terms: Terms | null | undefined): number {
  return Math.min(now + ttl_ms, terms?.until_ms ?? Number.POSITIVE_INFINITY)
}

/** The lease of `name` that is in force, if any. */
export function liveLease(view: View, name: string): Lease | undefined {
  const lease = view.get('lease', name)
  return lease && standing(view, lease) === 'live' ? lease : undefined
}

const HOLDING: ReadonlySet<Standing> = new Set(['live', 'orphaned', 'lingering'])

/** The lease that keeps others from `name`: a live one, or one whose command may still run. */
export function holdingLease(view: View, name: string): Lease | undefined {
  const lease = view.get('lease', name)
  return lease && HOLDING.has(standing(view, lease)) ? lease : undefined
}

/** Nobody holds it; for the lock of a user, also: no claim keeps that user busy. */
export function isFree(view: View, name: string): boolean {
  return holdingLease(view, name) === undefined && !isBusyUser(view, name)
}

/**
 * The lock of a user is held by the claim that keeps that user busy: shown under the user's name,
 * with the fence and the times of that claim.
 */
export function busyLease(view: View, name: string): Lease | undefined {
  const busy = busyWith(view, name)
  const lease = busy === undefined || busy === name ? undefined : view.get('lease', busy)
  return lease && { ...lease, name }
}

/** Whether a command has to be stopped before `name` is free. */
export function isOrphaned(view: View, name: string): boolean {
  const lease = view.get('lease', name)
  return lease !== undefined && standing(view, lease) === 'orphaned'
}

/**
 * Where a holder or waiter stands in the wait-for graph: its process, or else its given agent id.
 * A defaulted id stands for many terminals, so it makes no node.
 */
export function nodeOf(process: ProcessRef | null, agent: string, given: boolean): string | null {
  if (process) return `process:${process.seat}/${process.pid}/${process.start}`
  return given ? `agent:${agent}` : null
}

/** The process that a node stands for, as far as it tells; undefined for an agent. */
export function processOfNode(node: string): Omit<ProcessRef, 'host'> | undefined {
  if (!node.startsWith('process:')) return undefined
  // A seat has slashes of its own.
  const parts = node.slice('process:'.length).split('/')
  const [pid, start] = parts.slice(-2).map(Number)
  return { seat: parts.slice(0, -2).join('/'), pid: pid!, start: start! }
}

export const nodeOfLease = ({ process, holder, holder_given }: Lease) =>
  nodeOf(process, holder, holder_given)
