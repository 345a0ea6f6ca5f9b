import type { Caller } from './caller.ts'
import { type Glob, literalGlob, parseGlob } from './glob.ts'
import type { Grant } from './lease.ts'
import { SEEN_MS } from './limits.ts'
import { extend } from './lock.ts'
import {
  askerOf,
  isOwn,
  isParents,
  isReservation,
  overlapping,
  type Reservation,
} from './overlap.ts'
import { scopeOf, type Where } from './path_terms.ts'
import { Refusal } from './refusal.ts'
import { heldPath, reservePaths } from './reservation.ts'
import { standing } from './standing.ts'
import type { View } from './view.ts'

/** How a path stands for whoever asks; `lease` is what makes it so. */
export type Verdict =
  | { state: 'free' }
  | { state: 'mine'; lease: Reservation; isOwn: boolean }
  | { state: 'held'; lease: Reservation }

/**
 * May the asker write this path? What another holds exclusively says no; what the asker or its
 * parent holds says yes; what others share says no to whoever does not share it.
 */
export function judgePath(view: View, path: string, where: Where, asker: Caller): Verdict {
  let shared: Reservation | undefined
  let own: Reservation | undefined
  let parents: Reservation | undefined
  for (const lease of overlapping(view, globOf(path), where)) {
    if (isOwn(lease, asker)) own ??= lease
    else if (isParents(lease, asker)) parents ??= lease
    else if (!lease.path.shared) return { state: 'held', lease }
    else shared ??= lease
  }
  if (own) return { state: 'mine', lease: own, isOwn: true }
  if (parents) return { state: 'mine', lease: parents, isOwn: false }
  return shared ? { state: 'held', lease: shared } : { state: 'free' }
}

/** A path means itself, whatever its characters; with a slash at the end, all that is under it. */
const globOf = (path: string): Glob => parseGlob(literalGlob(path))

export const MODES = ['auto', 'strict', 'warn'] as const
export type Mode = (typeof MODES)[number]

export interface Touch extends Grant, Where {
  paths: string[]
  mode: Mode
  reason: string | null
}

interface Touched {
  reserved: Reservation[]
  /** How many reservations of the caller live on because of this. */
  renewed: number
  warnings: string[]
}

/**
 * An agent is about to write `paths`, or gives a sign of life with none. Refuses with `held` what
 * another has reserved (`warn` only says so). What the caller does not have yet is reserved for it
 * in `auto`, and refused with `lease_expired` in `strict`, as a write without its lease is. All
 * that the caller has reserved in this checkout lives on for at least the TTL.
 */
export function touchPaths(view: View, ask: Touch, caller: Caller): Touched {
  const asker = askerOf(caller, ask.process)
  const warnings: string[] = []
  const wanted: string[] = []
  for (const path of ask.paths) {
    const verdict = judgePath(view, path, ask, asker)
    if (verdict.state === 'held') {
      const refusal = heldPath(view, path, verdict.lease, asker)
      if (ask.mode !== 'warn') throw refusal
      warnings.push(refusal.message)
    } else if (ask.mode === 'auto' && !(verdict.state === 'mine' && verdict.isOwn)) {
      wanted.push(literalGlob(path))
    } else if (ask.mode === 'strict' && verdict.state === 'free') throw notReserved(path)
  }
  const renewed = renewAll(view, ask, asker)
  if (wanted.length === 0) return { reserved: [], renewed, warnings }
  const { leases, warnings: beside } = reservePaths(
    view,
    { ...ask, globs: wanted, shared: false },
    caller,
  )
  return { reserved: leases, renewed, warnings: [...warnings, ...beside] }
}

function notReserved(path: string): Refusal {
  return new Refusal('lease_expired', `${path} is not reserved by you`, {
    next: `Reserve it first: leasehold reserve add ${path}`,
    details: { path, holder: null },
  })
}

/** Seen again soon, a row is left alone: an agent at work calls many times in a minute. */
function renewAll(view: View, ask: Touch, asker: Caller): number {
  const scope = scopeOf(ask)
  let renewed = 0
  for (const lease of [...view.scan('leases_held_by', asker.agent)]) {
    if (!isReservation(lease) || lease.path.scope !== scope || !isOwn(lease, asker)) continue
    if (standing(view, lease) !== 'live') continue
    renewed += 1
    const ttl_ms = Math.max(ask.ttl_ms, lease.ttl_ms)
    const gained_ms = view.now + ttl_ms - lease.expires_ms
    if (gained_ms > Math.min(SEEN_MS, ask.ttl_ms / 10)) extend(view, lease, ttl_ms)
  }
  return renewed
}
