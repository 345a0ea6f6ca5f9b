import type { Queue, Share } from '../schema/queue.ts'
import { LOCK_TIMEOUT_MS } from '../bounds.ts'
import { planted } from '../planted.ts'
import type { View } from '../view.ts'

/** `user:alice` → `alice`; undefined for any other lock. */
export function userOf(name: string): string | undefined {
  return name.startsWith('user:') ? name.slice(5) : undefined
}

export const userLock = (user: string) => `user:${user}`

const NEW_QUEUE: Queue = {
  key: 'queue',
  vclock: 0,
  high_streak: 0,
  paused: false,
  user_max: 1,
  lock_timeout_ms: LOCK_TIMEOUT_MS,
  run_ms: null,
}

const NEW_SHARE: Omit<Share, 'user'> = {
  weight: 1,
  max: null,
  running: [],
  pending: 0,
  pending_high: 0,
  waits: false,
  last_ms: 0,
  vt: 0,
  run_ms: null,
  paused: false,
  group: null,
  lanes: 0,
  next_lane: null,
  next_task: null,
  next_high: false,
  turn: null,
}

/** The queue as a whole. */
export function queueOf(view: View): Queue {
  return view.get('queue', 'queue') ?? NEW_QUEUE
}

/** A user's account; a new user begins with an empty one. */
export function shareOf(view: View, user: string): Share {
  return view.get('share', user) ?? { user, ...NEW_SHARE }
}

/** The only way a share is written: keeps true whether it could start its next task now. */
export function putShare(view: View, share: Share): Share {
  const kept = { ...share, waits: share.pending > 0, turn: turnOf(view, share) }
  view.put('share', kept)
  return kept
}

function turnOf(view: View, share: Share): Share['turn'] {
  if (share.next_task === null || share.paused || isBusy(view, share)) return null
  return share.next_high ? 'high' : 'normal'
}

/**
 * When the next task of `user` counts as enqueued. Tasks of one batch share one instant, so within
 * a queue each is put a millisecond behind the one before: first come, first served.
 */
export function nextInQueue(view: View, user: string): number {
  const share = shareOf(view, user)
  const last_ms = Math.max(view.now, share.last_ms + 1)
  putShare(view, { ...share, last_ms })
  return last_ms
}

/** How many tasks of this user may run at once; null: any number. */
export function maxOf(view: View, share: Share): number | null {
  // Tasks that have no user are nobody's: they share no limit.
  return share.user === '' ? null : (share.max ?? queueOf(view).user_max)
}

/** Whether the user has as many running as it may. */
export function isBusy(view: View, share: Share): boolean {
  if (planted('S8')) return false
  const max = maxOf(view, share)
  return max !== null && share.running.length >= max
}

/** Users whose limit something counts against now, with the locks that do. */
export function busyUsers(view: View): Map<string, string[]> {
  const found = new Map<string, string[]>()
  for (const { name, terms } of view.scan('leases_by_expiry', '')) {
    const user = userOf(terms?.limits[0] ?? name)
    if (user === undefined) continue
    const locks = found.get(user)
    if (locks) locks.push(name)
    else found.set(user, [name])
  }
  return found
}

/** Whether `name` is the lock of a user that may have nothing more running. */
export function isBusyUser(view: View, name: string): boolean {
  const user = userOf(name)
  const share = user === undefined ? undefined : view.get('share', user)
  return share !== undefined && isBusy(view, share)
}

/** The lock that keeps others from the lock of a user, where its limit is taken by claims. */
export function busyWith(view: View, name: string): string | undefined {
  const user = userOf(name)
  if (user === undefined) return undefined
  const share = view.get('share', user)
  return share && isBusy(view, share) ? share.running[0] : undefined
}
