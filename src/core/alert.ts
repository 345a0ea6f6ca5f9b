import type { Alert } from './stat_rows.ts'
import { queuedFor } from './ready.ts'
import type { View } from './view.ts'

/** More than this at once tell nobody anything. */
const ALERTS_MAX = 200

/** Users whose queues are looked at for the oldest task. */
const QUEUES_MAX = 1_000

export interface Condition {
  key: string
  rule: string
  subject: string
  message: string
  /** Store time at which it counts as over unless it is seen again; null: it is ended. */
  quiet_ms: number | null
}

/** An alert as doors show it; `told` when it was delivered, or nobody is to be told. */
export function showAlert({ key, rule, subject, message, since_at, told }: Alert) {
  return { id: key, rule, subject, message, since: since_at, told }
}

/** Conditions that hold now, the oldest first. */
export function* activeAlerts(view: View): Generator<Alert> {
  for (const alert of view.scan('alerts', '')) if (alert.ended_at === null) yield alert
}

/** What is still to be told: that a condition began, or that it is over. */
export function* untoldAlerts(view: View): Generator<Alert> {
  for (const alert of view.scan('alerts', '')) {
    if (!alert.told || (alert.ended_at !== null && !alert.told_end)) yield alert
  }
}

/**
 * A condition is seen. One that holds already is not begun again, however often it is seen; one
 * that came back before its end was told goes on, and nobody is bothered. `tells`: whether there is
 * anybody to be told.
 */
export function raiseAlert(view: View, condition: Condition, tells: boolean): void {
  const { key, rule, subject, message, quiet_ms } = condition
  const known = view.get('alert', key)
  if (known) {
    view.put('alert', { ...known, quiet_ms, ended_at: null, told_end: false })
    return
  }
  if ([...view.scan('alerts', '')].length >= ALERTS_MAX) return
  const alert = { key, rule, subject, message, since_at: view.at, quiet_ms, ended_at: null }
  view.put('alert', { ...alert, told: !tells, told_end: false })
  const data = { id: key, rule, subject, message }
  view.record({ type: 'alert.raised', agent: 'leasehold', lock: null, task: null, data })
}

/** A condition is over; its row goes when that was told. */
export function clearAlert(view: View, key: string, tells: boolean): void {
  const known = view.get('alert', key)
  if (!known || known.ended_at !== null) return
  if (tells) view.put('alert', { ...known, ended_at: view.at })
  else view.remove('alert', key)
  const { rule, subject } = known
  const data = { id: key, rule, subject }
  view.record({ type: 'alert.cleared', agent: 'leasehold', lock: null, task: null, data })
}

/** Somebody was told of what `seen` says. It may have changed since: then there is more to tell. */
export function tellAlert(view: View, seen: Alert): void {
  const known = view.get('alert', seen.key)
  if (!known || known.since_at !== seen.since_at) return
  if (!seen.told) view.put('alert', { ...known, told: true })
  else if (known.ended_at !== null) view.remove('alert', seen.key)
}

/**
 * How long the task that is next in its user's queue has waited there, of all users that for whom
 * it is longest; undefined when nothing waits. Counted from when it was last put there or changed.
 */
export function oldestQueued(view: View): { task: string; age_ms: number } | undefined {
  let oldest: { task: string; age_ms: number } | undefined
  let left = QUEUES_MAX
  for (const { user } of view.scan('shares_waiting', '')) {
    if (left-- === 0) break
    for (const task of view.scan('queue_of', user)) {
      const since_ms = view.wall - Date.parse(task.updated_at)
      const age_ms = Math.max(0, Math.min(queuedFor(view, task), since_ms))
      if (!oldest || age_ms > oldest.age_ms) oldest = { task: task.id, age_ms }
      break
    }
  }
  return oldest
}
