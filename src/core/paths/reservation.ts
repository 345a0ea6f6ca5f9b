import type { Lease } from '../schema/lock.ts'
import { admits, type Caller } from '../caller.ts'
import { type Glob, parseGlob } from './glob.ts'
import {
  endLease,
  freeing,
  type Grant,
  grantLease,
  holding,
  settleLease,
  timesOf,
} from '../locks/lease.ts'
import { extend, releaseLock } from '../locks/lock.ts'
import {
  askerOf,
  isOwn,
  isParents,
  isReservation,
  type Looked,
  nothingLooked,
  overlapping,
  overlappingBeside,
  type Reservation,
} from './overlap.ts'
import { pathLock, scopeOf, termsOf, type Where } from './path_terms.ts'
import { circleOf, lastOf, markWanted, sentencesOf, type Want } from '../locks/circle.ts'
import { quoted, word } from '../quote.ts'
import type { Next } from '../next.ts'
import { Refusal } from '../refusal.ts'
import type { PathTerms } from '../rows.ts'
import { sightOf } from '../sight.ts'
import { isScoped } from '../token_scope.ts'
import type { View } from '../view.ts'

export interface Reserve extends Grant, Where {
  globs: string[]
  shared: boolean
  reason: string | null
}

/**
 * Reserves all of `globs` for the caller, or none: refuses with `held` what has a path in common
 * with a reservation of another agent, unless both are shared. What an agent holds admits those
 * nested under it, and not the other way round. Asking again for what one has renews it under the
 * same fence; a shared one becomes exclusive, or an exclusive one shared, under a new fence.
 */
export function reservePaths(
  view: View,
  ask: Reserve,
  caller: Caller,
): { leases: Reservation[]; warnings: string[] } {
  const asker = askerOf(caller, ask.process)
  const globs = distinct(ask.globs)
  const looked = nothingLooked()
  for (const glob of globs) {
    for (const lease of overlapping(view, glob, ask, looked)) {
      if (blocks(lease, ask.shared, asker)) throw heldPath(view, glob.text, lease, asker)
    }
  }
  const warnings = globs.flatMap((glob) => worktreeWarnings(view, glob, ask, asker, looked))
  return { leases: globs.map((glob) => take(view, glob, ask, asker)), warnings }
}

function distinct(globs: string[]): Glob[] {
  const parsed = globs.map((glob) => parseGlob(glob))
  return [...new Map(parsed.map((glob) => [glob.text, glob])).values()]
}

function blocks(lease: Reservation, shared: boolean, asker: Caller): boolean {
  if (isOwn(lease, asker) || isParents(lease, asker)) return false
  return !(shared && lease.path.shared && lease.holder !== asker.agent)
}

/** Nobody is in the way: renews what the asker has, or grants it. */
function take(view: View, glob: Glob, ask: Reserve, asker: Caller): Reservation {
  const { shared, ttl_ms } = ask
  const mine = ownOf(view, glob.text, ask, asker)
  const same = mine.find(({ path }) => path.shared === shared)
  const reason = ask.reason ?? same?.path.reason ?? null
  const terms = termsOf(glob, ask, { shared, reason })
  if (same) {
    const { waiting, wanted } = same.path
    const path = { ...terms, ...(waiting && { waiting }), ...(wanted && { wanted }) }
    const process = ask.process ?? same.process
    const spoken = { ...same, path, process, seat: process?.seat ?? null }
    return extend(view, spoken, ttl_ms) as Reservation
  }
  for (const other of mine) endLease(view, other, 'released', asker.agent)
  const name = freeName(view, glob, ask, asker)
  const lease = grantLease(view, name, asker, { ttl_ms, process: ask.process, path: terms })
  const { project, checkout } = terms
  const granted = { fence: lease.fence, ttl_seconds: ttl_ms / 1000, path: terms.glob }
  const data = { ...granted, checkout, shared, ...(project && { project }) }
  view.record('lease.granted', { agent: asker.agent, lock: name }, data)
  return lease as Reservation
}

/** What the asker has of exactly this glob: under the glob's own lock, or one with its name. */
export function ownOf(view: View, text: string, where: Where, asker: Caller): Reservation[] {
  const isSame = ({ glob, scope }: PathTerms) => glob === text && scope === scopeOf(where)
  const names = [pathLock(where, text), pathLock(where, text, asker.agent)]
  return names.flatMap((name) => {
    const lease = settleLease(view, name)
    if (!lease || !isReservation(lease)) return []
    return isSame(lease.path) && isOwn(lease, asker) ? [lease] : []
  })
}

/** Those who share have a lock each, and so has a subagent where its parent has the glob's own. */
function freeName(view: View, { text }: Glob, ask: Reserve, asker: Caller): string {
  const names = [...(ask.shared ? [] : [pathLock(ask, text)]), pathLock(ask, text, asker.agent)]
  const free = names.find((name) => settleLease(view, name) === undefined)
  if (free !== undefined) return free
  const lease = settleLease(view, names.at(-1)!) as Reservation
  throw heldPath(view, text, lease, asker)
}

/** `held`, with who holds it, until when, why, and what to do instead. */
export function heldPath(view: View, asked: string, lease: Reservation, asker: Caller): Refusal {
  const { glob, shared, reason } = lease.path
  const by_you = lease.holder === asker.agent
  const theirs = word(glob)
  const what =
    asked === glob ? `${theirs} is reserved` : `${word(asked)} overlaps ${theirs}, reserved`
  const why = reason === null ? '' : `, for: ${quoted(reason)}`
  // A defaulted id is many terminals; a token that is bound may not know who else is in it.
  const isTold = !by_you && asker.given && !isScoped(asker)
  const first = { agent: asker.agent, path: asked, lease }
  const circle = isTold ? circleOf(view, first) : undefined
  const round = circle === undefined ? '' : `; nobody would ever go on: ${inCircle(circle)}`
  return new Refusal('held', `${what} by ${holding(view, lease)}${why}${round}`, {
    next: by_you
      ? 'Another process or terminal with your agent id has it: release it there.'
      : circle
        ? lettingGo(circle, asker)
        : [
            { says: 'Work on other files, or ask again later', operation: 'reserve.list' },
            asking(asked),
            freeing(lease, asker),
          ],
    ...(isTold && {
      leaves: (after: View) => markWanted(after, lease.name, asker.agent, asked),
    }),
    details: {
      path: asked,
      name: lease.name,
      holder: lease.holder,
      fence: lease.fence,
      reserved: glob,
      shared,
      reason,
      since: lease.acquired_at,
      ...timesOf(view, lease),
      ...(lease.process && { pid: lease.process.pid, host: lease.process.host }),
      by_you,
      ...(circle && { circle: sentencesOf(circle) }),
    },
  })
}

const inCircle = (circle: readonly Want[]) => sentencesOf(circle).join('; ')

/** All who are in a circle read the same name: that of the one who is to let go. */
function lettingGo(circle: readonly Want[], { agent }: Caller): Next {
  const { holder, path } = lastOf(circle)
  const glob = path!.glob
  const what = word(glob)
  if (!admits(holder, agent)) {
    return (
      `It is for ${word(holder)} to let go of ${what}, and it reads this too. Work on other ` +
      'files until then.'
    )
  }
  const says =
    `It is for you to let go of ${what}, or nobody goes on: commit what you have in it, or put ` +
    'it back as it was, then'
  return [
    { says, operation: 'reserve.release', input: { paths: [glob] } },
    'Work on other files until the others are done.',
  ]
}

const asking = (path: string) => ({
  says: 'To ask its holder for it',
  operation: 'reserve.ask',
  input: { paths: [path], reason: 'WHY' },
})

function worktreeWarnings(
  view: View,
  glob: Glob,
  ask: Reserve,
  asker: Caller,
  looked: Looked,
): string[] {
  const warnings: string[] = []
  for (const lease of overlappingBeside(sightOf(view, asker, true), glob, ask, looked)) {
    if (!blocks(lease, ask.shared, asker)) continue
    const { checkout } = lease.path
    const until = timesOf(view, lease).expires_at
    const whose = `reserved by ${word(lease.holder)} in another checkout of this repository`
    const what = `${word(glob.text)} overlaps ${word(lease.path.glob)}`
    warnings.push(`${what}, ${whose}: ${word(checkout ?? '')}, until ${until}`)
    if (warnings.length === WARNINGS_MAX) break
  }
  return warnings
}

const WARNINGS_MAX = 5

export interface Release extends Omit<Where, 'repository'> {
  globs: string[]
  fence?: number | undefined
  process: Caller['process']
}

/**
 * Gives reservations back, all or none. Refuses as the release of a lock does: what is not held
 * any more, or by another, is never silently accepted.
 */
export function releasePaths(view: View, ask: Release, caller: Caller): Lease[] {
  const asker = { ...askerOf(caller, ask.process), given: true }
  const globs = distinct(ask.globs)
  if (ask.fence !== undefined && globs.length > 1) {
    throw new Refusal('invalid', 'A fence speaks for one reservation, not for several', {
      next: 'Release them one by one, or leave the fence out.',
    })
  }
  const where = { ...ask, repository: null }
  return globs.map((glob) => {
    const [own] = ownOf(view, glob.text, where, asker)
    const name = own?.name ?? pathLock(where, glob.text)
    return releaseLock(view, { name, fence: ask.fence }, asker)
  })
}

/** Gives back all that the caller has reserved, here or everywhere (`undefined`). */
export function releaseAll(
  view: View,
  ask: { here: Partial<Where>; nested: boolean; process: Caller['process'] },
  caller: Caller,
): Lease[] {
  const asker = { ...askerOf(caller, ask.process), given: true }
  const { checkout, project } = ask.here
  const isHere = ({ path }: Reservation) =>
    (checkout === undefined || path.checkout === checkout) &&
    (project === undefined || path.project === project)
  const isTheirs = (lease: Lease) =>
    isOwn(lease, asker) || (ask.nested && lease.holder.startsWith(`${asker.agent}/`))
  const rows = ask.nested ? view.scan('reservations', '') : view.scan('leases_held_by', asker.agent)
  const found = [...rows].filter((lease): lease is Reservation => isReservation(lease))
  return found
    .filter((lease) => isHere(lease) && isTheirs(lease))
    .flatMap(({ name }) => {
      const lease = settleLease(view, name)
      if (lease) endLease(view, lease, 'released', asker.agent)
      return lease ? [lease] : []
    })
}
