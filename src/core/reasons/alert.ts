import type { Alert, AlertState, Delivered } from '../schema/stats.ts'
import type { Ticket } from '../schema/lock.ts'
import type { Task } from '../schema/task.ts'
import { attempt } from '../attempt.ts'
import type { EventDraft } from '../event.ts'
import { first, firstOf } from '../first.ts'
import { holdingLease } from '../locks/standing.ts'
import { word } from '../quote.ts'
import { isPending, queuedFor } from '../tasks/ready.ts'
import type { View } from '../view.ts'
import { about, type About, lasted } from './reason.ts'

/** What people are told though nobody looks: what happened, and reasons that lasted. */

/** More alerts than this at once would help nobody. */
const ALERTS_MAX = 200

/** Users whose queues are looked at for the oldest task. */
const QUEUES_MAX = 1_000

/** Codex is asked when it is started; where it is not started any more, nobody has to know. */
const UNTRUSTED_MS = 24 * 3600_000

/** Locks of our own programs: the next program takes them, and nobody has to know. */
const OWN = /^leasehold:/

/** What is watched for, and for how long. */
export interface AlertRules {
  lock_expired: boolean
  agent_lost: boolean
  deadlock: boolean
  wait_seconds: number | null
  queue_age_seconds: number | null
  recover_seconds: number
  /** What is said of a folder where Codex runs none of our hooks. */
  untrusted: string
}

export interface Condition {
  key: string
  rule: string
  subject: string
  message: string
  /** How long from now it counts unless it is seen again; null: until it is over. */
  lasts_ms: number | null
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

type Said = Pick<ShownAlert, 'message' | 'about'>

/** What an alert says when it is looked at; undefined: it is over. */
type Says = (view: View, alert: Alert) => Said | undefined

const asRaised = (kind: About['kind'], { message, subject }: Alert): Said => {
  return { message, about: about(kind, [subject]) }
}

const SAYS: Record<string, Says> = {
  hooks_untrusted: (_, { message }) => ({ message, about: [] }),
  lock_expired: (view, alert) => {
    const isTaken = (view.get('lease', alert.subject)?.acquired_at ?? '') > alert.since_at
    return isTaken || holdingLease(view, alert.subject) ? undefined : asRaised('lock', alert)
  },
  agent_lost: (view, alert) => {
    const isSeen = (view.get('agent', alert.subject)?.last_seen_at ?? '') > alert.since_at
    return isSeen || holdsAny(view, alert.subject, '') ? undefined : asRaised('agent', alert)
  },
  deadlock: (view, alert) =>
    holdsAny(view, alert.subject, alert.since_at) ? undefined : asRaised('agent', alert),
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

const saysNow: Says = (view, alert) =>
  (SAYS[alert.rule] ?? ((_, each) => asRaised('agent', each)))(view, alert)

/** What the configuration calls a rule by, where that is not its name. */
const SWITCHES: Record<string, keyof AlertRules> = {
  long_wait: 'wait_seconds',
  queue_age: 'queue_age_seconds',
}

function isOn(rule: string, rules: AlertRules): boolean {
  const set = rules[SWITCHES[rule] ?? (rule as keyof AlertRules)]
  return set !== false && set !== null
}

/** Whether an agent holds anything that it took after `since`. */
const holdsAny = (view: View, agent: string, since: string) =>
  [...view.scan('leases_held_by', agent)].some(({ acquired_at }) => acquired_at > since)

/**
 * What holds now: the oldest first, each in words that are true at this instant. What is over is
 * left out, although nobody may have said so yet: no daemon may be running.
 */
export function* alertsNow(view: View): Generator<ShownAlert> {
  for (const alert of activeAlerts(view)) {
    const said = saysNow(view, alert)
    if (!said) continue
    const { key: id, rule, subject, since_at: since, told, delivery } = alert
    const undelivered = Object.entries(delivery).flatMap(([channel, { raised }]) => {
      return raised ? [`${channel}: ${raised}`] : []
    })
    yield { id, rule, subject, since, told, undelivered, ...said }
  }
}

/** Conditions that hold now, the oldest first. */
export function* activeAlerts(view: View): Generator<Alert> {
  for (const alert of view.scan('alerts', '')) if (alert.ended_at === null) yield alert
}

/** In ids that others see and headers carry, a name of any script is percent-encoded. */
export function keyFor(rule: string, name: string): string {
  const whole = name.replaceAll('%', '%25').replaceAll(/\p{Surrogate}/gu, '\ufffd')
  return `${rule}:${whole.replaceAll(/[^ -~]+/gu, encodeURIComponent).trim()}`
}

/** Of a condition: that it is there, that it is over, or that it was told since. */
export interface Heard {
  key: string
  seen: Condition | 'over' | 'told'
}

/** What an event says of a condition that people should know of, if anything. */
export function heardIn(event: EventDraft, rules: AlertRules): Heard | undefined {
  const { type, agent, lock, data } = event
  const heard = (rule: string, subject: string, message: string, lasts_ms: number) => {
    const key = keyFor(rule, subject)
    const seen: Condition = { key, rule, subject, message, lasts_ms }
    return isOn(rule, rules) ? { key, seen } : undefined
  }
  const lasts_ms = rules.recover_seconds * 1000
  if (type === 'lease.expired' && lock !== null && !OWN.test(lock)) {
    const message = `${lock} expired: ${data.holder} neither renewed nor released it`
    return heard('lock_expired', lock, message, lasts_ms)
  }
  if (type === 'agent.lost' && !OWN.test(data.lock)) {
    const message = `agent ${agent} was lost: its last lease, ${data.lock}, expired`
    return heard('agent_lost', agent, message, lasts_ms)
  }
  if (type === 'deadlock.found' || type === 'ticket.broken') {
    return heard('deadlock', agent, `${NEVER_ENDS}: ${data.cycle.join('; ')}`, lasts_ms)
  }
  if (type === 'hook.untrusted') {
    const { folder } = data
    return heard('hooks_untrusted', folder, `in ${folder}: ${rules.untrusted}`, UNTRUSTED_MS)
  }
  if (type === 'hook.trusted') return { key: keyFor('hooks_untrusted', data.folder), seen: 'over' }
  const isTold = type === 'alert.raised' || type === 'alert.cleared'
  return isTold ? { key: data.id, seen: 'told' } : undefined
}

export const NEVER_ENDS = 'Waiting would never end'

interface AlertsLook {
  raised: Condition[]
  over: string[]
  active: number
  /** From now; Infinity where nothing is going to change by itself. */
  next_ms: number
}

/** How the alerts stand: what has lasted too long, what is over, and when to look again. */
export function lookAtAlerts(view: View, rules: AlertRules): AlertsLook {
  const active = [...activeAlerts(view)]
  const waits = longWaits(view, rules)
  const oldest = rules.queue_age_seconds === null ? undefined : oldestQueued(view)
  const left_ms = oldest ? rules.queue_age_seconds! * 1000 - oldest.age_ms : Infinity
  const queue = left_ms <= 0 ? [queueCondition(oldest!.task, rules)] : []
  const lasting = [...waits.raised, ...queue]
  const said = new Map(active.map(({ key, subject }) => [key, subject]))
  const keys = new Set(lasting.map(({ key }) => key))
  const over = active.filter((alert) => {
    const { key, rule, quiet_ms } = alert
    if (!isOn(rule, rules) || (quiet_ms ?? Infinity) <= view.now) return true
    return !keys.has(key) && !saysNow(view, alert)
  })
  const quiet = active.flatMap(({ quiet_ms }) => quiet_ms ?? [])
  return {
    raised: lasting.filter(({ key, subject }) => said.get(key) !== subject),
    over: over.map(({ key }) => key),
    active: active.length,
    next_ms: Math.min(
      ...quiet.filter((at_ms) => at_ms > view.now).map((at_ms) => at_ms - view.now),
      waits.next_ms,
      left_ms > 0 ? left_ms : Infinity,
    ),
  }
}

/** Those who have waited too long for a lock, and in how long the next one has. */
function longWaits(view: View, { wait_seconds }: AlertRules) {
  const raised: Condition[] = []
  let next_ms = Infinity
  if (wait_seconds === null) return { raised, next_ms }
  for (const ticket of view.scan('tickets', '')) {
    // Nobody's rank is after the time at which it asked: whoever comes next is no sooner due.
    const bound_ms = wait_seconds * 1000 - view.now
    if (ticket.rank + bound_ms > 0) {
      next_ms = Math.min(next_ms, ticket.rank + bound_ms)
      break
    }
    if (ticket.cycle) continue
    const left_ms = ticket.asked_ms + bound_ms
    if (left_ms > 0) next_ms = Math.min(next_ms, left_ms)
    else raised.push(waitCondition(ticket, wait_seconds))
  }
  return { raised, next_ms }
}

function waitCondition({ id, agent, names }: Ticket, bound: number): Condition {
  const message = `${agent} has waited for ${names[0]} for over ${bound} s`
  const key = keyFor('long_wait', id)
  return { key, rule: 'long_wait', subject: `${agent} for ${names[0]}`, message, lasts_ms: null }
}

function queueCondition(task: string, { queue_age_seconds }: AlertRules): Condition {
  const message = `task ${task} is next in its queue and has waited for over ${queue_age_seconds} s`
  return { key: 'queue_age', rule: 'queue_age', subject: `task ${task}`, message, lasts_ms: null }
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
export function raiseAlert(view: View, seen: Condition, tells: boolean): void {
  const { key, rule, subject, message, lasts_ms } = seen
  const quiet_ms = lasts_ms === null ? null : view.now + lasts_ms
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
function oldestQueued(view: View): { task: string; age_ms: number } | undefined {
  const shares = [...firstOf(view.scan('shares_waiting', ''), QUEUES_MAX)]
  const ages = shares.flatMap(({ user }) => {
    const task = first(view.scan('queue_of', user))
    return task ? [{ task: task.id, age_ms: ageOf(view, task) }] : []
  })
  return ages.toSorted((a, b) => b.age_ms - a.age_ms)[0]
}

function ageOf(view: View, task: Task): number {
  const since_ms = view.wall - Date.parse(task.updated_at)
  return Math.max(0, Math.min(queuedFor(view, task), since_ms))
}
