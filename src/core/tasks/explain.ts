import type { Task } from '../schema/task.ts'
import { admits } from '../caller.ts'
import { fullLimits, queueReasons, type Reason } from '../queue/explain.ts'
import { waitBeforeBegin } from '../queue/worktree.ts'
import { lockOf, timesOf } from '../locks/lease.ts'
import { lineOf } from '../locks/line.ts'
import { LOST_MAX } from '../bounds.ts'
import { quoted, word } from '../quote.ts'
import { actionsOf, type Next, nextText } from '../next.ts'
import { Refusal } from '../refusal.ts'
import { busyLease, holdingLease, liveLease } from '../locks/standing.ts'
import { openLandingOf, returnedLast, showLanding } from '../landing/ask.ts'
import { getTask } from './task.ts'
import type { View } from '../view.ts'

/**
 * Why a task is not running (or that it is), in one sentence and as data; `foreseen` is what else
 * is to be said of it.
 */
export function explainTask(view: View, id: string, agent: string, foreseen: Reason[] = []) {
  const task = getTask(view, id)
  const reasons = [...endedOrRunning(view, task), ...obstacles(view, task, agent)]
  if (reasons.length === 0) reasons.push(readiness(task))
  const all = [...reasons, ...foreseen]
  const sentence = `Task ${id} ${all.map((r) => r.sentence).join('; and ')}.`
  return { sentence, reasons: all, ...said(adviceOn(task, reasons[0]!)) }
}

/** What can be done, as data and as text that no door has worded. */
function said(next: Next) {
  const actions = actionsOf(next)
  return { next: nextText(actions), actions }
}

function adviceOn({ id, status, queue }: Task, { code, details }: Reason): Next {
  const moving = (says: string, to: string) => {
    return { says, operation: 'task.status', input: { id, status: to } }
  }
  switch (code) {
    case 'landing':
      return { says: 'See it', operation: 'land.get', input: { id: details['landing'] } }
    case 'ended':
      if (status === 'review') return moving('Accept it', 'done')
      if (status === 'done') return ''
      return queue
        ? { says: 'When the cause is mended', operation: 'queue.retry', input: { id } }
        : moving('To have it done after all', 'todo')
    case 'paused':
      return { says: 'Let it go on', operation: 'queue.resume' }
    case 'no_dispatcher':
      return 'Start one: leasehold up'
    case 'unserved':
      return 'Name the project in config.json, then: leasehold config approve'
    case 'ready':
      return queue ? '' : { says: 'Take it', operation: 'task.claim', input: { id } }
    default:
      return ''
  }
}

function* endedOrRunning(view: View, task: Task): Generator<Reason> {
  if (task.status === 'todo') return
  if (task.status !== 'in_progress') {
    yield endOf(view, task)
    return
  }
  const lease = liveLease(view, lockOf(task.id))
  const until = lease && ` until ${timesOf(view, lease).expires_at}`
  const run = task.run_id === null ? undefined : view.get('run', task.run_id)
  const before = run ? waitBeforeBegin(view, run) : ''
  const sentence = `is running: ${word(task.assignee ?? 'nobody')} has it${until ?? ''}${before}`
  yield { code: 'running', sentence, details: { assignee: task.assignee, run: task.run_id } }
}

/** What became of saying that it is done, where that has to be proved. */
function landingOf(view: View, task: Task): Reason | undefined {
  const { id, status } = task
  const open = status === 'review' ? openLandingOf(view, id) : undefined
  if (open) {
    const { target, position, reason } = showLanding(view, open)
    const what = target === null ? 'its check' : `landing onto ${target}`
    const now = position === null ? `${what} is under way` : `${what} is number ${position} in line`
    const sentence = `is in review: ${now} (${open.id})${reason ? `; ${reason}` : ''}`
    return { code: 'landing', sentence, details: { landing: open.id, position, reason } }
  }
  const returned = status === 'failed' ? returnedLast(view, task) : undefined
  if (!returned) return undefined
  const sentence = `failed: landing ${returned.id} came back with ${quoted(returned.reason ?? '')}`
  return { code: 'ended', sentence, details: { status, landing: returned.id } }
}

/** How it ended, and by what: a failed one by its last run, or because too many were lost. */
function endOf(view: View, task: Task): Reason {
  const { id, status, attempts, queue } = task
  const landing = landingOf(view, task)
  if (landing) return landing
  const run = status === 'failed' ? view.get('run', `${id}.${attempts}`) : undefined
  if (!run) {
    const sentence = `is not waiting to run: it is ${status === 'review' ? 'in review' : status}`
    return { code: 'ended', sentence, details: { status } }
  }
  const { outcome } = run
  const last = `its last run, ${run.id} of ${word(run.agent)}, ended with ${quoted(outcome ?? '')}`
  const lost = queue?.lost ?? 0
  const sentence =
    lost >= LOST_MAX
      ? `was put aside, because ${lost} of its runs were lost; ${last}`
      : `failed: ${last}`
  return {
    code: 'ended',
    sentence,
    details: { status, run: run.id, outcome, lost },
  }
}

function* obstacles(view: View, task: Task, agent: string): Generator<Reason> {
  if (task.status !== 'todo') return
  let unmet = 0
  for (const id of task.depends_on) {
    const other = view.get('task', id)
    if (other?.status === 'done') continue
    unmet += 1
    const sentence = `waits for task ${id}, which is ${other?.status ?? 'gone'}`
    yield { code: 'dependency', sentence, details: { task_id: id, status: other?.status ?? null } }
  }
  if (view.isPartial && unmet < task.unmet) {
    yield { code: 'dependency', sentence: 'waits for a task of others', details: {} }
  }
  const lease = holdingLease(view, lockOf(task.id))
  if (lease) {
    const { expires_at } = timesOf(view, lease)
    const sentence = `is locked by ${word(lease.holder)} until ${expires_at}`
    yield { code: 'locked', sentence, details: { holder: lease.holder, expires_at } }
  }
  const [next] = lease ? [] : lineOf(view, lockOf(task.id))
  if (next) {
    const sentence = `has a free lock that is promised to ${word(next.agent)}, who waits for it`
    yield { code: 'promised', sentence, details: { next_holder: next.agent } }
  }
  if (task.assigned_to !== null && !admits(task.assigned_to, agent)) {
    const sentence = `is assigned to ${word(task.assigned_to)}, so only that agent may claim it`
    yield { code: 'assigned', sentence, details: { assigned_to: task.assigned_to } }
  }
  yield* task.queue ? queueReasons(view, task) : fullLimits(view, task)
}

function readiness(task: Task): Reason {
  const sentence = task.queue
    ? 'is next in turn: a dispatcher is about to start it'
    : 'is ready, but no agent has claimed it yet'
  return { code: 'ready', sentence, details: { priority: task.priority } }
}

/** Who keeps others from a lock, and until when. */
export function whoHolds(view: View, name: string): string {
  const lease = holdingLease(view, name) ?? busyLease(view, name)
  return lease
    ? `${word(lease.holder)} holds it until ${timesOf(view, lease).expires_at}`
    : 'it is free and its head has been called'
}

/** Why a waiter does not have its lock yet: who holds it, and who comes before. */
export function explainWaiter(view: View, name: string, agent: string) {
  const line = [...lineOf(view, name)]
  const position = line.findIndex((ticket) => ticket.agent === agent) + 1
  const lease = holdingLease(view, name) ?? busyLease(view, name)
  if (position === 0) {
    throw new Refusal('not_found', `${word(agent)} does not wait for ${word(name)}`, {
      next: { says: 'See who does', operation: 'lock.status', input: { name } },
      details: { name, agent, waiters: line.length },
    })
  }
  const others = line[position - 1]!.names.filter((each) => each !== name)
  const also = others.length > 0 ? `; it needs ${others.map(word).join(', ')} at the same time` : ''
  const place = `number ${position} of ${line.length} in the line for ${word(name)}`
  const sentence = `${word(agent)} is ${place}; ${whoHolds(view, name)}${also}`
  const details = { position, waiters: line.length, holder: lease?.holder ?? null }
  const reason: Reason = { code: 'waiting', sentence, details }
  return { sentence: `${sentence}.`, reasons: [reason], ...said('') }
}
