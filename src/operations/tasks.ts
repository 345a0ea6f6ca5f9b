import type { Run, Task } from '../core/schema/task.ts'
import type { Lease } from '../core/schema/lock.ts'
import { type Claim, claimTask, readyFor } from '../core/tasks/claim.ts'
import { explainTask } from '../core/reasons/explain.ts'
import { proofNote } from '../core/landing/ask.ts'
import { foreseen } from '../core/paths/foreseen.ts'
import { lockOf, showLease } from '../core/locks/lease.ts'
import { moveTask } from '../core/tasks/move.ts'
import { claimAny } from '../core/queue/queue.ts'
import { firstOf } from '../core/first.ts'
import { Refusal } from '../core/refusal.ts'
import { type Status, STATUSES } from '../core/rows.ts'
import { liveLease } from '../core/locks/standing.ts'
import { bodyOf } from '../core/tasks/body.ts'
import { briefTask, createTask, editTask, getTask, listTask, showTask } from '../core/tasks/task.ts'
import type { Need, View } from '../core/view.ts'
import { stillLive } from './locks.ts'
import { field, LEASE_REFUSALS, readOperation, writeOperation } from './operation.ts'
import { pageIn, whileFitting } from './page.ts'
import { chosen, editedTask, marks, newTask, placeOfTask } from './task_fields.ts'
import type { AnswerAs } from './answers/shape.ts'
import * as locksAnswers from './answers/locks.ts'
import * as tasksAnswers from './answers/tasks.ts'
import * as f from './fields.ts'
import * as s from './schemas.ts'

type ShownTask = AnswerAs<typeof tasksAnswers.task>
export type ShownClaim = AnswerAs<typeof tasksAnswers.claim>
/** Who asks for up to `max` is told of all; the first of them is where one alone would be. */
type Claims = AnswerAs<typeof tasksAnswers.claims>

const NO_CLAIM: ShownClaim = { task: null, lease: null, run: null }

const asClaims = (claims: ShownClaim[], max: number | undefined): Claims => ({
  ...(claims[0] ?? NO_CLAIM),
  ...(max !== undefined && { claims }),
})

const claimsIn = ({ claims, ...first }: Claims): ShownClaim[] =>
  claims ?? (first.task ? [first] : [])

function showClaim(view: View, claim: { task: Task; lease: Lease | null; run: Run | null }) {
  const { task, lease, run } = claim
  return { task: showTask(view, task), lease: lease && showLease(view, lease), run }
}

/** What `replayClaim` needs. The task is read anew, and may be a quarter of a megabyte. */
const keptOf = ({ task, lease, run }: ShownClaim): ShownClaim => ({
  task: { id: task!.id } as ShownTask,
  lease: { name: lease!.name, fence: lease!.fence } as ShownClaim['lease'],
  run,
})

/** A replayed claim carries its present times; one whose lease died is no claim any more. */
function replayClaim(view: View, reply: ShownClaim): ShownClaim {
  if (!reply.lease || !reply.task) return reply
  const lease = stillLive(view, reply.lease.name, reply.lease.fence)
  return showClaim(view, { task: getTask(view, reply.task.id), lease, run: reply.run })
}

const taskAndLock = ({ id }: { id?: string | undefined }): Need[] => {
  if (id === undefined) return []
  return [
    { table: 'task', key: id },
    { table: 'lease', key: lockOf(id) },
  ]
}

export const create = writeOperation({
  name: 'task.create',
  touches: ({ id, ...said }) => [...chosen(id), ...placeOfTask(said)],
  refuses: ['conflict', 'not_found', 'too_large', 'forbidden'],
  doc: 'Add a task.',
  tool: 'create_task',
  input: {
    id: field(s.someId, 'An id of your own (default: the next number).'),
    ...newTask,
    ...marks,
  },
  output: tasksAnswers.task,
  command: 'task add title',
  reads: taskAndLock,
  spends: () => ({ tasks_waiting: 1 }),
  decide: (view, { ra_mode, ra_score, ...said }, caller) => {
    const marked = { ...(ra_mode && { ra_mode }), ...(ra_score !== undefined && { ra_score }) }
    const input = { ...said, metadata: { ...said.metadata, ...marked } }
    return showTask(view, createTask(view, input, caller))
  },
})

export const get = readOperation({
  name: 'task.get',
  refuses: ['not_found'],
  doc: 'All fields of a task.',
  tool: 'get_task',
  input: { id: f.taskId },
  output: tasksAnswers.task,
  command: 'task show id',
  decide: (view, { id }) => showTask(view, getTask(view, id)),
})

export const list = readOperation({
  name: 'task.list',
  refuses: ['invalid'],
  doc: 'Tasks, oldest first; with a status, the most urgent first.',
  tool: 'list_tasks',
  input: {
    status: f.statusOptional,
    ready: field(s.flag, 'Only tasks that can be claimed now, in the order of claiming.'),
    project: f.filterProject,
    label: f.filterLabel,
    ...f.page,
  },
  output: tasksAnswers.tasks,
  command: 'task list',
  decide: (view, input, caller) => {
    const { status, ready, project, label, limit } = input
    if (ready) {
      const first = firstOf(readyFor(view, { project, label }, caller.agent), limit)
      return { items: whileFitting(first, (task) => listTask(view, task)), next: null }
    }
    const show = (task: Task) => {
      if (project !== undefined && task.project !== project) return null
      return label === undefined || task.labels.includes(label) ? listTask(view, task) : null
    }
    return pageIn(view, tasksWith(status), input, show)
  },
})

const tasksWith = (status: Status | undefined) =>
  status === undefined ? (['tasks', ''] as const) : (['tasks_with_status', status] as const)

export const claim = writeOperation({
  name: 'task.claim',
  grants: true,
  touches: ({ id }) => (id === undefined ? [] : [{ task: id, changes: true }]),
  refuses: ['not_found', 'forbidden', 'held', 'illegal_move', 'lease_expired'],
  doc: 'Claim a task: its lock, in_progress and a new run in one step. No id: the next ready task.',
  tool: 'claim_task',
  input: {
    id: field(s.someId, 'The task (default: the next ready one).'),
    max: field(
      () => s.optional(s.whole(1, 100)),
      'Claim up to this many of the next ready tasks at once; `claims` has them all.',
    ),
    ttl_seconds: f.ttlSeconds,
    project: f.filterProject,
    label: f.filterLabel,
    priority: field(() => s.optional(s.level()), 'Only tasks with at least this priority.'),
    wait_seconds: field(
      () => s.or(s.seconds(0, 24 * 3600), 0),
      'If no task is ready, wait up to this long for one, in order of arrival.',
    ),
    queued: field(s.flag, 'Also take enqueued tasks, which are normally left to dispatchers.'),
    takeover: f.takeover,
    process: f.holderProcess,
  },
  output: tasksAnswers.claims,
  waits: 'task',
  command: 'task claim [id]',
  reads: taskAndLock,
  decide: (view, input, caller) => {
    const { id, max, takeover, process, queued, ...filter } = input
    const ask = { ttl_ms: input.ttl_seconds * 1000, takeover, process, queued }
    if (id !== undefined && max !== undefined) throw oneById()
    const got: Claim[] =
      id === undefined
        ? claimAny(view, filter, ask, caller, max ?? 1)
        : [claimTask(view, id, ask, caller)]
    return asClaims(
      got.map((each) => showClaim(view, each)),
      max,
    )
  },
  spends: ({ max = 1 }, reply) => ({ leases: reply ? claimsIn(reply).length : max }),
  // Nothing claimed is nothing done: asked again, it looks again.
  keeps: (reply) => {
    const claims = claimsIn(reply)
    return claims.length === 0 ? undefined : asClaims(claims.map(keptOf), reply.claims?.length)
  },
  // Of several, those that are over by now are left out; when all are, the first says so.
  replay: (view, reply) => {
    const claims = claimsIn(reply)
    const living = claims.filter(
      ({ lease }) => liveLease(view, lease!.name)?.fence === lease!.fence,
    )
    const shown = (living.length > 0 ? living : claims.slice(0, 1)).map((each) =>
      replayClaim(view, each),
    )
    return asClaims(shown, reply.claims?.length)
  },
})

function oneById(): Refusal {
  return new Refusal('invalid', 'max is for the next ready tasks, and an id names one', {
    next: 'Leave out one of them.',
  })
}

export const setStatus = writeOperation({
  name: 'task.status',
  touches: ({ id }) => [{ task: id, changes: true }],
  refuses: ['not_found', 'fence_stale', 'held', 'lease_expired', 'illegal_move', 'forbidden'],
  doc: 'Change the status of a task. in_progress claims it; every other status releases its lock.',
  tool: 'update_task_status',
  input: {
    id: f.taskId,
    status: field(s.status, `One of ${STATUSES.join(', ')}.`),
    fence: f.fence,
    ttl_seconds: f.ttlSeconds,
    process: f.holderProcess,
  },
  output: tasksAnswers.moved,
  command: 'task status id status',
  reads: taskAndLock,
  spends: ({ status }) => (status === 'in_progress' ? { leases: 1 } : {}),
  decide: (
    view,
    { id, status, fence, ttl_seconds, process },
    caller,
  ): AnswerAs<typeof tasksAnswers.moved> => {
    const ask = { id, to: status, fence, ttl_ms: ttl_seconds * 1000, process }
    const moved = moveTask(view, ask, caller)
    const isUnproved = status === 'done' && moved.task.status === 'review'
    const note = isUnproved ? { note: proofNote(view, moved.task) } : {}
    return { ...showClaim(view, moved), ...note }
  },
  keeps: (reply) => ({ ...reply, task: reply.task && withoutBody(reply.task) }),
  replay: (view, reply, { status }) => {
    if (status === 'in_progress') return replayClaim(view, reply)
    // The move granted nothing: its answer stays true when the lock that it left alone is gone.
    const lease = reply.lease && liveLease(view, reply.lease.name)
    const same = lease && lease.fence === reply.lease?.fence ? showLease(view, lease) : null
    return { ...reply, lease: same, task: reply.task && withBody(view, reply.task) }
  },
})

/** A body may be a megabyte, and is in the task already: replies are remembered without it. */
const withoutBody = (task: ShownTask): ShownTask => ({ ...task, body: '' })
const withBody = (view: View, task: ShownTask): ShownTask => {
  return { ...task, body: bodyOf(view, getTask(view, task.id)) }
}

export const edit = writeOperation({
  name: 'task.update',
  touches: ({ id, ...said }) => [{ task: id, changes: true }, ...placeOfTask(said)],
  refuses: ['not_found', 'conflict', ...LEASE_REFUSALS, 'illegal_move', 'forbidden'],
  doc: 'Edit a task. State the version you read, so that you do not overwrite a newer one.',
  tool: 'update_task',
  input: {
    id: f.taskId,
    version: field(s.count, 'The version you read; refused if the task changed since.'),
    fence: f.fence,
    ...editedTask,
  },
  output: tasksAnswers.task,
  command: 'task edit id',
  reads: taskAndLock,
  decide: (view, { id, version, fence, ...given }, caller) => {
    const fields = Object.fromEntries(Object.entries(given).filter(([, v]) => v !== undefined))
    return showTask(view, editTask(view, { id, version, fence, fields }, caller))
  },
  keeps: withoutBody,
  replay: withBody,
})

export const explain = readOperation({
  name: 'task.explain',
  refuses: ['not_found'],
  doc: 'Why a task is not running, in one sentence and as data.',
  tool: 'explain',
  input: { id: f.taskId },
  output: locksAnswers.explanation,
  command: 'task explain id',
  decide: (view, { id }, caller) => explainTask(view, id, caller.agent, foreseen(view, id)),
})

/** For boards: many tasks at once, or just those that something happened to. */
export const peek = readOperation({
  name: 'task.peek',
  internal: true,
  refuses: ['invalid'],
  doc: 'Tasks at a glance, without bodies and metadata: those named, or all, oldest first.',
  input: {
    ids: field(() => s.optional(s.ids()), 'Only these tasks.'),
    status: f.statusOptional,
    project: f.filterProject,
    text: field(
      s.someName,
      'Only tasks with this in their id, title, project, user, agent or a label.',
    ),
    ...f.page,
  },
  output: tasksAnswers.peekedTasks,
  decide: (view, { ids, status, project, text, ...page }) => {
    if (ids) {
      const items = ids.flatMap((id) => view.get('task', id) ?? []).map((t) => peeked(view, t))
      return { items, next: null }
    }
    const isWanted = taskFilter(project, text)
    const show = (task: Task) => (isWanted(task) ? peeked(view, task) : null)
    return pageIn(view, tasksWith(status), page, show, WALK_MAX)
  },
})

/** So many tasks are looked at per page: nobody waits while a million of them are searched. */
const WALK_MAX = 10_000

function taskFilter(project: string | undefined, text: string | undefined) {
  const wanted = text?.toLowerCase()
  return (task: Task): boolean => {
    if (project !== undefined && task.project !== project) return false
    if (wanted === undefined) return true
    const { id, title, user, assignee, labels } = task
    const words = [id, title, task.project, user, assignee, ...labels]
    return words.some((word) => word?.toLowerCase().includes(wanted))
  }
}

const peeked = (view: View, task: Task) => ({ ...briefTask(view, task), unmet: task.unmet })
