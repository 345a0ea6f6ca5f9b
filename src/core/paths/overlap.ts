import type { Lease } from '../schema/lock.ts'
import { admits, type Caller, sameProcess } from '../caller.ts'
import { type Glob, globSteps, overlaps, parseGlob, type Steps } from './glob.ts'
import { settleLease } from '../locks/lease.ts'
import { collide, repositoryId, scopeOf, type Where } from './path_terms.ts'
import { planted } from '../planted.ts'
import { keyOf, type PathTerms } from '../rows.ts'
import type { View } from '../view.ts'

/** A lease that is a reservation. */
export type Reservation = Lease & { path: PathTerms }

export const isReservation = (lease: Lease): lease is Reservation => Boolean(lease.path)

type ByBase = 'reservations_in' | 'reservations_of' | 'reservations_beside'

/** What one ask has looked at: many of its paths lie in the same folders. */
export interface Looked {
  rows: Map<string, Lease[]>
  steps: Steps
}

export const nothingLooked = (): Looked => ({ rows: new Map(), steps: globSteps() })

/**
 * All reservations in force that have a path in common with `glob`. An ask that looks for several
 * globs passes on what it has `looked` at, as long as it reserves nothing.
 */
export function* overlapping(
  view: View,
  glob: Glob,
  where: Where,
  looked = nothingLooked(),
): Generator<Reservation> {
  const wide = scopeOf({ ...where, checkout: null })
  const near: [ByBase, string][] =
    where.checkout === null
      ? [['reservations_of', where.project]]
      : [
          ['reservations_in', scopeOf(where)],
          ['reservations_in', wide],
        ]
  for (const [index, group] of near) {
    for (const found of candidates(view, index, group, glob, looked)) {
      if (!collide(found.path, where) || !meets(found, glob, looked.steps)) continue
      const lease = settleLease(view, found.name)
      if (lease && isReservation(lease)) yield lease
    }
  }
}

/** The same in other checkouts of one repository: what they do there has to be merged one day. */
export function* overlappingBeside(
  view: View,
  glob: Glob,
  where: Where,
  looked = nothingLooked(),
): Generator<Reservation> {
  const { checkout, repository } = where
  if (checkout === null || repository === null) return
  const group = repositoryId(repository)
  for (const found of candidates(view, 'reservations_beside', group, glob, looked)) {
    const { path } = found
    const isBeside = path.repository === repository && path.checkout !== checkout
    if (!isBeside || collide(path, where) || !meets(found, glob, looked.steps)) continue
    const lease = settleLease(view, found.name)
    if (lease && isReservation(lease)) yield lease
  }
}

function meets({ path }: Reservation, glob: Glob, steps: Steps): boolean {
  if (path.glob === glob.text) return true
  // The planted bug of R27: only what is written the same is taken for the same.
  return !planted('R27') && overlaps(parseGlob(path.glob), glob, steps)
}

/**
 * Globs whose leading folders are above those of `glob`, the same, or below: no other can have a
 * path in common with it. Found by a few looks into an index, however many reservations there are.
 */
function candidates(
  view: View,
  index: ByBase,
  group: string,
  glob: Glob,
  looked: Looked,
): Reservation[] {
  const found: Lease[] = []
  const collect = (base: string, isIn: (path: PathTerms) => boolean) => {
    const rows: Lease[] = []
    for (const lease of view.scan(index, group, { order: base, key: '' })) {
      if (!isIn(lease.path!)) break
      rows.push(lease)
    }
    return rows
  }
  for (let end = 0; end < glob.base.length; end = glob.base.indexOf('/', end) + 1) {
    const above = glob.base.slice(0, end)
    const key = keyOf(index, group, above)
    let rows = looked.rows.get(key)
    if (!rows) looked.rows.set(key, (rows = collect(above, ({ base }) => base === above)))
    found.push(...rows)
  }
  found.push(...collect(glob.base, ({ base }) => base.startsWith(glob.base)))
  return found as Reservation[]
}

/**
 * Who asks for paths. A process that is named speaks for itself: the hook of an agent is another
 * process than the agent.
 */
export function askerOf(caller: Caller, process: Caller['process']): Caller {
  return { ...caller, process: process ?? caller.process }
}

/**
 * Whether a reservation is the asker's own. As with locks: two processes with one agent id are two,
 * and a defaulted id, which every terminal has, is nobody's unless the process is the same.
 */
export function isOwn({ holder, process }: Lease, asker: Caller): boolean {
  if (holder !== asker.agent) return false
  return process === null ? asker.given : sameProcess(process, asker.process)
}

/** Held by an agent that the asker is nested under. */
export function isParents({ holder }: Lease, asker: Caller): boolean {
  return holder !== asker.agent && admits(holder, asker.agent)
}
