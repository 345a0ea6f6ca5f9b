import type { Run, Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import { admits, type Caller } from '../caller.ts'
import {
  checkFence,
  endLease,
  isRunning,
  lockOf,
  revokeLease,
  settleLease,
  taskOf,
} from '../locks/lease.ts'
import { forceRelease } from '../locks/lock.ts'
import { cancelHeld, isGivenUp, setStatus } from '../tasks/move.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import type { Status } from '../rows.ts'
import { busyWith, shareOf, userOf } from './share.ts'
import { busyLease, holdingLease } from '../locks/standing.ts'
import { getTask } from '../tasks/task.ts'
import { NeedsKill, type View } from '../view.ts'

interface Cancel {
  id: string
  fence?: number | undefined
}

/**
 * Cancels a task, waiting or running. A command that we started for it is stopped first, and its
 * lock and limits come back when nothing of it is left. A holder states its fence, as for every
 * write under a lease. Refuses `forbidden` for an agent that is neither the holder, the creator nor
 * an admin once somebody has begun the task, and `illegal_move` when it has ended already.
 */
export function cancelTask(view: View, { id, fence }: Cancel, caller: Caller): Task {
  const lease = settleLease(view, lockOf(id))
  const task = getTask(view, id)
  const ended = ENDED.has(task.status)
  if (ended && !(lease && isRunning(view, lease))) {
    // Decided again after its command was stopped: the task is cancelled already.
    if (task.status === 'cancelled') return task
    throw new Refusal('illegal_move', `Task ${id} is ${task.status}: there is nothing to cancel`, {
      next: { says: 'See it', operation: 'task.get', input: { id } },
      details: { task_id: id, status: task.status },
    })
  }
  if (fence !== undefined) checkFence(view, lockOf(id), fence, caller)
  // Anyone may cancel a task that nobody has begun; a task in review is somebody's work.
  if (lease || task.status !== 'todo') refuseStranger(view, task, lease, caller, fence)
  if (!lease) return setStatus(view, task, 'cancelled', caller)
  if (!ended) return cancelHeld(view, task, lease, caller).task
  // Its agent has moved it already; what is left to end is the command.
  revokeLease(view, lease, 'cancelled')
  return task
}

const ENDED: ReadonlySet<Status> = new Set(['done', 'failed', 'cancelled'])

function refuseStranger(
  view: View,
  task: Task,
  lease: Lease | undefined,
  caller: Caller,
  fence: number | undefined,
): void {
  const { id, created_by } = task
  if (caller.admin || created_by === caller.agent) return
  if (!lease || !admits(lease.holder, caller.agent)) {
    const what = lease ? `is being worked on by ${word(lease.holder)}` : `is in ${task.status}`
    throw new Refusal('forbidden', `Task ${id} ${what}`, {
      next: lease
        ? `Its holder, its creator (${word(created_by)}) or an admin may cancel it.`
        : `Its creator (${word(created_by)}) or an admin may; or take its lock first.`,
      details: { task_id: id, holder: lease?.holder ?? null, created_by },
    })
  }
  // Another process of the same agent id is not the holder.
  checkFence(view, lease.name, fence, caller)
}

/** Puts a failed or cancelled task back into the queue, as if it had never been run. */
export function retryTask(view: View, id: string, caller: Caller): Task {
  const task = getTask(view, id)
  if (!task.queue) {
    throw new Refusal('illegal_move', `Task ${id} was never enqueued`, {
      next: {
        says: 'Put it back for agents to claim',
        operation: 'task.status',
        input: { id, status: 'todo' },
      },
      details: { task_id: id },
    })
  }
  if (!isGivenUp(task.status)) {
    const now = task.status.replace('_', ' ')
    throw new Refusal('illegal_move', `Task ${id} cannot be tried again: it is ${now}`, {
      next: 'Only a task that failed or was cancelled can be.',
      details: { task_id: id, status: task.status },
    })
  }
  return setStatus(view, task, 'todo', caller)
}

/**
 * An admin ends what keeps a user busy: the run of `task_id`, or all of them. Returns the tasks
 * that were cancelled; a lock of the user that was taken by hand is freed too.
 */
export function releaseUser(
  view: View,
  ask: { user: string; task_id?: string | undefined },
  caller: Caller,
): string[] {
  const { running } = shareOf(view, ask.user)
  const wanted = ask.task_id === undefined ? running : [lockOf(ask.task_id)]
  const found = wanted.filter((name) => running.includes(name))
  if (found.length === 0) {
    const what = ask.task_id === undefined ? 'nothing' : `no task ${ask.task_id}`
    throw new Refusal('not_found', `User ${word(ask.user)} has ${what} running`, {
      next: { says: 'See who is busy', operation: 'queue.status' },
      details: { user: ask.user, running },
    })
  }
  const cancelled: string[] = []
  for (const name of found) {
    const id = taskOf(name)
    if (id !== undefined) cancelled.push(id)
    withoutWaiting(() =>
      id === undefined ? forceRelease(view, { name }, caller) : cancelTask(view, { id }, caller),
    )
  }
  return cancelled
}

/**
 * Takes a lease back without waiting for its command to end: the process that commits this stops
 * the command. For asks that would find nothing left to do if they were decided again.
 */
function withoutWaiting(take: () => unknown): void {
  try {
    take()
  } catch (stopped) {
    if (!(stopped instanceof NeedsKill && stopped.commits)) throw stopped
  }
}

/** Frees a lock for an admin; a claim that keeps the user of a `user:` lock busy is cancelled. */
export function freeLock(
  view: View,
  ask: { name: string; reason?: string | undefined },
  caller: Caller,
): Lease {
  const user = userOf(ask.name)
  const busy = busyLease(view, ask.name)
  const task_id = busyTask(view, ask.name)
  if (user === undefined || !busy || task_id === undefined) return forceRelease(view, ask, caller)
  releaseUser(view, { user, task_id }, caller)
  return busy
}

/** The task that keeps a user busy, unless somebody holds the user's lock by hand. */
export function busyTask(view: View, name: string): string | undefined {
  const busy = holdingLease(view, name) ? undefined : busyWith(view, name)
  return busy === undefined ? undefined : taskOf(busy)
}

export interface CleanUp {
  /** Runs that take longer than this are ended too. */
  older_than_ms?: number | undefined
  project?: string | undefined
}

/**
 * Settles runs that are stale: their process is gone, their lease is over, or they take longer than
 * asked for. Kill first, then free: what still runs can write no more from now on, and its lock and
 * limits come back when it is gone.
 */
export function cleanUp(view: View, ask: CleanUp, caller: Caller): Run[] {
  const settled: Run[] = []
  for (const { name } of [...view.scan('leases_by_expiry', '')]) {
    const task = view.get('task', taskOf(name) ?? '')
    const run = task?.run_id ? view.get('run', task.run_id) : undefined
    if (!task || !run || (ask.project !== undefined && task.project !== ask.project)) continue
    const lease = settleLease(view, name)
    if (lease && isOld(view, lease, ask)) endLate(view, lease, caller)
    else if (lease) continue
    settled.push(view.get('run', run.id) ?? run)
  }
  return settled
}

function isOld(view: View, lease: Lease, { older_than_ms }: CleanUp): boolean {
  const since_ms = lease.terms?.since_ms ?? lease.acquired_ms
  return older_than_ms !== undefined && view.now - since_ms > older_than_ms
}

/**
 * The run is lost, and counts towards quarantine, or a task that always takes too long would be run
 * for ever.
 */
function endLate(view: View, lease: Lease, caller: Caller): void {
  if (!isRunning(view, lease)) return endLease(view, lease, 'overdue', caller.agent)
  withoutWaiting(() => revokeLease(view, lease, 'overdue'))
  const task = taskOf(lease.name) ?? null
  const data = { fence: lease.fence, holder: lease.holder, reason: 'took too long' }
  view.record('lease.revoked', { agent: caller.agent, lock: lease.name, task }, data)
}
