import type { Lease, Run, RunStatus, Task } from './rows.ts'
import type { View } from './view.ts'

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
  }
  view.put('run', run)
  return run
}

export function closeRun(view: View, id: string | null, status: RunStatus, outcome: string): void {
  const run = id === null ? undefined : view.get('run', id)
  if (!run || run.ended_at !== null) return
  view.put('run', { ...run, status, outcome, ended_at: view.at })
}
