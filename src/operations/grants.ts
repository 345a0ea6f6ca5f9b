import { lockOf } from '../core/locks/lease.ts'
import type { ShownLease } from './locks.ts'
import type { Operation } from './operation.ts'

type Input = Record<string, unknown>

/**
 * The leases that a reply grants and ends, for doors that remember fences. A lease that was lost is
 * not ended here: a write under it must be refused as stale, not taken for a new write.
 */
export function grantsIn(operation: Operation, input: Input, reply: unknown) {
  if (operation.effect === 'read' || !isObject(reply)) return { granted: [], ended: [] }
  const claims = Array.isArray(reply['claims']) ? (reply['claims'] as Input[]) : [reply]
  const items = Array.isArray(reply['items'])
    ? reply['items']
    : [reply, ...claims.map(({ lease }) => lease)]
  const lock = lockIn(operation, input)
  const isPassedOn = 'to' in operation.input
  const gone = isPassedOn || reply['released'] === true || reply['lease'] === null
  const released = items.filter(isReleased).map(({ name }) => name)
  return {
    ended: gone && lock !== undefined ? [lock, ...released] : released,
    // A heartbeat shows what others were granted under the same agent id.
    granted: isPassedOn || !('fence' in operation.input || operation.grants) ? [] : leases(items),
  }
}

/** The lock that an operation writes under: named, or that of its task. */
export function lockIn(operation: Operation, input: Input): string | undefined {
  if (typeof input['name'] === 'string') return input['name']
  const task = input['id'] ?? input['task_id']
  return 'fence' in operation.input && typeof task === 'string' ? lockOf(task) : undefined
}

function leases(items: unknown[]): ShownLease[] {
  return items.filter((each): each is ShownLease => {
    // A run names its lock too, and is no lease.
    return isObject(each) && 'lock_id' in each && 'name' in each
  })
}

function isReleased(value: unknown): value is { name: string } {
  return isObject(value) && value['released'] === true && typeof value['name'] === 'string'
}

function isObject(value: unknown): value is Input {
  return typeof value === 'object' && value !== null
}
