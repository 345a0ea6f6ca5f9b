import { isLaneScope, joinLane, laneScope, leaveLane } from '../queue/lane.ts'
import { refuseLastStep } from '../landing/ask.ts'
import { PRIORITY_HIGH, TASK_AGING_MS } from '../bounds.ts'
import { type Ready, readyKey, type Task } from '../rows.ts'
import { putShare, shareOf } from '../queue/share.ts'
import type { View } from '../view.ts'

export const ANY = 'any'
export const inProject = (project: string) => `project:${project}`
export const withLabel = (label: string) => `label:${label}`
export const forAgent = (agent: string) => `agent:${agent}`

export function rankOf(created_ms: number, priority: number): number {
  return created_ms - priority * TASK_AGING_MS
}

/** How long ago a task was enqueued, before its first run. */
export const queuedFor = (view: View, task: Task) => view.now - task.rank + rankOf(0, task.priority)

/** Ready: waiting to be done, nothing in its way, and its lock free. */
function isReady(task: Task): boolean {
  return task.status === 'todo' && task.unmet === 0 && task.lock_fence === null
}

/** A task assigned to one agent is found by that agent only. */
function scopesOf(task: Task): string[] {
  if (!isReady(task)) return []
  if (task.assigned_to !== null) return [forAgent(task.assigned_to)]
  // What is enqueued stands in its lane only: dispatchers start it, in fair turns.
  if (task.queue) return [laneScope(task)]
  const scopes = [ANY, ...task.labels.map(withLabel)]
  return task.project === null ? scopes : [...scopes, inProject(task.project)]
}

/** The rows by which a task is found: one for each scope in which it can be claimed right now. */
export const readyRowsOf = (task: Task): Ready[] =>
  scopesOf(task).map((scope) => readyRow(scope, task))

function readyRow(scope: string, task: Task): Ready {
  const row = { scope, rank: task.rank, task_id: task.id, high: isHigh(task) }
  return { key: readyKey(row), ...row }
}

/**
 * The only way a task is written. Keeps the ready rows true, so that finding the next task never
 * looks at tasks that cannot be claimed.
 */
export function putTask(view: View, before: Task | undefined, after: Task): Task {
  if (before?.status === 'review' && after.status !== 'review') refuseLastStep(view, before)
  view.put('task', after)
  countPending(view, before, after)
  const old = before ? scopesOf(before) : []
  const now = scopesOf(after)
  const moved = before !== undefined && before.rank !== after.rank
  for (const scope of old) {
    if (!moved && now.includes(scope)) continue
    view.remove('ready', readyKey({ scope, rank: before!.rank, task_id: after.id }))
    if (isLaneScope(scope)) leaveLane(view, before!)
  }
  for (const scope of now) {
    if (!moved && old.includes(scope)) continue
    view.put('ready', readyRow(scope, after))
    if (isLaneScope(scope)) joinLane(view, after, isHigh(after))
  }
  return after
}

const isHigh = (task: Task) => task.priority >= PRIORITY_HIGH

/** Whether a task waits in the queue of its user, ready or not. */
export const isPending = (task: Task) => Boolean(task.queue) && task.status === 'todo'

function countPending(view: View, before: Task | undefined, after: Task): void {
  const was = before !== undefined && isPending(before)
  const is = isPending(after)
  const alike = before?.user === after.user && before.priority === after.priority
  if (was === is && (!is || alike)) return
  if (was) addPending(view, before, -1)
  if (is) addPending(view, after, 1)
}

function addPending(view: View, task: Task, step: 1 | -1): void {
  const share = shareOf(view, task.user ?? '')
  putShare(view, {
    ...share,
    pending: share.pending + step,
    pending_high: share.pending_high + (isHigh(task) ? step : 0),
  })
}

/** When `task` became done (or stopped being done), those that wait for it are counted anew. */
export function tellDependents(view: View, task: Task, step: 1 | -1): void {
  for (const { task_id } of view.scan('dependents_of', task.id)) {
    const waiting = view.get('task', task_id)
    if (waiting) putTask(view, waiting, { ...waiting, unmet: waiting.unmet + step })
  }
}
