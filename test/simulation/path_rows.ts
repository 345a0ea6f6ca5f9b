import type { Lease } from '../../src/core/schema/lock.ts'
import type { Base } from '../../src/stores/port.ts'
import { oracleOf } from '../support/glob_oracle.ts'
import { mustHold } from './broken.ts'

const NAMES = ['a', 'b', 'c']
const below = (paths: string[]) => paths.flatMap((path) => NAMES.map((name) => `${path}/${name}`))

/** Enough to tell the globs of the simulation apart. */
export const PATHS = [...NAMES, ...below(NAMES), ...below(below(NAMES))]

const matched = new Map<string, Set<string>>()

function pathsOf(glob: string): Set<string> {
  let paths = matched.get(glob)
  if (!paths) matched.set(glob, (paths = new Set(PATHS.filter(oracleOf(glob)))))
  return paths
}

/** R27: no path is reserved by two that exclude each other; found by looking at every path. */
export function checkReservations(base: Base): void {
  const leases = base.scan('reservations', '', undefined, 100_000) as Lease[]
  for (const [i, one] of leases.entries()) {
    for (const other of leases.slice(i + 1)) {
      if (!inOnePlace(one, other) || mayBoth(one, other)) continue
      const both = [...pathsOf(one.path!.glob)].find((path) => pathsOf(other.path!.glob).has(path))
      mustHold('R27', both === undefined, () => {
        return `${both} is reserved by ${one.name} and ${other.name}`
      })
    }
  }
}

function inOnePlace(one: Lease, other: Lease): boolean {
  const [here, there] = [one.path!.checkout, other.path!.checkout]
  return here === null || there === null || here === there
}

function mayBoth(one: Lease, other: Lease): boolean {
  if (one.holder === other.holder) return isOneProcess(one, other)
  if (one.path!.shared && other.path!.shared) return true
  // A subagent may have what its parent has; not the other way round.
  const [older, newer] = one.fence < other.fence ? [one, other] : [other, one]
  return newer.holder.startsWith(`${older.holder}/`)
}

/** Two processes of one id are two; and every terminal has the id that nobody gave. */
function isOneProcess(one: Lease, other: Lease): boolean {
  // What was asked for in one call is one terminal's.
  const isOneCall = one.acquired_ms === other.acquired_ms
  if (!one.process || !other.process) return one.holder_given || isOneCall
  return one.process.pid === other.process.pid && one.process.start === other.process.start
}
