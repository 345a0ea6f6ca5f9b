import type { Caller } from './caller.ts'
import { endLease, isRunning, lockOf, revokeLease, settleLease, taskOf } from './lease.ts'
import { forceRelease } from './lock.ts'
import { cancelHeld, setStatus } from './move.ts'
import { Refusal } from './refusal.ts'
import type { Lease, Run, Task } from './rows.ts'
import { shareOf } from './share.ts'
import { getTask } from './task.ts'
import { NeedsKill, type View } from './view.ts'

/**
 * Cancels a task, waiting or running. A command that we started for it is stopped first, and its
 * lock and limits come back when nothing of it is left. Refuses `forbidden` for whoever is neither
 * its holder, its creator nor an admin, and `illegal_move` when it is over already.
 */
export function cancelTask(view: View, id: string, caller: Caller): Task {
  const lease = settleLease(view, lockOf(id))
  const task = getTask(view, id)
  const runs = lease !== undefined && isRunning(view, lease)
  if (task.status === 'cancelled' && !runs) return task
  if (isOver(task) && !runs) {
    throw new Refusal('illegal_move', `Task ${id} is ${task.status}: there is nothing to cancel`, {
      next: `See it: leasehold task show ${id}`,
      details: { task_id: id, status: task.status },
    })
  }
  if (!lease) return setStatus(view, task, 'cancelled', caller)
  const mayCancel = caller.admin || [lease.holder, task.created_by].includes(caller.agent)
  if (!mayCancel) {
    throw new Refusal('forbidden', `Task ${id} is being worked on by ${lease.holder}`, {
      next: `Its holder, its creator (${task.created_by}) or an admin (--force) may cancel it.`,
      details: { task_id: id, holder: lease.holder, created_by: task.created_by },
    })
  }
  if (!isOver(task) && task.status !== 'cancelled') {
    return cancelHeld(view, task, lease, caller).task
  }
  // Its agent has moved it already; what is left to end is the command.
  revokeLease(view, lease, 'cancelled')
  return task
}

const isOver = (task: Task) => task.status === 'done' || task.status === 'failed'

/** Puts a failed or cancelled task back into the queue, as if it had never been run. */
export function retryTask(view: View, id: string, caller: Caller): Task {
  const task = getTask(view, id)
  if (!task.queue) {
    throw new Refusal('illegal_move', `Task ${id} was never enqueued`, {
      next: `Put it back for agents to claim: leasehold task status ${id} todo`,
      details: { task_id: id },
    })
  }
  if (task.status !== 'failed' && task.status !== 'cancelled') {
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
    throw new Refusal('not_found', `User ${ask.user} has ${what} running`, {
      next: 'See who is busy: leasehold queue status',
      details: { user: ask.user, running },
    })
  }
  const cancelled: string[] = []
  for (const name of found) {
    const id = taskOf(name)
    if (id !== undefined) cancelled.push(id)
    takeFrom(view, name, id, caller)
  }
  return cancelled
}

function takeFrom(view: View, name: string, id: string | undefined, caller: Caller): void {
  try {
    if (id === undefined) forceRelease(view, { name }, caller)
    else cancelTask(view, id, caller)
  } catch (stopped) {
    // Whoever commits this stops the command. Asked again after that, nobody would be busy.
    if (!(stopped instanceof NeedsKill && stopped.commits)) throw stopped
  }
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
 * for ever. Whoever commits this stops its command.
 */
function endLate(view: View, lease: Lease, caller: Caller): void {
  if (!isRunning(view, lease)) return endLease(view, lease, 'overdue', caller.agent)
  const expires_ms = Math.min(lease.expires_ms, view.now)
  view.put('lease', { ...lease, expires_ms, reason: 'overdue' })
  const data = { fence: lease.fence, holder: lease.holder, reason: 'took too long' }
  const task = taskOf(lease.name) ?? null
  view.record({ type: 'lease.revoked', agent: caller.agent, lock: lease.name, task, data })
}
