import type { Alert, AlertState, Delivered } from './rows.ts'
import { queuedFor } from '../tasks/ready.ts'
import type { View } from '../view.ts'

/** More alerts than this at once would help nobody. */
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

/**
 * An alert as doors show it. `told`: no channel still has to deliver it. `undelivered`: channels
 * that gave up, and why.
 */
export function showAlert({ key, rule, subject, message, since_at, told, delivery }: Alert) {
  const undelivered = Object.entries(delivery).flatMap(([channel, { raised }]) => {
    return raised ? [`${channel}: ${raised}`] : []
  })
  return { id: key, rule, subject, message, since: since_at, told, undelivered }
}

/** Conditions that hold now, the oldest first. */
export function* activeAlerts(view: View): Generator<Alert> {
  for (const alert of view.scan('alerts', '')) if (alert.ended_at === null) yield alert
}

/** What a channel still has to tell of an alert, if anything. */
function dueOf({ told, ended_at, delivery }: Alert, channel: string): AlertState | undefined {
  const { raised, cleared }: Delivered = delivery[channel] ?? {}
  if (!told && raised === undefined) return 'raised'
  // A channel that did not tell of the beginning does not tell of the end.
  const isEndDue = ended_at !== null && cleared === undefined && typeof raised !== 'string'
  return isEndDue ? 'cleared' : undefined
}

/** What a channel still has to tell: that a condition began, or that it is over. */
export function dueAlerts(view: View, channel: string): { alert: Alert; state: AlertState }[] {
  return [...view.scan('alerts', '')].flatMap((alert) => {
    const state = dueOf(alert, channel)
    return state ? [{ alert, state }] : []
  })
}

/**
 * A condition is seen. One that holds already is not begun again, however often it is seen, but
 * says what is true now; one that came back before its end was told goes on, without a notice.
 * `tells`: whether there is a channel that tells.
 */
export function raiseAlert(view: View, condition: Condition, tells: boolean): void {
  const { key, rule, subject, message, quiet_ms } = condition
  const known = view.get('alert', key)
  if (known) {
    const said = { subject, message, quiet_ms }
    view.put('alert', { ...known, ...said, ended_at: null, told_end: false })
    return
  }
  if ([...view.scan('alerts', '')].length >= ALERTS_MAX) return
  const alert = { key, rule, subject, message, since_at: view.at, quiet_ms, ended_at: null }
  view.put('alert', { ...alert, told: !tells, told_end: false, delivery: {} })
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

interface Telling {
  alert: Alert
  state: AlertState
  channel: string
  /** Null: it was told. Else why it will not be. */
  why: string | null
}

/** A channel is done with what it had to tell; `channels` are all that there are. */
export function tellAlert(view: View, telling: Telling, channels: string[]): void {
  const { alert, state, channel, why } = telling
  const known = view.get('alert', alert.key)
  if (!known || known.since_at !== alert.since_at) return
  const delivered = { ...known.delivery[channel], [state]: why }
  settleAlert(view, { ...known, delivery: { ...known.delivery, [channel]: delivered } }, channels)
}

/** The condition may have changed since it was told: then there is more to tell. */
function settleAlert(view: View, alert: Alert, channels: string[]): void {
  const isBehind = (state: AlertState) => channels.every((each) => dueOf(alert, each) !== state)
  const told = alert.told || isBehind('raised')
  const settled = { ...alert, told }
  const isOver = told && alert.ended_at !== null
  if (isOver && channels.every((each) => dueOf(settled, each) === undefined)) {
    view.remove('alert', alert.key)
  } else view.put('alert', settled)
}

/**
 * Other channels may be there than before: what none of them has to tell is done with, and what one
 * gave up on is tried again.
 */
export function settleAlerts(view: View, channels: string[]): void {
  for (const alert of [...view.scan('alerts', '')]) {
    const all = Object.entries(alert.delivery)
    const kept = all.filter(([, { raised, cleared }]) => !raised && !cleared)
    const delivery = Object.fromEntries(kept)
    const again = kept.length < all.length && { delivery, told: false }
    settleAlert(view, { ...alert, ...again }, channels)
  }
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
