import type { Queued } from './rows.ts'
import type { Lane, Share } from '../schema/queue.ts'
import type { Task, TaskFields } from '../schema/task.ts'
import type { Caller } from '../caller.ts'
import {
  type Claim,
  type ClaimAsk,
  claimNext,
  type ClaimFilter,
  startTask,
} from '../tasks/claim.ts'
import { parkLane, scopeOfLane, wakeLanes } from './lane.ts'
import { type Grant, lockOf } from '../locks/lease.ts'
import { fullCounter, hasRoom, limitOf, POOL, putLimit, unserved } from './limit.ts'
import { HIGH_STREAK_MAX } from '../bounds.ts'
import { headOf } from '../locks/line.ts'
import { blockedBy } from '../locks/lock.ts'
import { isPending } from '../tasks/ready.ts'
import { Refusal } from '../refusal.ts'
import { emptyOf, resourcesFor } from './resource.ts'
import { queueOf, shareOf, userLock } from './share.ts'
import { liveLease } from '../locks/standing.ts'
import { createTask, getTask } from '../tasks/task.ts'
import { sightOf } from '../sight.ts'
import { isScoped } from '../token_scope.ts'
import type { View } from '../view.ts'

/**
 * The queue: start-time fair queueing between users.
 *
 * Every user has a share with a virtual time: the run time it was charged, divided by its weight.
 * The share that is furthest behind is served next, at the start tag max(its time, the queue's
 * clock). The clock is where the share furthest behind stood at the last start; so a user who was
 * idle gets a turn at once, but no credit for the past. A start is charged an estimate, which is
 * corrected when the run has ended.
 *
 * High priority goes before others, but takes at most three of four starts that both want. Within a
 * share tasks come by rank, in which waiting counts as much as priority.
 */

/** Adds a task to the queue of its user. Refuses what `createTask` refuses. */
export function enqueueTask(
  view: View,
  ask: TaskFields & { id?: string | undefined; queue: Queued },
  caller: Caller,
): { task: Task; position: number } {
  const task = createTask(view, ask, caller)
  return { task, position: positionOf(sightOf(view, caller), task) }
}

/** The place of a waiting task in the queue of its user, from 1; 0 if it does not wait there. */
export function positionOf(view: View, task: Task): number {
  if (!isPending(task)) return 0
  const user = task.user ?? ''
  const ahead = view.scan('queue_of', user)[Symbol.iterator]()
  const cursor = { order: task.rank, key: task.id }
  const behind = view.scan('queue_of', user, cursor)[Symbol.iterator]()
  // From both ends: the newest task is usually the last, an urgent one near the front.
  for (let steps = 0; ; steps += 1) {
    const first = ahead.next()
    if (first.done || first.value.id === task.id) return steps + 1
    if (behind.next().done && !view.isPartial) return shareOf(view, user).pending - steps
  }
}

export interface QueuedAsk extends Grant {
  /** Who the claim is for; a run's agent is named after its task. */
  as: (task: Task) => Caller
  /** Projects that the caller can run; undefined: any. */
  projects?: ReadonlySet<string> | undefined
  /** A dispatcher asks: lanes of a project that no dispatcher serves are parked until one does. */
  dispatches?: boolean
  /** Whose resources a run would be lent. */
  host?: string
}

/**
 * Claims the task whose turn it is, with its lock and all its limits; undefined when there is none
 * that could start. Costs the same however many tasks or users wait or are blocked: a lane that
 * meets a full limit is parked there and not looked at again until the limit has room.
 */
export function claimQueued(view: View, ask: QueuedAsk): Claim | undefined {
  if (queueOf(view).paused || !hasRoom(limitOf(view, POOL))) return undefined
  wake(view, ask)
  const passed = new Set<string>()
  for (let turns = new Turns(view, passed); ;) {
    const turn = turns.next()
    const claim = turn && serve(view, turn.share, ask)
    if (turn && claim && claim !== 'again') {
      advance(view, turn)
      return claim
    }
    if (turn && !claim) {
      passed.add(turn.share.user)
      continue
    }
    // Lanes that were parked or woken have changed whose turn it is.
    if (!turn) {
      if (!wake(view, ask)) return undefined
      passed.clear()
    }
    turns = new Turns(view, passed)
  }
}

/**
 * What an agent gets that names no task, up to `max` of them: the next ready ones and, if it takes
 * enqueued ones too, whatever is next in the queue. Refuses `invalid` for a filter that the queue
 * does not know, but only an agent that got nothing: what is ready is not taken back.
 */
export function claimAny(
  view: View,
  filter: ClaimFilter,
  ask: ClaimAsk,
  caller: Caller,
  max: number,
): Claim[] {
  const claims = claimNext(view, filter, ask, caller, max)
  const refusal = ask.queued ? notFromQueue(filter, caller) : undefined
  if (refusal && claims.length === 0) throw refusal
  if (!ask.queued || refusal) return claims
  const { project } = filter
  const projects = project === undefined ? undefined : new Set([project])
  while (claims.length < max) {
    const claim = claimQueued(view, { ...ask, projects, as: () => caller })
    if (!claim) break
    claims.push(claim)
  }
  return claims
}

function notFromQueue({ label, priority }: ClaimFilter, caller: Caller): Refusal | undefined {
  if (isScoped(caller)) return byIdOnly()
  return label === undefined && priority === undefined ? undefined : unfiltered()
}

function byIdOnly(): Refusal {
  const what = 'The queue serves all users in turn, and this token is bound to some'
  return new Refusal('forbidden', what, { next: 'Claim an enqueued task by its id.' })
}

function unfiltered(): Refusal {
  const what = 'The queue decides whose turn it is: it takes no label or priority'
  return new Refusal('invalid', what, { next: 'Leave them out, or claim a task by its id.' })
}

/** An agent that asks for itself may also take what no dispatcher serves. */
function wake(view: View, { dispatches }: QueuedAsk): boolean {
  const room = wakeLanes(view, 'room')
  return (!dispatches && wakeLanes(view, 'unserved')) || room
}

interface Turn {
  share: Share
  /** High priority and others both want this start. */
  contested: boolean
  /** Virtual time of the share that is furthest behind, of high priority or not. */
  least_vt: number
}

/** Whose turn it is, one after the other: those who cannot be served are passed over. */
class Turns {
  private readonly high: Iterator<Share>
  private readonly normal: Iterator<Share>
  private readonly yields: boolean
  private heads: { high: Share | undefined; normal: Share | undefined }

  constructor(
    view: View,
    private readonly passed: ReadonlySet<string>,
  ) {
    this.yields = queueOf(view).high_streak >= HIGH_STREAK_MAX
    this.high = view.scan('shares_in_turn', 'high')[Symbol.iterator]()
    this.normal = view.scan('shares_in_turn', 'normal')[Symbol.iterator]()
    this.heads = { high: this.high.next().value, normal: this.normal.next().value }
  }

  /** The share furthest behind; of high priority, unless it is the others' turn. */
  next(): Turn | undefined {
    for (const band of ['high', 'normal'] as const) {
      while (this.heads[band] && this.passed.has(this.heads[band].user)) {
        this.heads[band] = this[band].next().value
      }
    }
    const { high, normal } = this.heads
    const share = high && normal ? (this.yields ? normal : high) : (high ?? normal)
    if (!share) return undefined
    const least_vt = Math.min(high?.vt ?? Infinity, normal?.vt ?? Infinity)
    return { share, contested: high !== undefined && normal !== undefined, least_vt }
  }
}

/**
 * The clock moves to where the share furthest behind stood. That is the one that was served, unless
 * a high priority went first: that must not take from the others the time they are behind.
 */
function advance(view: View, { share, contested, least_vt }: Turn): void {
  const queue = queueOf(view)
  const streak = share.turn === 'high' ? queue.high_streak + 1 : 0
  const vclock = Math.max(queue.vclock, least_vt)
  view.put('queue', { ...queue, vclock, high_streak: contested ? streak : queue.high_streak })
}

/**
 * Starts the next task of a share. `again` when a lane had to be parked, which may have changed
 * whose turn it is; undefined when this share cannot be served by the caller now.
 */
function serve(view: View, share: Share, ask: QueuedAsk): Claim | 'again' | undefined {
  // An agent that waits for the lock of this user comes before the user's tasks.
  if (share.user !== '' && headOf(view, userLock(share.user))) return undefined
  const lane = laneFor(view, share, ask)
  if (lane === 'parked') return 'again'
  if (!lane) return undefined
  const task = getTask(view, lane.head_task!)
  const full = fullCounter(view, task)
  const lacks = full === undefined ? lackingFor(view, task, ask) : undefined
  // Another host may have what this one lacks.
  if (lacks !== undefined && isServedElsewhere(view, lane, ask.host)) {
    return startBeside(view, lane, ask)
  }
  if (full !== undefined || lacks !== undefined) {
    parkLane(view, lane, full ?? lacks!)
    return 'again'
  }
  return startIn(view, lane, ask) ?? startBeside(view, lane, ask)
}

/** What a run of the task would be lent here, and every value of which is lent. */
const lackingFor = (view: View, task: Task, { host }: QueuedAsk) =>
  host === undefined ? undefined : emptyOf(resourcesFor(view, host, task))?.key

/** All tasks of a lane are promised to others: the next lane of the same user that has room. */
function startBeside(view: View, lane: Lane, ask: QueuedAsk): Claim | undefined {
  for (const other of view.scan('lanes_of', lane.user)) {
    if (other.key === lane.key || !isServed(other, ask)) continue
    const task = getTask(view, other.head_task!)
    const full = fullCounter(view, task) ?? lackingFor(view, task, ask)
    const claim = full === undefined ? startIn(view, other, ask) : undefined
    if (claim) return claim
  }
  return undefined
}

/** Starts the task of a lane whose turn it is. */
function startIn(view: View, lane: Lane, ask: QueuedAsk): Claim | undefined {
  const task = choose(view, lane, ask)
  return task && startTask(view, task, ask, ask.as(task), ['todo'])
}

/** The first task of a lane whose own lock is not promised to one who waits for it. */
function choose(view: View, lane: Lane, ask: QueuedAsk): Task | undefined {
  for (const { task_id } of view.scan('ready_in_lane', scopeOfLane(lane.key))) {
    const task = getTask(view, task_id)
    if (!blockedBy(view, lockOf(task.id), { takeover: false }, ask.as(task))) return task
  }
  return undefined
}

/** The next lane of a share that the caller can run. One that nobody serves is parked. */
function laneFor(view: View, share: Share, ask: QueuedAsk): Lane | 'parked' | undefined {
  const next = view.get('lane', share.next_lane!)
  if (!next || isServed(next, ask)) return next
  if (ask.dispatches && !isServedElsewhere(view, next)) {
    const key = unserved(next.project ?? '')
    putLimit(view, { ...limitOf(view, key), paused: true })
    parkLane(view, next, key)
    return 'parked'
  }
  for (const lane of view.scan('lanes_of', share.user)) if (isServed(lane, ask)) return lane
  return undefined
}

const isServed = (lane: Lane, { projects }: QueuedAsk) =>
  projects === undefined || projects.has(lane.project ?? '')

function isServedElsewhere(view: View, lane: Lane, besides?: string): boolean {
  for (const dispatcher of view.scan('dispatchers', '')) {
    if (dispatcher.host === besides) continue
    const alive = liveLease(view, dispatcher.id) !== undefined
    if (alive && dispatcher.projects.includes(lane.project ?? '')) return true
  }
  return false
}
