import type { Lease } from '../schema/lock.ts'
import { admits, type Caller, parentsOf, STRANGER } from '../caller.ts'
import { type Glob, literalGlob, parseGlob, spellGlob } from './glob.ts'
import type { Grant } from '../locks/lease.ts'
import { SEEN_MS } from '../bounds.ts'
import { extend } from '../locks/lock.ts'
import {
  askerOf,
  isOwn,
  isParents,
  isReservation,
  type Looked,
  nothingLooked,
  overlapping,
  type Reservation,
} from './overlap.ts'
import type { Where } from './path_terms.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import { heldPath, ownOf, reservePaths } from './reservation.ts'
import { sayWaiting, takeWaiting } from './waiting.ts'
import type { ForHolder } from '../rows.ts'
import { standing } from '../locks/standing.ts'
import { isScoped } from '../token_scope.ts'
import { toldTo } from '../touched.ts'
import type { View } from '../view.ts'

/** What a path is to the asker; `lease` is the reservation that makes it so. */
export type PathVerdict =
  | { state: 'free' }
  | { state: 'mine'; lease: Reservation; isOwn: boolean }
  | { state: 'held'; lease: Reservation }

/**
 * May the asker write this path? What another holds exclusively says no; what the asker or its
 * parent holds says yes; what others share says no, unless the asker shares it too.
 */
export function judgePath(
  view: View,
  path: string,
  where: Where,
  asker: Caller,
  looked: Looked,
): PathVerdict {
  let shared: Reservation | undefined
  let own: Reservation | undefined
  let parents: Reservation | undefined
  for (const lease of overlapping(view, globOf(path), where, looked)) {
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
  /** How long the asker may be silent from now on, where that is longer than the TTL. */
  keep_ms?: number | undefined
  /** Whether the agent will read the answer: then it gets what others have left for it. */
  hears?: boolean | undefined
}

interface Touched {
  reserved: Reservation[]
  /** How many reservations of the caller live on because of this. */
  renewed: number
  warnings: string[]
  /** What others have left for the caller, as sentences; gone once it was told. */
  words: string[]
}

/**
 * An agent is about to write `paths`, or gives a sign of life with none. Refuses with `held` what
 * another has reserved (`warn` only says so). What the caller does not have yet is reserved for it
 * in `auto`, and refused with `lease_expired` in `strict`, as a write without its lease is. All
 * that the caller holds lives on: reservations for at least the TTL.
 */
export function touchPaths(view: View, ask: Touch, caller: Caller): Touched {
  const asker = askerOf(caller, ask.process)
  const warnings: string[] = []
  const wanted: string[] = []
  const others = ask.paths.filter((path) => !isTouched(view, path, ask, asker))
  // Touched a moment ago: what the caller holds was renewed then, all of it.
  if (ask.paths.length > 0 && others.length === 0)
    return { reserved: [], renewed: 0, warnings, words: [] }
  const looked = nothingLooked()
  for (const path of others) {
    const verdict = judgePath(view, path, ask, asker, looked)
    if (verdict.state === 'held') {
      const refusal = heldPath(view, path, verdict.lease, asker)
      if (ask.mode !== 'warn') throw refusal
      warnings.push(toldTo(view, refusal, caller).message)
    } else if (ask.mode === 'auto' && !(verdict.state === 'mine' && verdict.isOwn)) {
      wanted.push(literalGlob(path))
    } else if (ask.mode === 'strict' && verdict.state === 'free') throw notReserved(path)
  }
  const { renewed, words } = renewAll(view, ask, asker)
  if (wanted.length === 0) return { reserved: [], renewed, warnings, words }
  const { leases, warnings: beside } = reservePaths(
    view,
    { ...ask, globs: wanted, shared: false },
    caller,
  )
  return { reserved: leases, renewed, warnings: [...warnings, ...beside], words }
}

/**
 * Whether the caller has exactly this path for itself alone, and gave a sign of life just now. Then
 * nobody but its subagents can have it too, and there is nothing to look for: this is what most
 * hooks ask.
 */
function isTouched(view: View, path: string, ask: Touch, asker: Caller): boolean {
  const least_ms = Math.max(ask.ttl_ms, ask.keep_ms ?? 0)
  return ownOf(view, spellGlob(literalGlob(path)), ask, asker).some((lease) => {
    return !lease.path.shared && !isDue(view, lease, least_ms)
  })
}

function notReserved(path: string): Refusal {
  return new Refusal('lease_expired', `${word(path)} is not reserved by you`, {
    next: { says: 'Reserve it first', operation: 'reserve.add', input: { paths: [path] } },
    details: { path, holder: null },
  })
}

/**
 * A sign of life counts for all that the asker holds, as a heartbeat does: each lease by its own
 * TTL, reservations by `keep_ms` at least. It counts for the agents that the asker is nested under
 * too: they wait for it in the same process.
 */
function renewAll(view: View, ask: Touch, asker: Caller): Pick<Touched, 'renewed' | 'words'> {
  let renewed = 0
  const waiting: ForHolder[] = []
  for (const agent of [asker.agent, ...parentsOf(asker.agent)]) {
    for (const lease of [...view.scan('leases_held_by', agent)]) {
      if (!isOwn(lease, { ...asker, agent }) || standing(view, lease) !== 'live') continue
      renewed += isReservation(lease) && agent === asker.agent ? 1 : 0
      renew(view, lease, isReservation(lease) ? Math.max(ask.ttl_ms, ask.keep_ms ?? 0) : 0)
      if (ask.hears && isReservation(lease) && agent === asker.agent) {
        waiting.push(...takeWaiting(view, lease).map((said) => toldBy(said, asker)))
      }
    }
  }
  return { renewed, words: sayWaiting(waiting) }
}

/** A token that is bound is told what is asked, and not by whom. */
const toldBy = (said: ForHolder, asker: Caller): ForHolder =>
  isScoped(asker) && !admits(asker.agent, said.by) ? { ...said, by: STRANGER } : said

/** Seen again soon, a row is left alone: an agent at work calls many times in a minute. */
function isDue(view: View, lease: Lease, least_ms: number): boolean {
  const ttl_ms = Math.max(least_ms, lease.ttl_ms)
  return view.now + ttl_ms - lease.expires_ms > Math.min(SEEN_MS, ttl_ms / 10)
}

function renew(view: View, lease: Lease, least_ms: number): void {
  if (!isDue(view, lease, least_ms)) return
  const ttl_ms = Math.max(least_ms, lease.ttl_ms)
  const renewed = extend(view, lease, ttl_ms)
  // Longer this once: a long command does not make every later silence as long.
  if (renewed.ttl_ms !== lease.ttl_ms) view.put('lease', { ...renewed, ttl_ms: lease.ttl_ms })
}
