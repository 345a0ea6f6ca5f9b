import type { Limit, Parking, Share } from '../schema/queue.ts'
import type { Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import { RUN_MS_GUESS, RUN_MS_MIN } from '../bounds.ts'
import { headOf } from '../locks/line.ts'
import { planted } from '../planted.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import type { Terms } from '../rows.ts'
import { isResource } from './rows.ts'
import { busyWith, isBusy, maxOf, putShare, queueOf, shareOf, userLock, userOf } from './share.ts'
import { expiryOf } from '../locks/standing.ts'
import type { View } from '../view.ts'

export const POOL = 'pool'
/** Stands for the queue as a whole, which may be paused. */
const QUEUE = 'queue'
export const projectLimit = (project: string) => `project:${project}`
export const unserved = (project: string) => `unserved:${project}`
export const groupLimit = (group: string) => `group:${group}`

/** So that a start costs the same on however many limits its user is parked. */
const PARKINGS_RAISED_MAX = 8

const NEW_LIMIT: Omit<Limit, 'key'> = {
  max: null,
  used: 0,
  paused: false,
  parked: 0,
  wakes: null,
}

/** A counter by its key; one that nothing was ever counted on is empty. */
export function limitOf(view: View, key: string): Limit {
  return view.get('limit', key) ?? { key, ...NEW_LIMIT }
}

/** The only way a limit is written: keeps true whether it could wake a parked lane. */
export function putLimit(view: View, limit: Limit): void {
  view.put('limit', { ...limit, wakes: wakesOf(limit) })
}

function wakesOf(limit: Limit): Limit['wakes'] {
  if (limit.parked === 0) return null
  if (hasRoom(limit)) return 'room'
  return limit.key.startsWith(unserved('')) ? 'unserved' : null
}

/** Whether the queue may start one more. */
export const hasRoom = (limit: Limit) => !limit.paused && isBelowMax(limit)

const isBelowMax = ({ max, used }: Limit) => max === null || used < max

/** The counters, besides the user's, that a claim of `task` takes from. */
function countersOf(task: Task): string[] {
  const keys: string[] = []
  if (task.project !== null) keys.push(projectLimit(task.project))
  if (task.group !== null) keys.push(groupLimit(task.group))
  if (task.queue) keys.push(POOL)
  return keys
}

/** The first counter besides the user's that has no room for `task`. */
export function fullCounter(view: View, task: Task): string | undefined {
  return countersOf(task).find((key) => !fits(view, key, task))
}

/** A pause stops the queue, not an agent that takes other work. */
function fits(view: View, key: string, task: Task): boolean {
  const limit = view.get('limit', key)
  if (!limit || planted('S8')) return true
  return task.queue ? hasRoom(limit) : isBelowMax(limit)
}

/** Any limit that keeps `task` from being claimed now, `user:NAME` among them. */
export function fullLimit(view: View, task: Task): string | undefined {
  if (task.queue && queueOf(view).paused) return QUEUE
  if (task.user !== null) {
    const lock = userLock(task.user)
    const share = shareOf(view, task.user)
    if (isBusy(view, share) || headOf(view, lock)) return lock
    if (task.queue && share.paused) return lock
  }
  return fullCounter(view, task)
}

/**
 * Counts a claim against every limit of its task, or refuses with `held`. The lease remembers what
 * was taken, and gives it back when it ends.
 */
export function takeLimits(view: View, task: Task, lease: Lease): Lease {
  if (lease.terms) return lease
  const full = fullLimit(view, task)
  if (full !== undefined) throw limitFull(view, task, full)
  const limits = countersOf(task)
  for (const key of limits) count(view, key, 1)
  if (task.user !== null) limits.unshift(userLock(task.user))
  if (limits.length === 0) return lease
  const charged_ms = chargeStart(view, task, lease.name)
  const until_ms = endOf(view, task)
  const terms: Terms = { limits, since_ms: view.now, until_ms, charged_ms }
  const bound = { ...lease, terms, expires_ms: expiryOf(view.now, lease.ttl_ms, terms) }
  view.put('lease', bound)
  return bound
}

/** A run is bounded by its task's own limit and, where it keeps a user busy, by the queue's. */
function endOf(view: View, task: Task): number | null {
  const bounds: number[] = []
  if (task.queue?.time_limit_ms) bounds.push(task.queue.time_limit_ms)
  if (task.user !== null) bounds.push(queueOf(view).lock_timeout_ms)
  return bounds.length === 0 ? null : view.now + Math.min(...bounds)
}

function count(view: View, key: string, step: 1 | -1): void {
  const limit = limitOf(view, key)
  putLimit(view, { ...limit, used: limit.used + step })
}

/** The share pays in advance what a run is likely to take; null for what is not of the queue. */
function chargeStart(view: View, task: Task, lock: string): number | null {
  if (task.user === null && !task.queue) return null
  const share = shareOf(view, task.user ?? '')
  const running = task.user === null ? share.running : [...share.running, lock]
  if (!task.queue) {
    putShare(view, { ...share, running })
    return null
  }
  const queue = queueOf(view)
  const charged_ms = Math.max(RUN_MS_MIN, share.run_ms ?? queue.run_ms ?? RUN_MS_GUESS)
  const vt = startTag(view, share) + charged_ms / share.weight
  putShare(view, { ...share, running, vt })
  moveParkings(view, share, vt)
  return charged_ms
}

/**
 * Parkings at a limit are ordered by virtual time, so that waking the next one needs no search.
 * If the user's time rose, only a few are moved here, because a user may be parked on many limits;
 * the others are moved when their turn comes. If it fell, all are moved, or it would come too late.
 */
function moveParkings(view: View, { user, vt: before }: Share, vt: number): void {
  const found: Parking[] = []
  for (const parking of view.scan('parkings_of', user)) {
    if (vt >= before && found.length === PARKINGS_RAISED_MAX) break
    found.push(parking)
  }
  for (const parking of found) {
    if (vt >= before || vt < parking.vt) view.put('parking', { ...parking, vt })
  }
}

/** Where a start of this share stands in virtual time: waiting idle earns nothing. */
function startTag(view: View, share: Share): number {
  return Math.max(share.vt, queueOf(view).vclock)
}

/** Gives back all counters that a lease counts against, exactly once: when it ends. */
export function returnLimits(view: View, lease: Lease): void {
  if (!lease.terms) return
  const { limits, since_ms, charged_ms, token_hash } = lease.terms
  if (token_hash !== undefined) view.remove('token', token_hash)
  for (const key of limits) {
    const user = userOf(key)
    if (user === undefined && !isResource(key)) count(view, key, -1)
    else if (user !== undefined) returnUser(view, user, lease.name)
  }
  const user = limits.map(userOf).find((each) => each !== undefined) ?? ''
  if (charged_ms !== null) chargeEnd(view, user, view.now - since_ms, charged_ms)
}

/** One claim, or lock taken by hand, less for this user. */
export function returnUser(view: View, user: string, lock: string): void {
  const share = shareOf(view, user)
  putShare(view, { ...share, running: share.running.filter((each) => each !== lock) })
}

/** What was charged is made good for what the run really took, and the estimate learns from it. */
function chargeEnd(view: View, user: string, took_ms: number, charged_ms: number): void {
  const share = shareOf(view, user)
  const cost_ms = Math.max(RUN_MS_MIN, took_ms)
  const vt = share.vt + (cost_ms - charged_ms) / share.weight
  putShare(view, { ...share, vt, run_ms: average(share.run_ms, cost_ms) })
  moveParkings(view, share, vt)
  const queue = queueOf(view)
  view.put('queue', { ...queue, run_ms: average(queue.run_ms, cost_ms) })
}

const average = (before: number | null, next: number) =>
  before === null ? next : before + (next - before) / 8

/** `held`, with the limit that is full and, for a user, what it is busy with. */
function limitFull(view: View, task: Task, key: string): Refusal {
  const busy = busyWith(view, key)
  const lease = busy === undefined ? undefined : view.get('lease', busy)
  const limit = limitOf(view, key)
  const user = userOf(key)
  const why =
    key === QUEUE
      ? 'the queue is paused'
      : user === undefined
        ? whyFull(limit)
        : whyBusy(view, user, busy)
  return new Refusal('held', `Task ${task.id} has to wait: ${why}`, {
    next: {
      says: 'Take other work, or see why',
      operation: 'task.explain',
      input: { id: task.id },
    },
    details: {
      name: key,
      task_id: task.id,
      holder: lease?.holder ?? null,
      ...(busy !== undefined && { busy_with: busy }),
      ...(user === undefined && { max: limit.max, used: limit.used }),
      by_you: false,
    },
  })
}

function whyBusy(view: View, user: string, busy: string | undefined): string {
  if (busy !== undefined) return `user ${word(user)} is busy with ${busy.replace(':', ' ')}`
  const share = shareOf(view, user)
  if (share.paused) return `the queue of user ${word(user)} is paused`
  if (isBusy(view, share)) return `user ${word(user)} may have ${maxOf(view, share)} running`
  return `the lock of user ${word(user)} is promised to one who waited for it`
}

/** In words, what keeps a counter from admitting one more. */
export function whyFull({
  key,
  max,
  used,
  paused,
}: Pick<Limit, 'key' | 'max' | 'used' | 'paused'>): string {
  const what = key === POOL ? 'the pool' : key.replace(':', ' ')
  if (paused) return `${what} is paused`
  if (isResource(key)) return `every value of ${what} is lent: ${used} of ${max}`
  return `${what} is at its limit: ${used} of ${max} running`
}
