import type { Counts, Histogram } from '../../core/schema/stats.ts'
import { activeAlerts } from '../../core/reasons/alert.ts'
import { ASK_BOUNDS, TIME_BOUNDS_MS } from '../../core/stats/histogram.ts'
import { queueStatus } from '../../core/queue/status.ts'
import { STATUSES } from '../../core/rows.ts'
import { allCounts } from '../../core/stats/stat.ts'
import type { View } from '../../core/view.ts'
import { isTrouble } from '../../stores/writer/outcome.ts'
import type { Store } from '../../stores/writer/store.ts'
import { Exposition } from './exposition.ts'

/** What the door itself knows, beside the store. */
export interface DoorState {
  version: string
  listeners: number
  requests: number
}

/** Nobody needs to know of more, and counting them takes time. */
const COUNT_MAX = 100_000

const BOUNDS_SECONDS = TIME_BOUNDS_MS.map((ms) => ms / 1000)

/**
 * Everything that is measured. Labels have few values, all of them ours: never a task, a lock, an
 * agent or a user, of which there may be any number.
 */
export async function metricsText(store: Store, door: DoorState): Promise<string> {
  const out = new Exposition()
  const look = (view: View) => ({ counts: allCounts(view), now: present(view) })
  // A store that cannot be read is the first thing to report.
  const { counts, now } = await store.read(look).catch((error: unknown) => {
    if (isTrouble(error)) return { counts: undefined, now: undefined }
    throw error
  })
  for (const { code } of store.meter.unwritten) {
    if (counts) counts.refusals[code] = (counts.refusals[code] ?? 0) + 1
  }
  if (counts && store.isDatabase) addCounts(out, counts)
  if (now) addPresent(out, now)
  addProcess(out, store, door)
  return out.text()
}

function present(view: View) {
  const { pending, active, dispatchers } = queueStatus(view)
  const alerts = new Map<string, number>()
  for (const { rule } of activeAlerts(view)) alerts.set(rule, (alerts.get(rule) ?? 0) + 1)
  return {
    pending,
    active,
    dispatchers: dispatchers.length,
    alerts,
    held: countOf(view.scan('leases_by_expiry', '')),
    waiting: countOf(view.scan('tickets', '')),
  }
}

function countOf(rows: Iterable<unknown>): number {
  let count = 0
  for (const _ of rows) if (++count === COUNT_MAX) break
  return count
}

function addCounts(out: Exposition, counts: Counts): void {
  const { events, moves, refusals } = counts
  const of = (type: string) => events[type] ?? 0
  const labelled = (label: string, by: Record<string, number>) =>
    Object.entries(by).map(([value, n]) => ({ value: n, labels: { [label]: value } }))
  out.counter('leasehold_events_total', 'Events recorded.', labelled('type', events))
  out.counter('leasehold_lock_acquisitions_total', 'Leases granted.', counts.grants)
  out.counter('leasehold_lock_waits_total', 'Waits for a lock begun.', of('ticket.joined'))
  out.counter('leasehold_lock_gave_up_total', 'Waits that ended in nothing.', of('ticket.left'))
  out.counter(
    'leasehold_refusals_total',
    'Writes refused; held and deadlock are contention.',
    labelled('code', refusals),
  )
  out.counter('leasehold_leases_expired_total', 'Leases that ran out.', of('lease.expired'))
  out.counter('leasehold_leases_died_total', 'Leases freed by a death.', of('lease.died'))
  out.counter('leasehold_agents_lost_total', 'Agents lost.', of('agent.lost'))
  out.counter('leasehold_stale_writes_total', 'Stale writes refused.', of('write.fenced_off'))
  out.counter(
    'leasehold_task_moves_total',
    'Tasks moved, by the status they were moved to.',
    STATUSES.map((to) => ({ value: moves[to] ?? 0, labels: { to } })),
  )
  out.counter('leasehold_tasks_enqueued_total', 'Tasks enqueued.', of('task.enqueued'))
  out.counter('leasehold_runs_started_total', 'Commands let go by runners.', of('run.started'))
  addTimes(out, 'leasehold_lock_wait_seconds', 'Time waited for a lock.', counts.wait)
  addTimes(out, 'leasehold_lock_hold_seconds', 'Time a lock was held.', counts.hold)
  addTimes(out, 'leasehold_queue_wait_seconds', 'From enqueued to claimed.', counts.queue)
  addTimes(out, 'leasehold_dispatch_seconds', 'From claimed to started.', counts.launch)
}

function addTimes(out: Exposition, name: string, help: string, times: Histogram): void {
  out.histogram(name, help, BOUNDS_SECONDS, times.buckets, times.sum_ms / 1000)
}

function addPresent(out: Exposition, now: ReturnType<typeof present>): void {
  out.gauge('leasehold_queue_tasks', 'Enqueued tasks that wait.', [
    { value: now.pending.high, labels: { priority: 'high' } },
    { value: now.pending.normal, labels: { priority: 'normal' } },
  ])
  out.gauge(
    'leasehold_queue_users',
    'Users with waiting tasks.',
    Object.keys(now.pending.by_user).length,
  )
  out.gauge('leasehold_slots_used', 'Slots in use.', now.active.slots_used)
  out.gauge('leasehold_slots_max', 'Slots of all dispatchers.', now.active.slots_max)
  out.gauge('leasehold_dispatchers', 'Dispatchers at work.', now.dispatchers)
  out.gauge('leasehold_locks_held', 'Locks held.', now.held)
  out.gauge('leasehold_lock_waiters', 'Waiters in all lines.', now.waiting)
  out.gauge(
    'leasehold_alerts_active',
    'Conditions that a person should know of.',
    [...now.alerts].map(([rule, value]) => ({ value, labels: { rule } })),
  )
}

/** Of this process, since it started: another daemon on the same store has its own. */
function addProcess(out: Exposition, { meter, damage }: Store, door: DoorState): void {
  out.histogram(
    'leasehold_batch_asks',
    'Asks answered by one commit of this process.',
    [...ASK_BOUNDS],
    meter.batches,
    meter.asks,
  )
  const trouble = meter.trouble === undefined ? 0 : 1
  out.gauge('leasehold_store_trouble', 'Whether the store cannot be used.', trouble)
  out.gauge('leasehold_store_damaged', 'Whether the store was found damaged.', damage ? 1 : 0)
  out.counter(
    'leasehold_doors_refusals_total',
    'Refusals that doors of this process gave, of reads too and of who may not come in.',
    [...meter.turnedAway].map(([code, value]) => ({ value, labels: { code } })),
  )
  out.gauge('leasehold_event_listeners', 'Open event streams.', door.listeners)
  out.gauge('leasehold_http_requests_open', 'Requests under way.', door.requests)
  const { user, system } = process.cpuUsage()
  const start_seconds = Date.now() / 1000 - process.uptime()
  out.counter('process_cpu_seconds_total', 'Processor time used.', (user + system) / 1e6)
  out.gauge('process_resident_memory_bytes', 'Memory in use.', process.memoryUsage.rss())
  out.gauge('process_start_time_seconds', 'When this process started.', start_seconds)
  const labels = { version: door.version }
  out.gauge('leasehold_build_info', 'The version that runs.', [{ value: 1, labels }])
}
