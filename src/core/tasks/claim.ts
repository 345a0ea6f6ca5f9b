import type { Run, Task } from '../schema/task.ts'
import type { Lease } from '../schema/lock.ts'
import { admits, type Caller } from '../caller.ts'
import { breakCyclesThrough } from '../locks/deadlock.ts'
import { followGroup } from '../queue/lane.ts'
import { type Grant, grantLease, lockOf, whoseRun } from '../locks/lease.ts'
import { fullLimit, takeLimits } from '../queue/limit.ts'
import { blockedBy } from '../locks/lock.ts'
import { word } from '../quote.ts'
import {
  ANY,
  behind,
  forAgent,
  inProject,
  isBehind,
  putTask,
  queuedFor,
  withLabel,
} from './ready.ts'
import { Refusal } from '../refusal.ts'
import { openRun } from './run.ts'
import { getTask } from './task.ts'
import { userLock } from '../queue/share.ts'
import { mayTake } from '../token_scope.ts'
import type { View } from '../view.ts'

export interface Claim {
  task: Task
  lease: Lease
  run: Run
}

export interface ClaimAsk extends Grant {
  takeover: boolean
  /** Whether enqueued tasks may be taken, which are for dispatchers otherwise. */
  queued?: boolean
}

/**
 * Takes a task: a lease on `task:ID`, `in_progress`, a new run and one event, or nothing of it.
 * Refuses: `not_found`, `forbidden` (assigned to another), `held`, `illegal_move` (not `todo`, or
 * its dependencies are not done).
 */
export function claimTask(view: View, id: string, ask: ClaimAsk, caller: Caller): Claim {
  const task = getTask(view, id)
  refuseAssigned(task, caller)
  if (!ask.queued) refuseQueued(task)
  const blocked = blockedBy(view, lockOf(id), ask, caller)
  if (blocked) throw blocked
  return startTask(view, getTask(view, id), ask, caller, ['todo', 'in_progress'])
}

/** A task that is assigned to one agent may be claimed by that agent and its subagents only. */
export function refuseAssigned(task: Task, caller: Caller): void {
  if (task.assigned_to === null || admits(task.assigned_to, caller.agent)) return
  throw new Refusal('forbidden', `Task ${task.id} is assigned to ${word(task.assigned_to)}`, {
    next: { says: 'Take another', operation: 'task.claim' },
    details: { task_id: task.id, assigned_to: task.assigned_to },
  })
}

/** An enqueued task waits for its turn; an agent that takes it anyway has to say so. */
export function refuseQueued(task: Task): void {
  if (!task.queue || task.status !== 'todo') return
  throw new Refusal('forbidden', `Task ${task.id} is enqueued: a dispatcher starts it in turn`, {
    next: {
      says: 'To take it yourself',
      operation: 'task.claim',
      input: { id: task.id, queued: true },
    },
    details: { task_id: task.id, queued: true },
  })
}

/** Claims a task whose lock may be taken. `from` says which statuses the caller's verb allows. */
export function startTask(
  view: View,
  task: Task,
  ask: Grant,
  caller: Caller,
  from: readonly Task['status'][],
): Claim {
  if (!from.includes(task.status) || task.unmet > 0) throw notClaimable(view, task)
  const lease = grantLease(view, lockOf(task.id), caller, ask)
  const claim = beginRun(view, getTask(view, task.id), lease)
  const data = {
    fence: lease.fence,
    run: claim.run.id,
    ttl_seconds: lease.ttl_ms / 1000,
    ...whoseRun(claim.lease),
    ...(task.queue && task.attempts === 0 && { queued_ms: queuedFor(view, task) }),
  }
  view.record('task.claimed', { agent: caller.agent, lock: lease.name, task: task.id }, data)
  breakCyclesThrough(view, claim.lease)
  return claim
}

/**
 * Moves a task to `in_progress` under a lease, with all its limits, or refuses with `held`. A
 * holder that claims again keeps its run.
 */
export function beginRun(view: View, task: Task, granted: Lease): Claim {
  const lease = takeLimits(view, task, granted)
  const open = task.run_id === null ? undefined : view.get('run', task.run_id)
  const run = open ? { ...open, fence: lease.fence } : openRun(view, task, lease)
  if (open) view.put('run', run)
  const begun: Task = {
    ...task,
    status: 'in_progress',
    assignee: lease.holder,
    assigned_at: view.at,
    attempts: open ? task.attempts : task.attempts + 1,
    run_id: run.id,
    version: task.version + 1,
    updated_at: view.at,
  }
  const claimed = putTask(view, task, begun)
  if (task.queue) followGroup(view, task)
  return { task: claimed, lease, run }
}

/** `illegal_move`, with what stands in the way. */
export function notClaimable(view: View, task: Task): Refusal {
  const waits = task.depends_on.filter((id) => view.get('task', id)?.status !== 'done')
  const why =
    task.unmet > 0 ? `it waits for ${waits.join(', ')}` : `it is ${task.status.replace('_', ' ')}`
  return new Refusal('illegal_move', `Task ${task.id} cannot be claimed: ${why}`, {
    next:
      task.unmet > 0
        ? 'Finish what it waits for first, or claim another task.'
        : {
            says: 'Only a task in todo can be claimed',
            operation: 'task.explain',
            input: { id: task.id },
          },
    details: { task_id: task.id, status: task.status, waits_for: waits },
  })
}

export interface ClaimFilter {
  project?: string | undefined
  label?: string | undefined
  /** At least this priority. */
  priority?: number | undefined
}

/** The best ready tasks that fit the filter, up to `max`, claimed; none when nothing is ready. */
export function claimNext(
  view: View,
  filter: ClaimFilter,
  ask: ClaimAsk,
  caller: Caller,
  max = 1,
): Claim[] {
  const claims: Claim[] = []
  const passed = new Set<string>()
  for (const task of readyFor(view, filter, caller.agent, passed)) {
    if (!mayTake(task, caller)) continue
    const full = fullLimit(view, task)
    // Nothing of this user can be claimed: the rest need not be looked at.
    if (task.user !== null && full === userLock(task.user)) passed.add(task.user)
    if (full !== undefined) continue
    if (blockedBy(view, lockOf(task.id), ask, caller)) continue
    claims.push(startTask(view, task, ask, caller, ['todo']))
    if (claims.length >= max) break
  }
  return claims
}

/**
 * Ready tasks that `agent` may take, best first: its own and, by filter, everybody's. Leaves out
 * users that the caller has `passed` meanwhile.
 */
export function* readyFor(
  view: View,
  filter: ClaimFilter,
  agent: string,
  passed: ReadonlySet<string> = new Set(),
): Generator<Task> {
  const open =
    filter.project !== undefined
      ? inProject(filter.project)
      : filter.label !== undefined
        ? withLabel(filter.label)
        : ANY
  const parts = agent.split('/')
  const own = parts.map((_, i) => forAgent(parts.slice(0, i + 1).join('/')))
  for (const task of merged(view, [open, ...own], passed)) if (fits(task, filter)) yield task
}

function fits(task: Task, filter: ClaimFilter): boolean {
  return (
    (filter.project === undefined || task.project === filter.project) &&
    (filter.label === undefined || task.labels.includes(filter.label)) &&
    (filter.priority === undefined || task.priority >= filter.priority)
  )
}

/** Several scopes as one, by rank, with what stands behind the first of each user. */
function* merged(view: View, scopes: string[], passed: ReadonlySet<string>): Generator<Task> {
  const begin = (scope: string) => {
    const rows = view.scan('ready_in', scope)[Symbol.iterator]()
    return { scope, rows, at: rows.next() }
  }
  let lists = scopes.map(begin)
  const met = new Set<string>()
  for (;;) {
    lists = lists.filter(({ at }) => !at.done)
    if (lists.length === 0) return
    const best = lists.reduce((a, b) => (b.at.value!.rank < a.at.value!.rank ? b : a))
    const { scope } = best
    const task = view.get('task', best.at.value!.task_id)
    if (task?.user && passed.has(task.user) && isBehind(scope)) {
      lists = lists.filter((each) => each !== best)
      continue
    }
    best.at = best.rows.next()
    if (!task || met.has(task.id)) continue
    if (task.user !== null) {
      if (passed.has(task.user)) continue
      const rest = behind(scope, task.user)
      if (!isBehind(scope) && !met.has(rest)) lists.push(begin(rest))
      met.add(task.id).add(rest)
    }
    yield task
  }
}
