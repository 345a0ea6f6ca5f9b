import type { Ready, Task } from '../schema/task.ts'
import { isLaneScope, joinLane, laneScope, leaveLane } from '../queue/lane.ts'
import { refuseLastStep } from '../landing/ask.ts'
import { PRIORITY_HIGH, TASK_AGING_MS } from '../bounds.ts'
import { first } from '../first.ts'
import { keyOf, readyKey } from '../rows.ts'
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

/**
 * Tasks of one user stand in a list of their own behind each scope, and only the first of them in
 * the scope itself: a user that is busy is passed at one look, however many tasks wait.
 */
export const behind = (scope: string, user: string) => keyOf('of', user, scope)
export const isBehind = (scope: string) => scope.startsWith('of\n')
const frontOf = (scope: string) => scope.split('\n').slice(2).join('\n')

/** A task assigned to one agent is found by that agent only. */
function scopesOf(task: Task): string[] {
  if (!isReady(task)) return []
  // What is enqueued stands in its lane only: dispatchers start it, in fair turns.
  if (task.queue && task.assigned_to === null) return [laneScope(task)]
  const scopes = task.assigned_to === null ? openScopes(task) : [forAgent(task.assigned_to)]
  const { user } = task
  return user === null ? scopes : scopes.map((scope) => behind(scope, user))
}

function openScopes(task: Task): string[] {
  const scopes = [ANY, ...task.labels.map(withLabel)]
  return task.project === null ? scopes : [...scopes, inProject(task.project)]
}

/** The rows that follow from a task alone: one for each list in which it stands right now. */
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
  const heads = [...new Set([...old, ...now])].filter(isBehind).map((scope) => {
    return { scope, head: headOf(view, scope) }
  })
  for (const scope of old) {
    if (!moved && now.includes(scope)) continue
    const { rank } = before!
    if (isBehind(scope)) {
      for (const each of [scope, frontOf(scope)])
        dropRow(view, { scope: each, rank, task_id: after.id })
    } else view.remove('ready', readyKey({ scope, rank, task_id: after.id }))
    if (isLaneScope(scope)) leaveLane(view, before!)
  }
  for (const scope of now) {
    if (!moved && old.includes(scope)) continue
    view.put('ready', readyRow(scope, after))
    if (isLaneScope(scope)) joinLane(view, after, isHigh(after))
  }
  for (const { scope, head } of heads) moveHead(view, scope, head)
  return after
}

/** It may not be there: what an older program wrote stands in front alone. */
function dropRow(view: View, row: Pick<Ready, 'scope' | 'rank' | 'task_id'>): void {
  if (view.get('ready', readyKey(row))) view.remove('ready', readyKey(row))
}

/** The row that stands for the list of a user if `row` is the first of it. */
export function inFront(row: Ready): Ready | undefined {
  if (!isBehind(row.scope)) return undefined
  const front = { ...row, scope: frontOf(row.scope) }
  return { ...front, key: readyKey(front) }
}

const headOf = (view: View, scope: string) => first(view.scan('ready_in', scope))

/** Keeps true who stands for a user in the scope before the user's own list. */
function moveHead(view: View, behind_scope: string, before: Ready | undefined): void {
  const head = headOf(view, behind_scope)
  if (head?.key === before?.key) return
  if (before) dropRow(view, inFront(before)!)
  if (head) view.put('ready', inFront(head)!)
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
