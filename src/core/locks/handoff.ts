import type { Lease } from '../schema/lock.ts'
import type { Caller } from '../caller.ts'
import { breakCyclesThrough } from './deadlock.ts'
import { checkFence, grantLease, heldFor, refuseWhileRunning, taskOf } from './lease.ts'
import { refuseSecondUser } from './lock.ts'
import { putTask } from '../tasks/ready.ts'
import { closeRun, openRun } from '../tasks/run.ts'
import type { View } from '../view.ts'

export interface HandOff {
  name: string
  fence?: number | undefined
  to: string
  ttl_ms?: number | undefined
}

/**
 * Passes a lease to a named agent under a new fence, in one step: there is no moment in which a
 * third could take the lock. A task stays in progress; its run is closed and the next one opens.
 */
export function handOff(view: View, ask: HandOff, caller: Caller): Lease {
  const old = checkFence(view, ask.name, ask.fence, caller)
  refuseWhileRunning(view, old)
  refuseSecondUser(view, [ask.name], ask.to)
  const receiver: Caller = { agent: ask.to, given: true, process: null, admin: false, under: null }
  const ttl_ms = ask.ttl_ms ?? old.ttl_ms
  // A reservation stays one: without its paths it would keep nobody out.
  const paths = old.path && { path: old.path }
  const lease = grantLease(view, ask.name, receiver, { ttl_ms, process: null, ...paths })
  const id = taskOf(ask.name)
  const task = id === undefined ? undefined : view.get('task', id)
  if (task?.status === 'in_progress') {
    closeRun(view, task.run_id, 'completed', 'handed_off')
    const run = openRun(view, task, lease)
    putTask(view, task, {
      ...task,
      assignee: ask.to,
      assigned_at: view.at,
      attempts: task.attempts + 1,
      run_id: run.id,
      version: task.version + 1,
      updated_at: view.at,
    })
  }
  const { agent } = caller
  const passed = { from: old.holder, from_fence: old.fence, to: ask.to }
  const data = { fence: lease.fence, ...passed, ...heldFor(view, old) }
  view.record('lease.handed_off', { agent, lock: ask.name, task: task?.id ?? null }, data)
  breakCyclesThrough(view, lease)
  return lease
}
