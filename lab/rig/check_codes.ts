import type { Violation } from './check_fences.ts'
import { outagesOf } from './check_waits.ts'
import type { Call, Fact } from './history.ts'

const isOfPower = (fact: Fact) => 'what' in fact && fact.what === 'power'

/** What somebody may be told who asks properly, of a store that is whole. */
const EXPECTED = new Set([
  'held',
  'deadlock',
  'conflict',
  'fence_stale',
  'lease_expired',
  'illegal_move',
  'not_found',
  'rate_limited',
  'unavailable',
  'protocol',
  'SIGKILL',
])

/**
 * Nobody is told of a bug, of damage or of bad input where there was none. Without power nobody is
 * told anything: the disk is gone for a moment before the programs are, and looks damaged to them.
 */
export function checkCodes(calls: Call[], facts: Fact[]): Violation[] {
  const dark = outagesOf(facts.filter(isOfPower), Number.POSITIVE_INFINITY)
  return calls.flatMap(({ code, op, who, door, ended = 0 }) => {
    if (code === undefined || EXPECTED.has(code)) return []
    if (dark.some(([from, until]) => ended >= from && ended <= until)) return []
    return [
      { check: 'answers are those of the contract', says: `${op} of ${who} (${door}): ${code}` },
    ]
  })
}
