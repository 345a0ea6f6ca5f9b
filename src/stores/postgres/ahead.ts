import { scopeOfLane } from '../../core/queue/lane.ts'
import { lockOf } from '../../core/locks/lease.ts'
import { projectLimit } from '../../core/queue/limit.ts'
import { keyOf, type TableName } from '../../core/rows.ts'
import type { Lane, Parking, Share } from '../../core/queue/rows.ts'
import { userLock } from '../../core/queue/share.ts'
import type { Need } from '../../core/view.ts'

/**
 * Tables that are empty unless somebody waits or depends on something. Known to be so, they spare
 * every claim several looks for what is not there.
 */
export const OFTEN_EMPTY: readonly TableName[] = ['place', 'ticket', 'dependency', 'parking']

/**
 * What a claim for this share will look at. The rule asks for one after the other, and each claim
 * of a batch only once the one before is decided: without this, a claim costs a round trip.
 */
export function neededFor({ user, next_lane, next_task }: Share): Need[] {
  if (next_lane === null || next_task === null) return []
  return [
    { table: 'lane', key: next_lane },
    { table: 'task', key: next_task },
    { table: 'lease', key: lockOf(next_task) },
    { table: 'lease', key: userLock(user) },
    { index: 'line_of', group: userLock(user) },
    { index: 'line_of', group: lockOf(next_task) },
    { index: 'ready_in_lane', group: scopeOfLane(next_lane), limit: 2 },
    { index: 'lanes_of', group: user, limit: 4 },
    { index: 'parkings_of', group: user, limit: 4 },
  ]
}

/**
 * What a claim looks at in one lane of a share. A lane that meets a full limit is parked, and the
 * next one of the same user is tried: so this is wanted of each, not of the first alone.
 */
export function neededIn({ key, user, project, head_task }: Lane): Need[] {
  if (head_task === null) return []
  const parked = keyOf(projectLimit(project ?? ''), user)
  return [
    { table: 'task', key: head_task },
    { table: 'lease', key: lockOf(head_task) },
    { index: 'lanes_parked_at', group: parked },
    { index: 'line_of', group: lockOf(head_task) },
    { index: 'ready_in_lane', group: scopeOfLane(key), limit: 2 },
  ]
}

/** What is looked at when a limit has room and this user is the next to be woken there. */
export function neededAt({ key, user }: Parking): Need[] {
  return [
    { table: 'share', key: user },
    { index: 'lanes_parked_at', group: key },
    { index: 'lanes_of', group: user },
    { index: 'parkings_of', group: user },
  ]
}
