import type { Queued } from '../queue/rows.ts'
import type { Run, Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import type { RunStatus, Status } from '../rows.ts'
import type { View } from '../view.ts'

/** Opens the next attempt at `task` under `lease`. Run ids read as task.attempt: `42.1`. */
export function openRun(view: View, task: Task, lease: Lease): Run {
  const run: Run = {
    id: `${task.id}.${task.attempts + 1}`,
    task_id: task.id,
    agent: lease.holder,
    fence: lease.fence,
    host: lease.process?.host ?? null,
    pid: lease.process?.pid ?? null,
    status: 'running',
    started_at: view.at,
    ended_at: null,
    outcome: null,
    dispatcher: null,
    begun_at: null,
    exit_code: null,
    signal: null,
  }
  view.put('run', run)
  return run
}

export function closeRun(view: View, id: string | null, status: RunStatus, outcome: string): void {
  const run = id === null ? undefined : view.get('run', id)
  if (!run || run.ended_at !== null) return
  view.put('run', { ...run, status, outcome, ended_at: view.at })
}

const OUTCOMES: Record<Status, RunStatus> = {
  todo: 'cancelled',
  in_progress: 'running',
  review: 'completed',
  done: 'completed',
  failed: 'failed',
  cancelled: 'cancelled',
}

/** How a run ended whose task was moved to `status`. */
export const outcomeOf = (status: Status) => OUTCOMES[status]

/**
 * A run of an enqueued task is lost. It counts towards quarantine if its command was let go: a
 * dispatcher that dies before that says nothing about the task.
 */
export function loseRun(view: View, task: Task): Queued | null {
  const run = task.run_id === null ? undefined : view.get('run', task.run_id)
  const begun = !run?.dispatcher || run.begun_at !== null
  return task.queue && begun ? { ...task.queue, lost: task.queue.lost + 1 } : task.queue
}
