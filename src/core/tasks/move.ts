import type { Queued } from '../queue/rows.ts'
import type { Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import { admits, type Caller } from '../caller.ts'
import {
  beginRun,
  type Claim,
  notClaimable,
  refuseAssigned,
  refuseQueued,
  startTask,
} from './claim.ts'
import {
  checkFence,
  closeLease,
  endLease,
  expiredLease,
  heldFor,
  isRunning,
  lockOf,
  revokeLease,
  settleLease,
} from '../locks/lease.ts'
import { blockedBy } from '../locks/lock.ts'
import { askForProof } from '../landing/ask.ts'
import { mustProve } from '../landing/rule.ts'
import { putTask, tellDependents } from './ready.ts'
import { planted } from '../planted.ts'
import { Refusal } from '../refusal.ts'
import type { ProcessRef, Status } from '../rows.ts'
import { closeRun, outcomeOf } from './run.ts'
import { getTask, readOnly } from './task.ts'
import type { View } from '../view.ts'

export interface MoveTask {
  id: string
  to: Status
  fence?: number | undefined
  ttl_ms: number
  process: ProcessRef | null
}

type Moved = Claim | { task: Task; lease: Lease | null; run: null }

/** Without a live lease anyone may make these moves; all others need the task's lock. */
const OPEN_MOVES: Partial<Record<Status, readonly Status[]>> = {
  todo: ['cancelled'],
  review: ['done', 'todo'],
  failed: ['todo'],
  cancelled: ['todo'],
}

/**
 * Changes a task's status. `in_progress` claims; every other status releases the lock.
 * Refusals, in this order: a fence that is not current, another holder, no lease where one is
 * needed.
 */
export function moveTask(view: View, ask: MoveTask, caller: Caller): Moved {
  const name = lockOf(ask.id)
  getTask(view, ask.id)
  if (ask.fence !== undefined) checkFence(view, name, ask.fence, caller)
  const lease = settleLease(view, name)
  const task = getTask(view, ask.id)
  if (lease) return moveHeld(view, ask, task, lease, caller)
  // A cancel is asked again after the command was stopped, and finds it done.
  const cancelled = task.status === 'cancelled' && view.get('lease', name)?.reason === 'cancelled'
  if (cancelled && ask.to === 'cancelled') return { task, lease: null, run: null }
  refuseIllegal(view, task, ask.to, caller)
  if (ask.to === 'in_progress' && (task.status === 'todo' || task.status === 'review')) {
    return claimByMove(view, ask, task, caller)
  }
  const reopens = task.status === 'done' && ask.to === 'todo'
  if (!reopens && !OPEN_MOVES[task.status]?.includes(ask.to)) {
    throw expiredLease(name, view.get('lease', name))
  }
  return { task: setStatus(view, task, ask.to, caller), lease: null, run: null }
}

function claimByMove(view: View, ask: MoveTask, task: Task, caller: Caller): Claim {
  refuseAssigned(task, caller)
  refuseQueued(task)
  const blocked = blockedBy(view, lockOf(task.id), { takeover: false }, caller)
  if (blocked) throw blocked
  return startTask(view, task, ask, caller, ['todo', 'review'])
}

function moveHeld(view: View, ask: MoveTask, task: Task, lease: Lease, caller: Caller): Moved {
  const cancels = ask.to === 'cancelled' && (caller.admin || task.created_by === caller.agent)
  if (!cancels || admits(lease.holder, caller.agent)) {
    checkFence(view, lease.name, ask.fence, caller)
  }
  refuseIllegal(view, task, ask.to, caller)
  if (ask.to === 'in_progress') return keepClaim(view, task, lease, caller)
  if (cancels && !admits(lease.holder, caller.agent)) return cancelHeld(view, task, lease, caller)
  // Under a running command the lock stays until that has ended; the status counts at once.
  const releases = !isRunning(view, lease)
  if (task.status === 'done' && ask.to === 'done') {
    // Done is read-only: to say it again only gives back the lock, and asks for no second proof.
    if (releases) endLease(view, lease, 'released', caller.agent)
    return { task: getTask(view, task.id), lease: releases ? null : lease, run: null }
  }
  const moved = setStatus(view, task, ask.to, caller, { lease, releases })
  if (!releases) return { task: moved, lease, run: null }
  closeLease(view, lease, 'released')
  return { task: getTask(view, task.id), lease: null, run: null }
}

/**
 * Takes a task from its holder. The task is cancelled at once and the holder can write no more; the
 * lock is free when the command that we started under it, if any, is gone.
 */
export function cancelHeld(view: View, task: Task, lease: Lease, caller: Caller): Moved {
  const releases = !isRunning(view, lease)
  const moved = setStatus(view, task, 'cancelled', caller, { lease, releases })
  if (!releases) revokeLease(view, lease, 'cancelled')
  else closeLease(view, lease, 'cancelled')
  return { task: view.get('task', task.id) ?? moved, lease: null, run: null }
}

/** A holder that asks for `in_progress` keeps its lease and fence; a manual lease gets a run. */
function keepClaim(view: View, task: Task, lease: Lease, caller: Caller): Moved {
  const run = task.run_id === null ? undefined : view.get('run', task.run_id)
  if (run && task.status === 'in_progress') return { task, lease, run }
  refuseAssigned(task, caller)
  // A lock taken by hand is no way around the queue; a lease that came from a claim is past that.
  if (!lease.terms) refuseQueued(task)
  const claim = beginRun(view, task, lease)
  const data = { fence: lease.fence, run: claim.run.id }
  view.record('task.claimed', { agent: caller.agent, lock: lease.name, task: task.id }, data)
  return claim
}

function refuseIllegal(view: View, task: Task, to: Status, caller: Caller): void {
  const { status } = task
  if (status === 'done' && to !== 'done' && !(caller.admin && to === 'todo')) throw readOnly(task)
  const revived = isGivenUp(status) && to !== 'todo' && to !== status
  if (revived) {
    throw new Refusal('illegal_move', `Task ${task.id} is ${status}: it can only go back to todo`, {
      next: {
        says: 'Put it back',
        operation: 'task.status',
        input: { id: task.id, status: 'todo' },
      },
      details: { task_id: task.id, status, to },
    })
  }
  if (to === 'in_progress' && status !== 'in_progress' && task.unmet > 0) {
    throw notClaimable(view, task)
  }
}

/** A task that was given up may only be put back, and then begins anew. */
export const isGivenUp = (status: Status) => status === 'failed' || status === 'cancelled'

/** What went wrong before is forgotten. */
const afresh = (queue: Queued | null) => queue && { ...queue, failed: 0, lost: 0 }

/**
 * Writes a status that the caller may set. Under a running command the run goes on. Where `done`
 * has to be proved, saying so is not enough: the task goes to review, to be checked.
 */
export function setStatus(
  view: View,
  task: Task,
  asked: Status,
  caller: Caller,
  held?: { lease: Lease; releases: boolean },
  isProved = false,
): Task {
  const isClaim = asked === 'done' && !isProved && mustProve(view, task)
  const to = isClaim && !planted('R55 proof') ? 'review' : asked
  const moved = writeStatus(view, task, to, caller, held)
  if (to !== asked) askForProof(view, moved, caller, task.status === 'review')
  return moved
}

function writeStatus(
  view: View,
  task: Task,
  to: Status,
  caller: Caller,
  held?: { lease: Lease; releases: boolean },
): Task {
  if (!held && to === 'review' && task.status === 'review') return task
  const runs = held !== undefined && !held.releases
  if (!runs) closeRun(view, task.run_id, outcomeOf(to), `moved to ${to}`)
  const back = to === 'todo'
  const moved = putTask(view, task, {
    ...task,
    status: to,
    assignee: back ? null : task.assignee,
    assigned_at: back ? null : task.assigned_at,
    run_id: runs ? task.run_id : null,
    queue: back && isGivenUp(task.status) ? afresh(task.queue) : task.queue,
    version: task.version + 1,
    updated_at: view.at,
  })
  if (to === 'done' && task.status !== 'done') tellDependents(view, task, -1)
  if (task.status === 'done' && to !== 'done') tellDependents(view, task, 1)
  const data = {
    from: task.status,
    to,
    version: moved.version,
    ...(held && { fence: held.lease.fence, released: held.releases }),
    ...(held?.releases && heldFor(view, held.lease)),
  }
  const { agent } = caller
  view.record('task.moved', { agent, lock: held?.lease.name ?? null, task: task.id }, data)
  return moved
}
