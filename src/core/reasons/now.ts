import type { Task } from '../schema/task.ts'
import type { Caller } from '../caller.ts'
import { alertsNow, type ShownAlert } from './alert.ts'
import { healthOf, lookStuck } from './stuck.ts'
import { lockOf, showLease } from '../locks/lease.ts'
import { firstInLine } from '../locks/line.ts'
import { pendingOf, slotsOf } from '../queue/status.ts'
import { queueOf, shareOf } from '../queue/share.ts'
import type { View } from '../view.ts'

/** Locks of our own processes, which are not work. */
const OWN = /^leasehold:/

/** What is left out is counted as far as this: to look must not cost what the store is large. */
const MORE_MAX = 1_000

/** How much of what is stuck a look at everything begins with. */
const STUCK_MAX = 8

/**
 * What happens now, in one look: running tasks, slots, the queue by user, locks with who waits for
 * them, alerts, and what is stuck. At most `limit` of each; `more` says how many there are beyond
 * that, or that they are `MORE_MAX` at least. `trouble` is what the store cannot keep itself.
 */
export function lookNow(view: View, limit: number, caller: Caller, trouble: ShownAlert[]) {
  const pending = pendingOf(view)
  const { dispatchers, slots_used: used, slots_max: max } = slotsOf(view)
  const running = first(view.scan('tasks_with_status', 'in_progress'), limit, (task) =>
    showRunning(view, task),
  )
  const locks = first(view.scan('leases_by_expiry', ''), limit, (lease) => {
    if (OWN.test(lease.name)) return null
    return { ...showLease(view, lease), waiters: firstInLine(view, lease.name).map((t) => t.agent) }
  })
  const alerts = first([...trouble, ...alertsNow(view)], limit, (alert) => alert)
  const causes = lookStuck(view, caller, trouble)
  const waiting = Object.entries(pending.by_user).toSorted(([, a], [, b]) => b - a)
  return {
    at: view.at,
    health: healthOf(causes),
    stuck: causes.slice(0, STUCK_MAX),
    paused: queueOf(view).paused,
    slots: { used, max },
    dispatchers,
    pending: { high: pending.high, total: pending.total },
    running: running.items,
    queue: waiting.slice(0, limit).map(([user, tasks]) => {
      const { weight, running: locks_held, paused } = shareOf(view, user)
      return { user, pending: tasks, running: locks_held.length, weight, paused }
    }),
    locks: locks.items,
    alerts: alerts.items,
    more: {
      running: running.more,
      queue: Math.max(0, waiting.length - limit),
      locks: locks.more,
      alerts: alerts.more,
      stuck: Math.max(0, causes.length - STUCK_MAX),
    },
  }
}

export type Now = ReturnType<typeof lookNow>

function showRunning(view: View, task: Task) {
  const run = task.run_id === null ? undefined : view.get('run', task.run_id)
  const lease = view.get('lease', lockOf(task.id))
  const { id, title, project, user, assignee } = task
  return {
    task_id: id,
    title,
    project,
    user,
    agent: assignee,
    run_id: task.run_id,
    pid: run?.pid ?? null,
    host: run?.host ?? null,
    started_at: run?.started_at ?? task.assigned_at,
    expires_at: lease ? showLease(view, lease).expires_at : null,
  }
}

/** The first `limit` rows that `show` does not leave out, and how many more there are at least. */
function first<Row, Shown>(rows: Iterable<Row>, limit: number, show: (row: Row) => Shown | null) {
  const items: Shown[] = []
  let more = 0
  for (const row of rows) {
    if (items.length === limit) {
      if (++more === MORE_MAX) break
      continue
    }
    const shown = show(row)
    if (shown !== null) items.push(shown)
  }
  return { items, more }
}
