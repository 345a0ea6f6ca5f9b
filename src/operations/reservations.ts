import type { Lease } from '../core/schema/lock.ts'
import { type Caller, STRANGER } from '../core/caller.ts'
import { showLease } from '../core/locks/lease.ts'
import { isPattern } from '../core/paths/glob_syntax.ts'
import { askerOf, isReservation, nothingLooked, type Reservation } from '../core/paths/overlap.ts'
import { scopeOf, type Where } from '../core/paths/path_terms.ts'
import { releaseAll, releasePaths, reservePaths } from '../core/paths/reservation.ts'
import { judgePath, touchPaths, type PathVerdict } from '../core/paths/touch.ts'
import { askHolders, type ToldPath } from '../core/paths/word.ts'
import { sightOf } from '../core/sight.ts'
import type { View } from '../core/view.ts'
import * as answers from './answers/locks.ts'
import type { AnswerAs } from './answers/shape.ts'
import * as f from './fields.ts'
import { stillLive } from './locks.ts'
import { pageIn } from './page.ts'
import { field, readOperation, writeOperation } from './operation.ts'
import * as p from './path_fields.ts'
import * as s from './schemas.ts'

/** A reservation as doors show it: a lease, and what it is of. */
function showReservation(view: View, lease: Reservation) {
  const { glob, project, checkout, shared, reason } = lease.path
  return {
    ...showLease(view, lease),
    path: glob,
    project: project || null,
    checkout,
    shared,
    reason,
  }
}

export type GrantedPaths = AnswerAs<typeof answers.reserved>
export type ShownReservation = AnswerAs<typeof answers.reservation>

interface Placed {
  project?: string | undefined
  checkout?: string | null | undefined
  repository?: string | null | undefined
}

export const whereOf = ({ project, checkout, repository }: Placed): Where => ({
  project: project ?? '',
  checkout: checkout || null,
  repository: repository ?? null,
})

export const add = writeOperation({
  name: 'reserve.add',
  grants: true,
  touches: ({ project }) => (project ? [{ project }] : []),
  refuses: ['held', 'invalid', 'too_large', 'lease_expired'],
  doc: 'Reserve paths, all or nothing: while you have them, no other agent can.',
  tool: 'reserve_paths',
  input: {
    paths: field(() => s.paths(1), 'Globs, relative to the checkout: src/**, docs/*.md.'),
    project: p.project,
    checkout: p.checkout,
    repository: p.repository,
    shared: field(s.flag, 'Let others reserve the same paths, as long as they share them too.'),
    ttl_seconds: p.ttlSeconds,
    reason: p.why,
    process: f.holderProcess,
  },
  output: answers.reserved,
  command: 'reserve add paths…',
  spends: ({ paths }) => ({ leases: paths.length, globs: paths.filter(isPattern).length }),
  decide: (view, input, caller) => {
    const { paths: globs, shared, reason = null, process } = input
    const how = { globs, shared, reason, process, ttl_ms: input.ttl_seconds * 1000 }
    const { leases, warnings } = reservePaths(view, { ...whereOf(input), ...how }, caller)
    return { items: leases.map((lease) => showReservation(view, lease)), warnings, next: null }
  },
  replay: (view, reply) => {
    const items = reply.items.map(({ name, fence }) => stillReserved(view, name, fence))
    return { ...reply, items }
  },
})

function stillReserved(view: View, name: string, fence: number): ShownReservation {
  return showReservation(view, stillLive(view, name, fence) as Reservation)
}

export const release = writeOperation({
  name: 'reserve.release',
  touches: 'own',
  refuses: ['held', 'fence_stale', 'lease_expired', 'invalid', 'too_large'],
  doc: 'Release reserved paths; without paths, all of yours.',
  tool: 'release_paths',
  input: {
    paths: field(() => s.optional(s.paths(1)), 'The globs to release (default: all of yours).'),
    project: p.project,
    checkout: p.checkout,
    fence: f.fence,
    nested: field(s.flag, 'Without paths: also release those of your subagents.'),
    process: f.holderProcess,
  },
  output: answers.unreserved,
  command: 'reserve release [paths…]',
  decide: (view, { paths: globs, ...input }, caller) => {
    const { project, checkout, process, nested, fence } = input
    const here = {
      ...(project !== undefined && { project }),
      ...(checkout !== undefined && { checkout: checkout || null }),
    }
    const leases = globs
      ? releasePaths(view, { ...whereOf(input), globs, fence, process }, caller)
      : releaseAll(view, { here, nested, process }, caller)
    return { items: leases.map((lease) => released(lease)), next: null }
  },
})

const released = ({ name, fence, path }: Lease) => ({
  name,
  fence,
  path: path?.glob ?? null,
  released: true,
})

export const list = readOperation({
  name: 'reserve.list',
  refuses: ['invalid'],
  doc: 'Paths that are reserved, by whom and until when.',
  input: {
    project: field(s.someName, 'Only reservations of this project.'),
    checkout: field(() => s.optional(s.plain(p.PLACE_MAX)), 'Only reservations in this checkout.'),
    ...f.page,
  },
  output: answers.reservations,
  command: 'reserve list',
  decide: (view, { project, checkout, ...page }) => {
    const isShown = (lease: Lease): lease is Reservation =>
      isReservation(lease) &&
      (project === undefined || lease.path.project === project) &&
      (checkout === undefined || lease.path.checkout === checkout)
    const shown = (lease: Lease) => (isShown(lease) ? showReservation(view, lease) : null)
    if (checkout !== undefined) {
      const scope = scopeOf({ project: '', checkout, repository: null })
      return pageIn(view, ['reservations_in', scope], page, shown)
    }
    return project === undefined
      ? pageIn(view, ['reservations', ''], page, shown)
      : pageIn(view, ['reservations_of', project], page, shown)
  },
})

export const check = readOperation({
  name: 'reserve.check',
  touches: 'contended',
  refuses: ['invalid', 'too_large'],
  doc: 'Whether paths are free, yours, or held by another.',
  input: { paths: p.paths, project: p.project, checkout: p.checkout, process: f.holderProcess },
  output: answers.checkedPaths,
  command: 'reserve check paths…',
  decide: (view, input, caller) => {
    const asker = { ...askerOf(caller, input.process), given: true }
    const where = whereOf(input)
    const looked = nothingLooked()
    const items = input.paths.map((path) => {
      return { path, ...shownVerdict(view, judgePath(view, path, where, asker, looked), asker) }
    })
    return { items, next: null }
  },
})

function shownVerdict(view: View, verdict: PathVerdict, asker: Caller) {
  if (verdict.state === 'free') return { state: verdict.state }
  const { name, holder, fence, expires_at, expires_in_seconds, path, shared, reason } =
    showReservation(view, verdict.lease)
  return {
    state: verdict.state,
    holder,
    expires_at,
    expires_in_seconds,
    shared,
    reason,
    reserved: path,
    name,
    fence,
    by_you: holder === asker.agent,
  }
}

/** What became of each path, in the same words; who is not the caller's to know is not named. */
export function shownTold(view: View, told: readonly ToldPath[], caller: Caller) {
  const sight = sightOf(view, caller, true)
  const items = told.map(({ path, verdict, told: isTold }) => {
    if (verdict.state === 'free') return { path, state: verdict.state, told: isTold }
    const holder = sight.get('lease', verdict.lease.name)?.holder ?? STRANGER
    const { expires_at } = showLease(view, verdict.lease)
    return { path, state: verdict.state, told: isTold, holder, expires_at }
  })
  return { items, next: null }
}

/** About 25 tokens: the holder pays for reading it. */
const ASKED_MAX = 100

/** What a refused agent can do besides waiting. */
export const ask = writeOperation({
  name: 'reserve.ask',
  touches: ({ project }) => (project ? [{ project }] : []),
  refuses: ['invalid', 'too_large'],
  doc: 'Leave a reason for those who hold paths that you need; each reads it once.',
  tool: 'ask_for_paths',
  input: {
    paths: p.paths,
    project: p.project,
    checkout: p.checkout,
    reason: field(() => s.plain(ASKED_MAX), 'Why you need them, for the holder to read.'),
    process: f.holderProcess,
  },
  output: answers.toldPaths,
  command: 'reserve ask paths…',
  decide: (view, { paths, process, reason, ...input }, caller) => {
    const told = askHolders(view, { ...whereOf(input), paths, process, reason }, caller)
    return shownTold(view, told, caller)
  },
})

export type ShownCheck = AnswerAs<typeof answers.checkedPaths>['items'][number]

/** What a hook asks before an edit, and as a sign of life after it: one round trip. */
export const touch = writeOperation({
  name: 'reserve.touch',
  internal: true,
  touches: ({ project }) => (project ? [{ project }] : []),
  refuses: ['held', 'lease_expired', 'invalid', 'too_large'],
  doc: 'An edit is about to happen: check its paths, reserve them, keep reservations alive.',
  input: {
    paths: p.touchedPaths,
    project: p.project,
    checkout: p.checkout,
    repository: p.repository,
    mode: field(
      s.mode,
      'auto: reserve free paths; strict: refuse paths that you have not reserved; warn: only warn.',
    ),
    ttl_seconds: p.ttlSeconds,
    keep_seconds: field(
      () => s.optional(s.ttl()),
      'How long you may be silent, if longer than the TTL: a long command is about to run.',
    ),
    reason: p.why,
    hears: field(s.flag, 'The agent will read the answer: tell what others have left for it.'),
    process: f.holderProcess,
  },
  output: answers.touched,
  spends: ({ paths }) => ({ leases: paths.length }),
  decide: (view, { paths, mode, process, hears, reason = null, ...input }, caller) => {
    const keep_ms = (input.keep_seconds ?? 0) * 1000
    const how = { paths, mode, process, hears, reason, keep_ms, ttl_ms: input.ttl_seconds * 1000 }
    const touched = touchPaths(view, { ...whereOf(input), ...how }, caller)
    const reserved = touched.reserved.map((lease) => showReservation(view, lease))
    return { ...touched, reserved }
  },
  // Most hooks ask for what their agent has already: then nothing is written at all. A renewal is
  // not remembered either: asked for once more, it is not due.
  keeps: (reply) => (reply.reserved.length + reply.words.length > 0 ? reply : undefined),
  replay: (view, reply) => {
    const reserved = reply.reserved.map(({ name, fence }) => stillReserved(view, name, fence))
    return { ...reply, reserved }
  },
})
