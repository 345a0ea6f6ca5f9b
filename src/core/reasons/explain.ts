import type { Task } from '../schema/task.ts'
import { admits } from '../caller.ts'
import { openLandingOf, returnedLast, showLanding } from '../landing/ask.ts'
import { lockOf, timesOf } from '../locks/lease.ts'
import { headOf } from '../locks/line.ts'
import { holdingLease, liveLease } from '../locks/standing.ts'
import { slotsUsed } from '../queue/dispatch.ts'
import { fullCounter, limitOf, unserved } from '../queue/limit.ts'
import { positionOf } from '../queue/queue.ts'
import { emptyOf, resourcesFor } from '../queue/resource.ts'
import { busyWith, isBusy, maxOf, queueOf, shareOf, userLock } from '../queue/share.ts'
import { liveDispatchers } from '../queue/status.ts'
import { waitBeforeBegin } from '../queue/worktree.ts'
import { nextText } from '../next.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import type { Status } from '../rows.ts'
import { getTask } from '../tasks/task.ts'
import type { View } from '../view.ts'
import { type Link, SEVERITIES } from './reason.ts'
import { because, type Code, CODES, leadsTo, nextOf, type Reason, severityOf } from './reasons.ts'
import { Waits } from './waits.ts'

/** A chain of waits is told so far: nobody reads on, and it may go round in a circle. */
const CHAIN_MAX = 20
/** A run that has not begun after so long waits for something. */
const BEGIN_MS = 60_000
/** An agent that could not be started so lately would not be started now. */
const LATELY_MS = 3600_000

/** Another task that changes the same files, and which. */
interface Overlap {
  task_id: string
  status: Status
  paths: string[]
}

/**
 * Why a task is not running (or that it is), in one sentence and as data, down to the root;
 * `overlaps` are the tasks that change the same as this one.
 */
export function explainTask(view: View, id: string, agent: string, overlaps: Overlap[] = []) {
  const reasons = [...reasonsOf(view, getTask(view, id), agent)]
  const more = overlaps.map((each) => because('overlap', each))
  return told(view, `Task ${id}`, [...reasons, ...more], { task: id })
}

/** Why a waiter does not have its lock yet: who holds it, and who comes before. */
export function explainWaiter(view: View, name: string, agent: string) {
  const waits = new Waits(view)
  const line = waits.lineOf(name)
  const ticket = line.find((each) => each.agent === agent)
  if (!ticket) {
    throw new Refusal('not_found', `${word(agent)} does not wait for ${word(name)}`, {
      next: { says: 'See who does', operation: 'lock.status', input: { name } },
      details: { name, agent, waiters: line.length },
    })
  }
  return told(view, word(agent), [waits.reasonOf(ticket, name)])
}

function told(view: View, who: string, reasons: Reason[], from?: Link) {
  const main = mainOf(reasons)!
  const chain = chainFrom(view, main, from)
  const first = `${who} ${reasons.map((reason) => reason.sentence).join('; and ')}`
  return {
    sentence: [first, ...chain].map((each) => `${each}.`).join(' '),
    reasons,
    chain,
    next: nextText(nextOf(main)),
    actions: nextOf(main),
  }
}

const inOrder = (reasons: Reason[]) =>
  reasons.toSorted((a, b) => CODES.indexOf(a.code) - CODES.indexOf(b.code))

/** The one that counts most: what keeps all from going on comes before what will pass. */
const mainOf = (reasons: Reason[]): Reason | undefined => {
  const rank = (reason: Reason) => SEVERITIES.indexOf(severityOf(reason))
  return inOrder(reasons).toSorted((a, b) => rank(a) - rank(b))[0]
}

/** What keeps that which keeps the first, and so on, down to what is kept by nobody. */
function chainFrom(view: View, first: Reason, from: Link | undefined): string[] {
  const waits = new Waits(view)
  const seen = new Set([JSON.stringify(from)])
  const chain: string[] = []
  for (let link = leadsTo(first); link && chain.length < CHAIN_MAX;) {
    if (seen.has(JSON.stringify(link))) break
    seen.add(JSON.stringify(link))
    const { who, reason } = linked(view, waits, link) ?? {}
    // That a task is ready, or goes on, keeps nobody.
    if (!reason || reason.code === 'ready' || reason.sentence === first.sentence) break
    const next = leadsTo(reason)
    if (reason.code !== 'running') chain.push(`${who} ${reason.sentence}`)
    link = next
  }
  return chain
}

function linked(view: View, waits: Waits, link: Link): { who: string; reason: Reason } | undefined {
  if ('task' in link) {
    const task = view.get('task', link.task)
    const reason = task && mainOf([...reasonsOf(view, task, '')])
    return reason && { who: `Task ${link.task}`, reason }
  }
  const lease = 'lock' in link ? waits.holderOf(link.lock) : undefined
  const ticket =
    'ticket' in link ? view.get('ticket', link.ticket) : lease && waits.ofHolder(lease)[0]
  if (!ticket) return undefined
  return { who: word(ticket.agent), reason: waits.reasonOf(ticket) }
}

/** All that is to be said of a task now, in the order of the table. */
function reasonsOf(view: View, task: Task, agent: string): Reason[] {
  if (task.status !== 'todo') return [stateOf(view, task)]
  const found = [...obstacles(view, task, agent), ...fullLimits(view, task)]
  if (task.queue) found.push(...order(view, task), ...queueObstacles(view, task))
  return found.length === 0 ? [readiness(task)] : inOrder(found)
}

/** How a task stands that nothing keeps from starting: it has started. */
function stateOf(view: View, task: Task): Reason {
  const { id, status, queue } = task
  if (status === 'in_progress') return running(view, task)
  const open = status === 'review' ? openLandingOf(view, id) : undefined
  if (open) {
    const { target, position, reason } = showLanding(view, open)
    const is_left = open.reason === null && reason !== null
    return because('landing', { id, landing: open.id, target, position, reason, is_left })
  }
  const of = { id, status, queued: queue !== null }
  return because('ended', status === 'failed' ? { ...of, ...failure(view, task) } : of)
}

function running(view: View, { id, run_id, assignee }: Task): Reason {
  const lease = liveLease(view, lockOf(id))
  const run = run_id === null ? undefined : view.get('run', run_id)
  const until = lease ? ` until ${timesOf(view, lease).expires_at}` : ''
  const before = run ? waitBeforeBegin(view, run) : ''
  const took_ms = lease && before !== '' ? view.now - lease.acquired_ms : 0
  const late_ms = took_ms < BEGIN_MS ? 0 : took_ms
  return because('running', { id, assignee, run: run_id ?? undefined, until, before, late_ms })
}

/** By what it failed: what came back from landing it, its last run, or too many that were lost. */
function failure(view: View, task: Task) {
  const run = view.get('run', `${task.id}.${task.attempts}`)
  const returned = returnedLast(view, task)
  const at = returned?.ended_at ?? run?.ended_at ?? task.updated_at
  return {
    ...(returned && { landing: returned.id, reason: returned.reason }),
    ...(run && { run: run.id, agent: run.agent, outcome: run.outcome }),
    lost: task.queue?.lost ?? 0,
    lately: view.wall - Date.parse(at) < LATELY_MS,
  }
}

function* obstacles(view: View, task: Task, agent: string): Generator<Reason> {
  let unmet = 0
  for (const task_id of task.depends_on) {
    const status = view.get('task', task_id)?.status ?? null
    if (status === 'done') continue
    unmet += 1
    yield because('dependency', { task_id, status })
  }
  if (view.isPartial && unmet < task.unmet) yield because('dependency', {})
  const lease = holdingLease(view, lockOf(task.id))
  const next = lease ? undefined : headOf(view, lockOf(task.id))
  if (lease) {
    const { expires_at } = timesOf(view, lease)
    yield because('locked', { id: task.id, holder: lease.holder, expires_at })
  } else if (next) yield because('promised', { next_holder: next.agent, ticket: next.id })
  if (task.assigned_to !== null && !admits(task.assigned_to, agent)) {
    yield because('assigned', { assigned_to: task.assigned_to })
  }
}

const readiness = ({ id, priority, queue }: Task): Reason =>
  because('ready', { id, priority, queued: queue !== null })

/** Limits that keep a task from being claimed, enqueued or not. */
function* fullLimits(view: View, task: Task): Generator<Reason> {
  const { user } = task
  if (user !== null) {
    const busy_with = busyWith(view, userLock(user))
    const share = shareOf(view, user)
    const max = maxOf(view, share)
    const next = busy_with === undefined ? headOf(view, userLock(user)) : undefined
    if (busy_with !== undefined) yield because('user_busy', { user, max, busy_with })
    else if (isBusy(view, share)) yield because('user_busy', { user, max })
    else if (next) yield because('user_busy', { user, max, next: next.agent })
  }
  const full = fullCounter(view, task)
  if (full === undefined) return
  const { max, used, paused } = limitOf(view, full)
  const of = { limit: full, max, used }
  if (paused) yield because('paused', { ...of, paused: full })
  else yield because(`${full.split(':')[0]}_limit` as 'pool_limit', of)
}

/** Others of the same user come first: by priority, by age, or as members of a group. */
function* order(view: View, task: Task): Generator<Reason> {
  const { next_task, pending } = shareOf(view, task.user ?? '')
  if (next_task === null || next_task === task.id) return
  const of = view.isPartial ? {} : { of: pending }
  yield because('order', { position: positionOf(view, task), next_task, ...of })
}

/** Dispatchers that are at work, and whether all slots of each are in use. */
export const dispatchersOf = (view: View) =>
  liveDispatchers(view).map(({ id, host, projects, slots_max }) => {
    return { id, host, projects, slots_max, isFull: slotsUsed(view, id) >= slots_max }
  })
type Dispatchers = ReturnType<typeof dispatchersOf>

/** What keeps the dispatchers from starting a task that may be claimed. */
function* queueObstacles(
  view: View,
  task: Task,
  dispatchers: Dispatchers = dispatchersOf(view),
): Generator<Reason> {
  if (queueOf(view).paused) yield because('paused', { paused: 'all' })
  if (task.user !== null && shareOf(view, task.user).paused) {
    yield because('paused', { paused: userLock(task.user) })
  }
  if (dispatchers.length === 0) return yield because('no_dispatcher', {})
  const project = task.project ?? ''
  const serving = dispatchers.filter(({ projects }) => projects.includes(project))
  if (serving.length === 0) {
    const serves_any = dispatchers.some(({ projects }) => projects.length > 0)
    return yield because('unserved', { project, limit: unserved(project), serves_any })
  }
  const lacking = serving.map(({ host }) => emptyOf(resourcesFor(view, host, task)))
  if (lacking.every((each) => each !== undefined)) {
    const { key: limit, max, used } = limitOf(view, lacking[0]!.key)
    yield because('resource_limit', { limit, max, used })
  }
  if (serving.some(({ isFull }) => !isFull)) return
  yield because('no_slot', { slots: serving.reduce((sum, { slots_max }) => sum + slots_max, 0) })
}

/** What is first to be said of a task whose turn has come, or that has started. */
export function stateOrKept(view: View, task: Task, dispatchers: Dispatchers): Reason {
  if (task.status !== 'todo') return stateOf(view, task)
  const found = task.queue ? [...queueObstacles(view, task, dispatchers)] : []
  return mainOf([...found, ...fullLimits(view, task)]) ?? readiness(task)
}

/** What a task that is added now would wait for, though nobody brings it. */
export function forgotten(view: View, task: Task): string[] {
  const codes = new Set<Code>(['no_dispatcher', 'unserved'])
  return [...queueObstacles(view, task)]
    .filter(({ code }) => codes.has(code))
    .map(({ sentence }) => `Task ${task.id} ${sentence}`)
}
