import type { Caller } from '../caller.ts'
import { alertsNow, type ShownAlert } from './alert.ts'
import { healthOf, lookStuck } from './stuck.ts'
import { lockOf, showLease } from '../locks/lease.ts'
import { firstInLine } from '../locks/line.ts'
import { queueStatus } from '../queue/status.ts'
import type { Task } from '../rows.ts'
import { shareOf } from '../queue/share.ts'
import type { View } from '../view.ts'

/** Locks of our own processes, which are not work. */
const OWN = /^leasehold:/

/** How much of what is stuck a look at everything begins with. */
const STUCK_MAX = 8

/**
 * What happens now, in one look: running tasks, slots, the queue by user, locks with who waits for
 * them, alerts, and what is stuck. At most `limit` of each; `more` says how many there are beyond
 * that. `trouble` is what the store cannot keep itself.
 */
export function lookNow(view: View, limit: number, caller: Caller, trouble: ShownAlert[]) {
  const { pending, active, dispatchers, paused } = queueStatus(view)
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
    paused,
    slots: { used: active.slots_used, max: active.slots_max },
    dispatchers,
    pending: { high: pending.high, total: pending.total },
    running: running.items,
    queue: waiting.slice(0, limit).map(([user, tasks]) => {
      const { weight, paused: isPaused } = shareOf(view, user)
      const busy = active.by_user[user] ?? 0
      return { user, pending: tasks, running: busy, weight, paused: isPaused }
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

/** The first `limit` rows that `show` does not leave out, and how many more there are. */
function first<Row, Shown>(rows: Iterable<Row>, limit: number, show: (row: Row) => Shown | null) {
  const items: Shown[] = []
  let more = 0
  for (const row of rows) {
    if (items.length === limit) {
      more += 1
      continue
    }
    const shown = show(row)
    if (shown !== null) items.push(shown)
  }
  return { items, more }
}
