import type { Violation } from './check_fences.ts'
import type { Call } from './history.ts'

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

/** Nobody is told of a bug, of damage or of bad input where there was none. */
export function checkCodes(calls: Call[]): Violation[] {
  return calls.flatMap(({ code, op, who, door }) => {
    if (code === undefined || EXPECTED.has(code)) return []
    return [
      { check: 'answers are those of the contract', says: `${op} of ${who} (${door}): ${code}` },
    ]
  })
}
