import type { DispatcherRow } from '../schema/queue.ts'
import type { Run, Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import type { Caller } from '../caller.ts'
import type { Claim } from '../tasks/claim.ts'
import {
  checkFence,
  closeLease,
  endLease,
  heldFor,
  lockOf,
  refuseForeign,
  refuseWhileRunning,
} from '../locks/lease.ts'
import { putLimit, unserved } from './limit.ts'
import { lend, resourcesFor } from './resource.ts'
import { setStatus } from '../tasks/move.ts'
import { planted } from '../planted.ts'
import { claimQueued } from './queue.ts'
import { putTask } from '../tasks/ready.ts'
import { missing, Refusal } from '../refusal.ts'
import type { GroupRef, ProcessRef, RunStatus, Status } from '../rows.ts'
import { nameOfHost } from './rows.ts'
import { expiryOf } from '../locks/standing.ts'
import { getTask } from '../tasks/task.ts'
import { bindToken } from '../token.ts'
import type { View } from '../view.ts'

/** A dispatcher is here: tasks of its projects need no longer wait for one. */
export function registerDispatcher(view: View, dispatcher: DispatcherRow): void {
  view.put('dispatcher', dispatcher)
  for (const project of dispatcher.projects) {
    const limit = view.get('limit', unserved(project))
    if (limit?.paused) putLimit(view, { ...limit, paused: false })
  }
  const { slots_max, projects } = dispatcher
  const host = nameOfHost(dispatcher.host)
  const type = 'dispatcher.registered'
  const data = { dispatcher: dispatcher.id, host, slots_max, projects }
  view.record(type, { agent: dispatcher.id, lock: dispatcher.id }, data)
}

export interface DispatchAsk {
  dispatcher: string
  ttl_ms: number
  /** The dispatcher's own process: until the runner takes over, the claim lives with it. */
  process: ProcessRef
  /** The agent's name for a task, from which the id of its run's agent is made. */
  agentFor: (task: Task) => string
  /** SHA-256 of the secret that the run's agent will come in with. */
  token_hash: string
  /** The lease outlasts the run's time by this much, so that its runner can end it itself. */
  slack_ms?: number
}

/**
 * Takes the task whose turn it is for a free slot of a dispatcher: the task's lock and every limit,
 * in one step, before anything starts. Undefined when no slot is free or nothing could start.
 */
export function dispatchNext(view: View, ask: DispatchAsk): Claim | undefined {
  const dispatcher = view.get('dispatcher', ask.dispatcher)
  if (!dispatcher || slotsUsed(view, dispatcher.id) >= dispatcher.slots_max) return undefined
  const as = (task: Task): Caller => ({
    agent: `${ask.agentFor(task)}:${task.id}.${task.attempts + 1}`,
    given: true,
    process: ask.process,
    admin: false,
    under: null,
  })
  const { ttl_ms, process } = ask
  const projects = new Set(dispatcher.projects)
  const { host } = dispatcher
  const asked = { as, projects, ttl_ms, process, dispatches: true, host }
  const claim = claimQueued(view, asked)
  if (!claim) return undefined
  const run = { ...claim.run, dispatcher: dispatcher.id, pid: null }
  view.put('run', run)
  const lent = lend(view, claim.lease, resourcesFor(view, host, claim.task))
  const slack = slacken(view, lent, ask.slack_ms ?? 0)
  const lease = bindToken(view, slack, claim.task, ask.token_hash)
  return { ...claim, lease, run }
}

/** As many as free slots, limits and tokens allow, in one step: each run comes in by its own. */
export function dispatchAll(
  view: View,
  { token_hashes, ...ask }: Omit<DispatchAsk, 'token_hash'> & { token_hashes: string[] },
): Claim[] {
  const claims: Claim[] = []
  for (const token_hash of token_hashes) {
    const claim = dispatchNext(view, { ...ask, token_hash })
    if (!claim) break
    claims.push(claim)
  }
  return claims
}

function slacken(view: View, lease: Lease, slack_ms: number): Lease {
  const { terms } = lease
  if (!terms?.until_ms) return lease
  const slack = { ...terms, until_ms: terms.until_ms + slack_ms }
  return { ...lease, terms: slack, expires_ms: expiryOf(view.now, lease.ttl_ms, slack) }
}

/** Runs of a dispatcher that are not over, also those that a former process of it started. */
export function slotsUsed(view: View, dispatcher: string): number {
  return [...view.scan('runs_dispatched_by', dispatcher)].length
}

/** The run, or `not_found`. */
export const getRun = (view: View, id: string): Run =>
  view.get('run', id) ?? missing(`run ${id}`, 'run.list', { run_id: id })

/** The lease of a run. A fence that is current, but of another run, says nothing about this one. */
function checkRun(view: View, run: Run, fence: number, caller: Caller): Lease {
  const lease = checkFence(view, lockOf(run.task_id), fence, caller)
  if (run.fence === fence && run.ended_at === null) return lease
  throw new Refusal('illegal_move', `Run ${run.id} is not the one that fence ${fence} is for`, {
    next: 'Stop this work: it is no longer yours.',
    details: { run_id: run.id, fence, run_fence: run.fence, ended_at: run.ended_at },
  })
}

export interface StartRun {
  id: string
  fence: number
  process: ProcessRef
  group: GroupRef
}

/**
 * A runner is about to start its command: at most once per fence, and only if the fence is current.
 * From here on the lease lives with the runner, and ends when the command's group is gone.
 */
export function startRun(view: View, ask: StartRun, caller: Caller): Run {
  const run = getRun(view, ask.id)
  const lease = checkRun(view, run, ask.fence, caller)
  if (run.begun_at !== null && !planted('S12')) {
    throw new Refusal('illegal_move', `Run ${run.id} has been started already`, {
      next: 'Do not start it again: its runner is at work, or is being settled.',
      details: { run_id: run.id, begun_at: run.begun_at },
    })
  }
  const { process, group } = ask
  refuseForeign(view, group)
  view.put('lease', { ...lease, process, seat: process.seat, group })
  const started = { ...run, begun_at: view.at, host: group.host, pid: group.pid }
  view.put('run', started)
  const launch_ms = view.now - lease.acquired_ms
  const { task_id: task } = run
  const data = { run: run.id, fence: ask.fence, pid: group.pid, host: group.host, launch_ms }
  view.record('run.started', { agent: caller.agent, lock: lease.name, task }, data)
  return started
}

/**
 * A runner is gone before it started its command: nothing has run, and the task goes back to the
 * queue. The run counts as lost, or a task that can never be started would be tried for ever;
 * unless this host could start no process at all.
 */
export function abandonRun(view: View, ask: AbandonRun): void {
  const run = view.get('run', ask.id)
  if (!run || run.ended_at !== null || run.begun_at !== null) return
  const lease = view.get('lease', lockOf(run.task_id))
  if (!lease || lease.fence !== ask.fence || lease.ended_at !== null) return
  const task = getTask(view, run.task_id)
  const lost = (task.queue?.lost ?? 0) + Number(ask.had_runner)
  putTask(view, task, { ...task, queue: task.queue && { ...task.queue, lost } })
  const why = ask.had_runner ? 'its runner has gone before it began' : 'it got no runner'
  endLease(view, lease, 'died', lease.holder, why)
}

interface AbandonRun {
  id: string
  fence: number
  had_runner: boolean
}

export interface FinishRun {
  id: string
  fence: number
  exit_code: number | null
  signal: string | null
  /** Why we ended it, or why it could not begin; null when it ended by itself. */
  reason: string | null
  /** It was ended because its lease was lost, which says nothing about the task: it goes back. */
  lost?: boolean
}

/**
 * A run has ended and nothing of it is left. Exit 0 is done; anything else failed, or goes back to
 * the queue while retries last; unless the agent moved the task itself. Gives everything back.
 */
export function finishRun(view: View, ask: FinishRun, caller: Caller): Run {
  const run = getRun(view, ask.id)
  const lease = checkRun(view, run, ask.fence, caller)
  refuseWhileRunning(view, lease)
  const { exit_code, signal, reason } = ask
  const ended = reason ?? (signal === null ? `exit ${exit_code}` : `killed by ${signal}`)
  view.put('run', { ...run, exit_code, signal })
  const task = getTask(view, run.task_id)
  if (ask.lost && task.status === 'in_progress') {
    endLease(view, lease, 'died', caller.agent, ended)
    return getRun(view, run.id)
  }
  const well = exit_code === 0 && reason === null
  const to = task.status === 'in_progress' ? statusAfter(task, well) : undefined
  if (to !== undefined) {
    const counted = well || !task.queue ? task : failOnce(view, task)
    setStatus(view, counted, to, caller, { lease, releases: true })
  }
  closeLease(view, lease, 'released')
  const closed = getRun(view, run.id)
  const status: RunStatus = to === undefined ? closed.status : well ? 'completed' : 'failed'
  const over = { ...closed, status, outcome: ended }
  view.put('run', over)
  const data = {
    run: run.id,
    fence: ask.fence,
    status: over.status,
    exit_code,
    signal,
    reason,
    // If the task was moved just now, the event of that move has it already.
    ...(to === undefined && heldFor(view, lease)),
  }
  const { task_id } = run
  view.record('run.ended', { agent: caller.agent, lock: lease.name, task: task_id }, data)
  return over
}

/** What becomes of a task whose run ended well, or not. */
export function statusAfter(task: Task, well: boolean): Status {
  if (well) return 'done'
  return task.queue && task.queue.failed < task.queue.retries ? 'todo' : 'failed'
}

/** Counts a failure of an enqueued task. */
export function failOnce(view: View, task: Task): Task {
  const queue = task.queue && { ...task.queue, failed: task.queue.failed + 1 }
  return putTask(view, task, { ...task, queue })
}
