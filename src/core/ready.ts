import { TASK_AGING_MS } from './limits.ts'
import { keyOf, type Task } from './rows.ts'
import type { View } from './view.ts'

export const ANY = 'any'
export const inProject = (project: string) => `project:${project}`
export const withLabel = (label: string) => `label:${label}`
export const forAgent = (agent: string) => `agent:${agent}`

export function rankOf(created_ms: number, priority: number): number {
  return created_ms - priority * TASK_AGING_MS
}

/** Ready: waiting to be done, nothing in its way, and its lock free. */
function isReady(task: Task): boolean {
  return task.status === 'todo' && task.unmet === 0 && task.lock_fence === null
}

/** A task assigned to one agent is found by that agent only. */
function scopesOf(task: Task): string[] {
  if (!isReady(task)) return []
  if (task.assigned_to !== null) return [forAgent(task.assigned_to)]
  const scopes = [ANY, ...task.labels.map(withLabel)]
  return task.project === null ? scopes : [...scopes, inProject(task.project)]
}

/**
 * The only way a task is written. Keeps the ready rows true, so that finding the next task never
 * looks at tasks that cannot be claimed.
 */
export function putTask(view: View, before: Task | undefined, after: Task): Task {
  view.put('task', after)
  const old = before ? scopesOf(before) : []
  const now = scopesOf(after)
  const moved = before !== undefined && before.rank !== after.rank
  for (const scope of old) {
    if (moved || !now.includes(scope)) view.remove('ready', keyOf(scope, after.id))
  }
  for (const scope of now) {
    if (!moved && old.includes(scope)) continue
    view.put('ready', { key: keyOf(scope, after.id), scope, rank: after.rank, task_id: after.id })
  }
  return after
}

/** When `task` became done (or stopped being done), those that wait for it are counted anew. */
export function tellDependents(view: View, task: Task, step: 1 | -1): void {
  for (const { task_id } of view.scan('dependents_of', task.id)) {
    const waiting = view.get('task', task_id)
    if (waiting) putTask(view, waiting, { ...waiting, unmet: waiting.unmet + step })
  }
}
