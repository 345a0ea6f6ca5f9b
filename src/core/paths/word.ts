import { type Caller, STRANGER } from '../caller.ts'
import { sightOf } from '../sight.ts'
import { argument } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import type { View } from '../view.ts'
import { askerOf, nothingLooked, type Reservation } from './overlap.ts'
import type { Where } from './path_terms.ts'
import { heldPath } from './reservation.ts'
import { judgePath, type PathVerdict } from './touch.ts'
import { leave } from './waiting.ts'

interface Concerned extends Where {
  paths: string[]
  process: Caller['process']
}

/** What became of one path: `told` says whether its holder will read of it. */
export interface ToldPath {
  path: string
  verdict: PathVerdict
  told: boolean
}

/**
 * An agent that was refused leaves a reason for those who hold `paths`. Kept with each reservation,
 * so that it ends with it: the holder reads it at its next call, and releases, hands off, or says
 * for how long. A holder that the caller's token may not know of is told nothing.
 */
export function askHolders(
  view: View,
  ask: Concerned & { reason: string },
  caller: Caller,
): ToldPath[] {
  return judged(view, ask, caller).map((each) => tellHolder(view, each, ask.reason, caller))
}

/**
 * The second net: `paths` were changed, and not by a tool call of their holder. Records
 * `hook.noticed` for what another holds, or the caller itself, and leaves word for the holder.
 */
export function noticeWrites(view: View, ask: Concerned, caller: Caller): ToldPath[] {
  return judged(view, ask, caller).map((each) => {
    const { path, verdict } = each
    if (verdict.state !== 'free') {
      const { name: lock, holder, fence } = verdict.lease
      const data = { path, checkout: ask.checkout, holder, fence }
      view.record('hook.noticed', { agent: caller.agent, lock }, data)
    }
    return tellHolder(view, each, null, caller)
  })
}

/**
 * Copies of `paths` are about to be put in their place, which is an edit like any other: refuses
 * with `held` what another holds, unless an admin asks, and leaves word for that holder then.
 * Records `hook.restored` for each.
 */
export function restorePaths(view: View, ask: Concerned, caller: Caller): ToldPath[] {
  const found = judged(view, ask, caller)
  for (const { path, verdict } of found) {
    if (verdict.state !== 'held' || caller.admin) continue
    const { message, details } = heldPath(view, path, verdict.lease, caller)
    const next =
      'That agent can put it back: leasehold reserve guard PATH --restore. A person can: --force'
    throw new Refusal('held', message, { next: next.replace('PATH', argument(path)), details })
  }
  return found.map((each) => {
    const { path, verdict } = each
    const lease = verdict.state === 'free' ? undefined : verdict.lease
    const data = { path, checkout: ask.checkout, holder: lease?.holder ?? null }
    view.record('hook.restored', { agent: caller.agent, lock: lease?.name ?? null }, data)
    return tellHolder(view, each, null, caller)
  })
}

type Judged = Omit<ToldPath, 'told'>

/** Leaves word for the holder of a path, if another has it whom the caller may know of. */
function tellHolder(view: View, each: Judged, reason: string | null, caller: Caller): ToldPath {
  const { path, verdict } = each
  const told = verdict.state === 'held' && isKnown(view, verdict.lease, caller)
  if (told) leave(view, verdict.lease, { by: caller.agent, path, reason })
  return { ...each, told }
}

function judged(view: View, ask: Concerned, caller: Caller): Judged[] {
  const asker = { ...askerOf(caller, ask.process), given: true }
  const looked = nothingLooked()
  // Decided before anything is written: what was looked at holds for all of them.
  return ask.paths.map((path) => ({ path, verdict: judgePath(view, path, ask, asker, looked) }))
}

const isKnown = (view: View, { name }: Reservation, caller: Caller) =>
  (sightOf(view, caller, true).get('lease', name)?.holder ?? STRANGER) !== STRANGER

export interface Bypass {
  paths: string[]
  reason: string
  /** What would have been said without it; null where there was nothing to say. */
  refusal: string | null
}

/**
 * Records `hook.bypassed`, and whether a person said so. Nothing is refused: the edit happens
 * either way, and must be found.
 */
export function recordBypass(view: View, ask: Bypass, caller: Caller): { recorded: true } {
  const { paths, reason, refusal } = ask
  // Whoever asks with an agent's token is not known to be a person.
  const said = { paths, reason, by_person: !caller.by_token }
  view.record('hook.bypassed', caller, { ...said, ...(refusal !== null && { refusal }) })
  return { recorded: true }
}
