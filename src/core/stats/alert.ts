import type { Alert, AlertState, Delivered } from '../schema/stats.ts'
import type { Task } from '../schema/task.ts'
import { attempt } from '../attempt.ts'
import { holdingLease } from '../locks/standing.ts'
import { word } from '../quote.ts'
import { isPending, queuedFor } from '../tasks/ready.ts'
import type { View } from '../view.ts'
import { about, type About, type Cause, lasted } from './cause.ts'

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
export interface ShownAlert {
  id: string
  rule: string
  subject: string
  message: string
  since: string
  told: boolean
  undelivered: string[]
  about: About[]
}

/**
 * What holds now: the oldest first, each in words that are true at this instant. What is over is
 * left out, although nobody may have said so yet: no daemon may be running.
 */
export function* alertsNow(view: View): Generator<ShownAlert> {
  for (const alert of activeAlerts(view)) {
    const said = (SAYS[alert.rule] ?? asRaised)(view, alert)
    if (!said) continue
    const { key: id, rule, subject, since_at: since, told, delivery } = alert
    const undelivered = Object.entries(delivery).flatMap(([channel, { raised }]) => {
      return raised ? [`${channel}: ${raised}`] : []
    })
    yield { id, rule, subject, since, told, undelivered, ...said }
  }
}

type Said = Pick<ShownAlert, 'message' | 'about'> | undefined

const asRaised = (_view: View, { message, subject }: Alert): Said => ({
  message,
  about: about('agent', [subject]),
})

/** What an alert says when it is looked at, by its rule; undefined: it is over. */
const SAYS: Record<string, (view: View, alert: Alert) => Said> = {
  hooks_untrusted: (_, { message }) => ({ message, about: [] }),
  lock_expired: (view, { subject, message }) =>
    holdingLease(view, subject) ? undefined : { message, about: about('lock', [subject]) },
  agent_lost: (view, { subject, message }) => {
    for (const _ of view.scan('leases_held_by', subject)) return undefined
    return { message, about: about('agent', [subject]) }
  },
  long_wait: (view, { key }) => {
    const id = key.slice(key.indexOf(':') + 1)
    const ticket = view.get(
      'ticket',
      attempt(() => decodeURIComponent(id), id),
    )
    if (!ticket || ticket.cycle) return undefined
    const { agent, names, asked_ms } = ticket
    const waited = lasted(view.now - asked_ms)
    const message = `${word(agent)} has waited for ${names.map(word).join(', ')} for ${waited}`
    return { message, about: [...about('lock', names.slice(0, 3)), ...about('agent', [agent])] }
  },
  queue_age: (view, { subject }) => {
    const task = view.get('task', subject.replace('task ', ''))
    if (!task || !isPending(task)) return undefined
    const age = lasted(ageOf(view, task))
    const message = `task ${task.id} is next in its queue and has waited for ${age}`
    return { message, about: about('task', [task.id]) }
  },
}

/** A root cause that a person has to mend, beside the alerts that were raised. */
export function alertOf({ id, kind, what, since, about: things }: Cause, at: string): ShownAlert {
  const subject = things[0]?.id ?? kind
  const said = { id, rule: kind, subject, message: what, since: since ?? at }
  return { ...said, told: true, undelivered: [], about: things }
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
  view.record('alert.raised', { agent: 'leasehold' }, { id: key, rule, subject, message })
}

/** A condition is over; its row goes when that was told. */
export function clearAlert(view: View, key: string, tells: boolean): void {
  const known = view.get('alert', key)
  if (!known || known.ended_at !== null) return
  if (tells) view.put('alert', { ...known, ended_at: view.at })
  else view.remove('alert', key)
  const { rule, subject } = known
  view.record('alert.cleared', { agent: 'leasehold' }, { id: key, rule, subject })
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
      const age_ms = ageOf(view, task)
      if (!oldest || age_ms > oldest.age_ms) oldest = { task: task.id, age_ms }
      break
    }
  }
  return oldest
}

function ageOf(view: View, task: Task): number {
  const since_ms = view.wall - Date.parse(task.updated_at)
  return Math.max(0, Math.min(queuedFor(view, task), since_ms))
}
