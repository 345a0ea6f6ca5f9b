import type { DispatcherRow } from '../../src/core/schema/queue.ts'
import type { Task } from '../../src/core/schema/task.ts'
import type { View } from '../../src/core/view.ts'
import { lineOf } from '../../src/core/locks/line.ts'
import { countersOf, lookInto, QueueRows } from './queue_look.ts'

export interface Who {
  /** The projects that it can run; undefined: any. */
  projects?: ReadonlySet<string> | undefined
}

/**
 * Enqueued tasks that could be started now, looked for among all of them, one limit after another:
 * whoever has a free slot must be given one if there is any, and nothing otherwise.
 */
export function startable(view: View, who: Who): Task[] {
  const rows = new QueueRows(lookInto(view))
  if (rows.queue.paused) return []
  return rows.inLanes().filter((task) => {
    if (who.projects && !who.projects.has(task.project ?? '')) return false
    if (task.user !== null && isKept(view, rows, task.user)) return false
    const counters = countersOf(task).filter((key) => !key.startsWith('user:'))
    if (!counters.every((key) => rows.hasRoom(key))) return false
    return !isPromised(view, `task:${task.id}`)
  })
}

function isKept(view: View, rows: QueueRows, user: string): boolean {
  const max = rows.maxOf(user)
  const busy = max !== null && rows.runningOf(user).length >= max
  return busy || rows.shares.get(user)?.paused === true || isPromised(view, `user:${user}`)
}

function isPromised(view: View, name: string): boolean {
  for (const _ of lineOf(view, name)) return true
  return false
}

/** Slots of a dispatcher that are free: every run of it that is not over takes one. */
export function slotsFree(view: View, dispatcher: DispatcherRow): number {
  let free = dispatcher.slots_max
  for (const task of view.scan('tasks', '')) {
    for (const run of view.scan('runs_of', task.id)) {
      if (run.dispatcher === dispatcher.id && run.ended_at === null) free -= 1
    }
  }
  return free
}
