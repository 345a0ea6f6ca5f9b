import type { Lease } from '../schema/lock.ts'
import { admits, type Caller, parentsOf } from '../caller.ts'
import { word } from '../quote.ts'
import type { RefusedPath } from '../rows.ts'
import { standing } from './standing.ts'
import { isScoped } from '../token_scope.ts'
import type { View } from '../view.ts'

/*
 * Agents that want each other's files wait for them by trying again: nobody stands in a line, so
 * that no graph of waiters has them. Who was refused is kept with the reservation that was in its
 * way, and whoever is refused next is told of the circle that this closes.
 */

/** One who was refused this long ago has given up, or would have tried again. */
const TRIES_MS = 5 * 60_000
/** Somebody who tries again and again is not written down each time. */
const AGAIN_MS = 10_000
/** Of one reservation: the oldest make room. */
const WANTED_MAX = 8
/** Agents that are gone through from one refusal. */
const AGENTS_MAX = 100

/** One agent of a circle: it wants `path`, which the holder of `lease` has. */
export interface Want {
  agent: string
  path: string
  lease: Lease
}

/** Writes down that `agent` was refused `path` because of a reservation. */
export function markWanted(view: View, name: string, agent: string, path: string): void {
  const lease = view.get('lease', name)
  if (!lease?.path) return
  const known = wantedOf(view, lease)
  const last = known.find((each) => each.by === agent && each.path === path)
  if (last && view.now - last.at_ms < AGAIN_MS) return
  const others = known.filter((each) => each !== last)
  const wanted = [...others, { by: agent, path, at_ms: view.now }].slice(-WANTED_MAX)
  view.put('lease', { ...lease, path: { ...lease.path, wanted } })
}

const wantedOf = (view: View, { path }: Lease): RefusedPath[] =>
  path?.wanted?.filter(({ at_ms }) => Math.abs(view.now - at_ms) < TRIES_MS) ?? []

/**
 * The circle that `first` closes: who wants what its agent has, who wants what that one has, back
 * to the holder of what it wants itself. An agent has what those above it have, too.
 */
export function circleOf(view: View, first: Want): Want[] | undefined {
  const seen = new Set([first.agent])
  const ways: [agent: string, steps: Want[]][] = [[first.agent, []]]
  for (const [agent, steps] of ways) {
    for (const step of wantedFrom(view, agent)) {
      if (seen.has(step.agent)) continue
      seen.add(step.agent)
      const way = [step, ...steps]
      if (admits(first.lease.holder, step.agent)) return [first, ...way]
      if (ways.length < AGENTS_MAX) ways.push([step.agent, way])
    }
  }
  return undefined
}

function* wantedFrom(view: View, agent: string): Generator<Want> {
  for (const holder of [agent, ...parentsOf(agent)]) {
    for (const lease of view.scan('leases_held_by', holder)) {
      if (standing(view, lease) !== 'live') continue
      for (const { by, path } of wantedOf(view, lease)) yield { agent: by, path, lease }
    }
  }
}

/** Whoever came last to what it has has the least in it. */
export const lastOf = (circle: readonly Want[]): Lease =>
  circle.map(({ lease }) => lease).reduce((a, b) => (b.fence > a.fence ? b : a))

/** One sentence for each: who waits for what, and who has it. */
export const sentencesOf = (circle: readonly Want[]): string[] =>
  circle.map(({ agent, path, lease }) => {
    return `${word(agent)} waits for ${word(path)}, which ${word(lease.holder)} has`
  })

/** All circles there are now. For a token that is bound there are none: they would name others. */
export function circles(view: View, caller: Caller, leases: Iterable<Lease>): Want[][] {
  if (isScoped(caller)) return []
  const found = new Map<string, Want[]>()
  for (const lease of leases) {
    if (standing(view, lease) !== 'live') continue
    for (const { by, path } of wantedOf(view, lease)) {
      const circle = circleOf(view, { agent: by, path, lease })
      const name = circle
        ?.map(({ agent }) => agent)
        .toSorted()
        .join('\n')
      if (circle && !found.has(name!)) found.set(name!, circle)
    }
  }
  return [...found.values()]
}
