import type { Lease, Ticket } from '../schema/lock.ts'
import type { Task } from '../schema/task.ts'
import { type Caller, STRANGER } from '../caller.ts'
import { taskOf, timesOf } from '../locks/lease.ts'
import { nodeOfLease } from '../locks/standing.ts'
import { busyWith, queueOf, shareOf } from '../queue/share.ts'
import { listed, word } from '../quote.ts'
import { recentEvents } from '../stats/report.ts'
import { HOUR_MS } from '../stats/stat.ts'
import { readyFor } from '../tasks/claim.ts'
import type { View } from '../view.ts'
import { activeAlerts, NEVER_ENDS, type ShownAlert } from './alert.ts'
import { dispatchersOf, explainTask, stateOrKept } from './explain.ts'
import { about, type About, lasted, type Remedy, SEVERITIES } from './reason.ts'
import {
  aboutOf,
  adviceOn,
  because,
  isOver,
  type Code,
  type Reason,
  rootOf,
  severityOf,
} from './reasons.ts'
import { silentFor, Waits } from './waits.ts'

/** What is stuck: the reasons of everything, put together by root. */

/** A root of what does not go on, however many wait because of it. */
export interface Cause {
  /** The same as long as the cause lasts. */
  id: string
  kind: Code
  severity: (typeof SEVERITIES)[number]
  what: string
  /** In the words of `explain`. */
  why: string
  next: string
  since: string | null
  about: About[]
  /** How many tasks and agents are kept by it, and how many tasks wait for those in turn. */
  tasks: number
  agents: number
  behind: number
  /** Counted up to a bound only. */
  at_least: boolean
  actions: Remedy[]
}

export const HEALTH_STATES = ['ok', 'degraded', 'paused', 'silent'] as const

/** `silent` is what a client says of a server that it does not hear any more. */
export interface Health {
  state: (typeof HEALTH_STATES)[number]
  why: string
}

const ABOUT_MAX = 12
const ACTIONS_MAX = 6
/** What one look costs is bounded: users whose queues are looked at, lanes of each, and so on. */
const USERS_MAX = 100
const LANES_MAX = 50
const LEASES_MAX = 1_000
const TICKETS_MAX = 1_000
const TASKS_MAX = 100
/** A wait of this length is worth a look; an agent that is about to claim needs no such time. */
const LONG_MS = 60_000
/** So many holders that died or fell silent within that time are no accident. */
const DEATHS_MANY = 10

/**
 * What is stuck, by root cause: first what keeps work from going on, by how much waits behind it.
 * `trouble` is what the store cannot keep itself. Counters and indexes tell it all: the cost does
 * not grow with the number of tasks.
 */
export function lookStuck(view: View, caller: Caller, trouble: ShownAlert[] = []): Cause[] {
  const look = new Look(view, caller)
  for (const { id, rule, message: why, since } of trouble) {
    const what = `The store cannot be used as it should: ${why}`
    look.add(because(rule as 'store_trouble', { what }), { key: id, id, why, since })
  }
  look.atTasks()
  look.atLocks()
  look.atDeaths()
  const rank = ({ severity }: Cause) => SEVERITIES.indexOf(severity)
  const size = ({ kind, tasks, agents, behind }: Cause) =>
    behind + (isOver({ code: kind }) ? 0 : tasks + agents)
  const isBad = (cause: Cause) => Number(cause.severity === 'bad')
  return look
    .causes()
    .toSorted((a, b) => isBad(b) - isBad(a) || size(b) - size(a) || rank(a) - rank(b))
}

/** How the whole is, in a word and a sentence: degraded only while something does not go on. */
export function healthOf(causes: readonly Cause[]): Health {
  const bad = causes.filter(({ severity }) => severity === 'bad')
  const store = bad.find(({ kind }) => kind.startsWith('store_'))
  const paused = causes.find(({ id }) => id === 'paused:')
  if (paused && !store) return { state: 'paused', why: paused.what }
  const worst = store ?? bad[0]
  return worst ? { state: 'degraded', why: worst.what } : { state: 'ok', why: '' }
}

/** What a person has to mend, beside the alerts that were raised. */
export const alertsOf = (causes: Cause[], at: string): ShownAlert[] =>
  causes
    .filter(({ severity }) => severity === 'bad')
    .map(({ id, kind: rule, what: message, since, about: things }) => ({
      id,
      rule,
      subject: things[0]?.id ?? rule,
      message,
      since: since ?? at,
      told: true,
      undelivered: [],
      about: things,
    }))

/** Reasons with one root. */
interface Heap {
  /** The same reasons as `stuck` tells them. */
  roots: Reason[]
  /** How many tasks there are, and those of them that are known: of a lane, only its first. */
  count: number
  tasks: Task[]
  at_least: boolean
  /** What else is known where no tasks are counted. */
  more: Partial<Cause>
}

class Look {
  private readonly heaps = new Map<string, Heap>()

  constructor(
    private readonly view: View,
    private readonly caller: Caller,
  ) {}

  /** Puts a reason to all that have the same root; `count` says of how many like `task`. */
  add(
    reason: Reason,
    { key: own = '', task, count = 1, ...more }: Partial<Cause> & Counted = {},
  ): void {
    const { root, key } = rootOf(reason) ?? {}
    if (!root) return
    const id = `${root.code}:${key || own}`
    const heap = this.heaps.get(id) ?? { roots: [], count: 0, tasks: [], at_least: false, more }
    this.heaps.set(id, heap)
    heap.roots.push(root)
    if (!task) return
    heap.tasks.push(task)
    heap.count += count
    heap.at_least ||= more.at_least ?? false
  }

  causes(): Cause[] {
    return [...this.heaps].map(([id, heap]) => this.causeOf(id, heap))
  }

  private causeOf(id: string, { roots, count, tasks, at_least, more }: Heap): Cause {
    const { view, caller } = this
    const [root] = roots as [Reason]
    const [head] = tasks.toSorted((a, b) => a.rank - b.rank)
    const users = new Set(tasks.flatMap(({ user }) => user ?? []))
    const said = head
      ? {
          what: whatOf(root, count, at_least, users.size, isOver(root) ? tasks : []),
          why: explainTask(view, head.id, caller.agent).sentence,
          since: head.updated_at,
        }
      : { what: root.sentence, why: '', since: null, ...more }
    const things = [
      ...(more.about ?? []),
      ...roots.flatMap(aboutOf),
      ...about('user', isOver(root) ? [] : users),
      ...about('task', head ? [head.id] : []),
    ]
    const named = new Map(things.map((each) => [`${each.kind} ${each.id}`, each]))
    const behind = this.waitFor(things)
    const { next, actions } = adviceOn(...roots)
    return {
      ...{
        id,
        kind: root.code,
        severity: severityOf(root),
        next,
        tasks: count,
        agents: 0,
        at_least,
      },
      ...said,
      what: behind === 0 ? said.what : `${said.what}; ${many(behind, 'task waits')} for that`,
      behind,
      about: [...named.values()].slice(0, ABOUT_MAX),
      actions: actions.slice(0, ACTIONS_MAX),
    }
  }

  /** How many tasks depend on those that a cause is about, and on these in turn. */
  private waitFor(things: About[]): number {
    const found = new Set(things.flatMap(({ kind, id }) => (kind === 'task' ? [id] : [])))
    const own = found.size
    for (const id of found) {
      for (const { task_id } of this.view.scan('dependents_of', id)) {
        if (found.size - own === TASKS_MAX) return TASKS_MAX
        if (this.view.get('task', task_id)?.status === 'todo') found.add(task_id)
      }
    }
    return found.size - own
  }

  /** Tasks that do not go on, as far as they have to be looked at to know all roots. */
  atTasks(): void {
    const { view } = this
    const dispatchers = dispatchersOf(view)
    if (queueOf(view).paused) {
      const said = { what: 'The whole queue is paused', severity: 'warn' } as const
      this.add(because('paused', { paused: 'all' }), said)
    }
    const of = (scan: Iterable<Task>, of_more = false) => {
      const { rows, more } = firstOf(scan, TASKS_MAX)
      return rows.map((task): Counted => ({ task, at_least: more || of_more }))
    }
    const failed = of(view.scan('tasks_with_status', 'failed'))
    const runs = dispatchers.flatMap(({ id }) => [...view.scan('runs_dispatched_by', id)])
    // Where very many failed, those that failed last are among them.
    if (failed[0]?.at_least) runs.push(...firstOf(view.scan('runs_newest', ''), TASKS_MAX).rows)
    const ran = runs.flatMap(({ task_id }) => view.get('task', task_id) ?? [])
    const lately = ran.filter(({ status }) => status === 'failed' || status === 'in_progress')
    // Nobody else would say of what waits for these that it waits for ever.
    const cancelled = firstOf(view.scan('tasks_with_status', 'cancelled'), TASKS_MAX).rows
    const looked = [
      ...this.queued(),
      ...of(readyFor(view, {}, '')).filter(({ task }) => this.isPassedBy(task!)),
      ...failed,
      ...of(lately, failed[0]?.at_least),
      ...of(view.scan('tasks_with_status', 'review')),
    ]
    for (const { id: task_id, status } of cancelled) {
      for (const { task_id: id } of firstOf(view.scan('dependents_of', task_id), TASKS_MAX).rows) {
        const task = view.get('task', id)
        if (task?.status === 'todo') this.add(because('dependency', { task_id, status }), { task })
      }
    }
    for (const each of new Map(looked.map((one) => [one.task!.id, one])).values()) {
      this.add(stateOrKept(view, each.task!, dispatchers), each)
    }
  }

  /** An agent that is about to claim a task needs no such time. */
  private isPassedBy = ({ updated_at }: Task) => this.view.wall - Date.parse(updated_at) > LONG_MS;

  /** Enqueued tasks, lane by lane: what keeps the first of each keeps the others of its lane. */
  private *queued(): Generator<Counted> {
    const { view } = this
    const users = this.caller.scope?.users
    const { rows, more: at_least } = Array.isArray(users)
      ? { rows: users.map((user) => shareOf(view, user)), more: false }
      : firstOf(view.scan('shares_waiting', ''), USERS_MAX)
    for (const { user } of rows) {
      const lanes = firstOf(view.scan('lanes_of', user), LANES_MAX).rows
      for (const { key } of firstOf(view.scan('parkings_of', user), LANES_MAX).rows) {
        lanes.push(...firstOf(view.scan('lanes_parked_at', key), LANES_MAX).rows)
      }
      for (const { head_task, ready: count } of lanes) {
        const task = head_task === null ? undefined : view.get('task', head_task)
        if (task) yield { task, count, at_least }
      }
    }
  }

  /** Those who wait for locks, by who holds what they wait for in the end. */
  atLocks(): void {
    const { rows, more } = firstOf(this.view.scan('tickets', ''), TICKETS_MAX)
    const waits = new Waits(this.view, TICKETS_MAX)
    const roots = new Map<string, { leases: Set<Lease>; waiters: Set<Ticket> }>()
    for (const ticket of rows) {
      if (ticket.cycle) {
        this.addDeadlock(ticket.agent, `${NEVER_ENDS}: ${ticket.cycle.join('; ')}`, ticket.asked_at)
      }
      for (const lease of ticket.cycle ? [] : waits.rootsOf(ticket)) {
        const key = nodeOfLease(lease) ?? `lock:${lease.name}`
        const root = roots.get(key) ?? { leases: new Set(), waiters: new Set() }
        roots.set(key, { leases: root.leases.add(lease), waiters: root.waiters.add(ticket) })
      }
    }
    for (const [key, { leases, waiters }] of roots)
      this.addHeld(key, [...leases], [...waiters], more)
    for (const { rule, subject, message, since_at } of activeAlerts(this.view)) {
      // Whoever was let go has left its line; that it was is remembered for a while.
      if (rule === 'deadlock') this.addDeadlock(subject, message, since_at)
    }
  }

  private addDeadlock(agent: string, why: string, since: string): void {
    const what = `${word(agent)} was let go, to break a deadlock`
    const things = [
      ...about('agent', [agent]),
      ...about('events', ['deadlock.found,ticket.broken']),
    ]
    this.add(because('deadlock', { what }), { key: agent, why, since, agents: 1, about: things })
  }

  private addHeld(key: string, leases: Lease[], waiters: Ticket[], at_least: boolean): void {
    const { view } = this
    const names = leases.map(({ name }) => name).toSorted()
    const lease = leases.find(({ name }) => name === names[0])!
    const first = waiters.reduce((a, b) => (b.asked_ms < a.asked_ms ? b : a))
    const agents = [...new Set(waiters.map(({ agent }) => agent))]
    const waited_ms = view.now - first.asked_ms
    // One that should have been renewed by now is enough.
    const [silent_ms] = leases.flatMap((each) => silentFor(view, each) ?? [])
    const isStranger = lease.holder === STRANGER
    const holder = isStranger ? lease.holder : word(lease.holder)
    const heard = silent_ms === undefined ? '' : `, and was not heard of for ${lasted(silent_ms)}`
    const wait = `${many(agents.length, 'agent waits', at_least)}, the longest ${lasted(waited_ms)}`
    const what = `${holder} holds ${listed(names.map(word))}${heard}; ${wait}`
    const tasks = names.flatMap((name) => taskOf(busyWith(view, name) ?? name) ?? [])
    const says = (each: Lease) =>
      `${word(each.name)}: ${word(each.holder)} holds it until ${timesOf(view, each).expires_at}`
    const of = { what, holder, names: names.slice(0, 3), task: tasks[0] }
    const long = waited_ms >= LONG_MS
    this.add(because(silent_ms === undefined ? 'held' : 'holder_silent', { ...of, long }), {
      key,
      why: leases.slice(0, 3).map(says).join('; '),
      since: first.asked_at,
      agents: agents.length,
      at_least,
      about: [
        ...about('agent', isStranger ? [] : [lease.holder]),
        ...about('lock', names.slice(0, 5)),
        ...about('task', tasks.slice(0, 2)),
        ...about('agent', agents.slice(0, 5)),
      ],
    })
  }

  /** Holders that died, or let their leases run out, however many leases each of them had. */
  atDeaths(): void {
    const { view } = this
    const events = recentEvents(view, HOUR_MS)
    if ((events['lease.died'] ?? 0) + (events['lease.expired'] ?? 0) < DEATHS_MANY) return
    const from = { order: view.now - HOUR_MS, key: '' }
    const { rows, more } = firstOf(view.scan('leases_ended', '', from), LEASES_MAX)
    const gone = rows.filter(({ reason }) => reason === 'died' || reason === 'expired')
    const holders = new Set(gone.map(({ holder }) => holder)).size
    const agents = Math.max(holders, events['agent.lost'] ?? 0)
    if (agents < DEATHS_MANY) return
    const what = `In the last hour ${agents}${more ? '+' : ''} holders died or fell silent`
    const since = new Date(view.wall - HOUR_MS).toISOString()
    const things = about('events', ['lease.died,lease.expired'])
    this.add(because('deaths', { what }), { since, agents, at_least: more, about: things })
  }
}

/** `key` tells those of one code apart that have no root in common. */
interface Counted {
  key?: string
  task?: Task
  count?: number
  at_least?: boolean
}

/** What is said of tasks with one root: by name where they are over, else by their number. */
function whatOf(root: Reason, n: number, at_least: boolean, users: number, over: Task[]): string {
  const predicate =
    root.code === 'user_busy' && users > 1 ? 'waits because their users are busy' : root.sentence
  const ids = over.map(({ id }) => id)
  if (n === 1 && !at_least) return `${ids.length > 0 ? `Task ${ids[0]}` : '1 task'} ${predicate}`
  const plural = predicate
    .replace(/^(is|was|has|waits)\b/, (verb) => PLURAL[verb]!)
    .replace('claimed it', 'claimed them')
  const named = ids.length > 0 ? ` (${listed(ids)})` : ''
  return `${n}${at_least ? '+' : ''} tasks${named} ${plural}`
}

const PLURAL: Record<string, string> = { is: 'are', was: 'were', has: 'have', waits: 'wait' }

/** `1 agent waits`, `23+ agents wait`. */
function many(n: number, one: string, at_least = false): string {
  return n === 1 && !at_least
    ? `1 ${one}`
    : `${n}${at_least ? '+' : ''} ${one.replace(' waits', 's wait')}`
}

/** The first rows of a scan, and whether there were more. */
function firstOf<Row>(scan: Iterable<Row>, max: number): { rows: Row[]; more: boolean } {
  const rows: Row[] = []
  for (const row of scan) {
    if (rows.length === max) return { rows, more: true }
    rows.push(row)
  }
  return { rows, more: false }
}
