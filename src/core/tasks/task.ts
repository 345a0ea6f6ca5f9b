import type { Queued } from '../queue/rows.ts'
import type { Dependency, Task, TaskFields } from '../schema/task.ts'
import { admits, type Caller } from '../caller.ts'
import { keepProof, mustProve } from '../landing/rule.ts'
import { checkFence, lockOf, timesOf } from '../locks/lease.ts'
import { planted } from '../planted.ts'
import { quoted } from '../quote.ts'
import { beginningOf, bodyOf, keepBody } from './body.ts'
import { putTask, rankOf } from './ready.ts'
import { missing, Refusal } from '../refusal.ts'
import { keyOf } from '../rows.ts'
import { nextInQueue } from '../queue/share.ts'
import { isFree, liveLease } from '../locks/standing.ts'
import type { View } from '../view.ts'

/** The task, or `not_found`. */
export const getTask = (view: View, id: string): Task =>
  view.get('task', id) ?? missing(`task ${id}`, 'task.list', { task_id: id })

/**
 * Adds a task. Refuses an id that is taken (`conflict`), unknown dependencies (`not_found`), and
 * what only a lander says of it (`forbidden`).
 */
export function createTask(
  view: View,
  ask: TaskFields & { id?: string | undefined; queue?: Queued },
  caller: Caller,
): Task {
  const { id = freeId(view), queue = null, ...fields } = ask
  const taken = view.get('task', id)
  if (taken) {
    throw new Refusal('conflict', `Task ${id} exists already: ${quoted(taken.title)}`, {
      next: {
        says: 'Change it instead',
        operation: 'task.update',
        input: { id, version: taken.version },
      },
      details: { task: showTask(view, taken) },
    })
  }
  const task: Task = {
    id,
    ...fields,
    metadata: keepProof(fields.metadata),
    touches: fields.touches ?? [],
    ...keepBody(view, id, fields.body),
    depends_on: [...new Set(fields.depends_on)],
    labels: [...new Set(fields.labels)],
    status: 'todo',
    version: 1,
    assignee: null,
    assigned_at: null,
    attempts: 0,
    created_by: caller.agent,
    created_at: view.at,
    updated_at: view.at,
    rank: rankOf(queue ? nextInQueue(view, fields.user ?? '') : view.now, fields.priority),
    unmet: 0,
    lock_fence: liveLease(view, lockOf(id))?.fence ?? null,
    run_id: null,
    queue,
  }
  putTask(view, undefined, { ...task, unmet: tieDependencies(view, task) })
  const { title, priority, project, user } = task
  const type = queue ? 'task.enqueued' : 'task.created'
  const data = { title, priority, project, ...(queue && { user }) }
  view.record(type, { agent: caller.agent, task: id }, data)
  return getTask(view, id)
}

function freeId(view: View): string {
  let id = String(view.nextTaskNumber())
  while (view.get('task', id)) id = String(view.nextTaskNumber())
  return id
}

/** Writes who waits for whom, and counts what is not done yet. */
function tieDependencies(view: View, task: Task): number {
  let unmet = 0
  for (const depends_on of task.depends_on) {
    if (getTask(view, depends_on).status !== 'done') unmet += 1
    view.put('dependency', dependency(task.id, depends_on))
  }
  return unmet
}

function dependency(task_id: string, depends_on: string): Dependency {
  return { key: keyOf(task_id, depends_on), task_id, depends_on }
}

export interface EditTask {
  id: string
  version: number
  fence?: number | undefined
  fields: Partial<TaskFields>
}

/**
 * Changes what a task says. The edit states the version it read: if the task moved on, it is
 * refused as `conflict` with the present task. While its lock is held, only the holder edits. What
 * a lander wrote is not edited at all: `forbidden`.
 */
export function editTask(view: View, ask: EditTask, caller: Caller): Task {
  const task = getTask(view, ask.id)
  const held = !isFree(view, lockOf(ask.id))
  if (held || ask.fence !== undefined) checkFence(view, lockOf(ask.id), ask.fence, caller)
  if (task.queue && !held) refuseOthers(task, caller)
  if (task.version !== ask.version && !planted('S9')) throw versionConflict(view, task, ask.version)
  if (task.status === 'done' && !caller.admin) throw readOnly(task)
  if (!caller.admin) refuseEscape(view, task, ask.fields)
  const edited: Task = {
    ...task,
    ...ask.fields,
    ...(ask.fields.body !== undefined && keepBody(view, task.id, ask.fields.body, task)),
    metadata: keepProof(ask.fields.metadata ?? task.metadata, task.metadata),
    touches: ask.fields.touches ?? task.touches,
    depends_on: [...new Set(ask.fields.depends_on ?? task.depends_on)],
    labels: [...new Set(ask.fields.labels ?? task.labels)],
    version: task.version + 1,
    updated_at: view.at,
  }
  edited.rank = task.rank + (task.priority - edited.priority) * rankOf(0, -1)
  if (ask.fields.depends_on) edited.unmet = retie(view, task, edited)
  putTask(view, task, edited)
  const data = { fields: Object.keys(ask.fields), version: edited.version }
  view.record('task.edited', { agent: caller.agent, task: task.id }, data)
  return edited
}

/** What has to be proved in one project would be done by a word in another: `forbidden`. */
function refuseEscape(view: View, task: Task, { project }: Partial<TaskFields>): void {
  if (project === undefined || project === task.project || !mustProve(view, task)) return
  const what = `Task ${task.id} has to be proved as project ${task.project} says`
  throw new Refusal('forbidden', `${what}: an admin may move it to another`, {
    next: 'Leave its project as it is, or ask an admin (--force).',
    details: { task_id: task.id, project: task.project },
  })
}

/** What is enqueued runs as its user: only that user, its creator or an admin says what it does. */
function refuseOthers(task: Task, caller: Caller): void {
  if (caller.admin || admits(task.created_by, caller.agent)) return
  if (task.user !== null && caller.scope?.users?.includes(task.user)) return
  throw new Refusal('forbidden', `Task ${task.id} is enqueued by ${task.created_by}`, {
    next: 'Ask its creator, its user or an admin to change it.',
    details: { task_id: task.id, created_by: task.created_by },
  })
}

function versionConflict(view: View, task: Task, version: number): Refusal {
  return new Refusal('conflict', 'task was modified by another agent (version mismatch)', {
    next: `Read it again, put your change on version ${task.version}, and send that.`,
    details: { version, current_version: task.version, task: showTask(view, task) },
  })
}

/** `illegal_move`: done is final until an admin reopens it. */
export function readOnly(task: Task): Refusal {
  return new Refusal('illegal_move', `Task ${task.id} is done, and done is read-only`, {
    next: {
      says: 'An admin can reopen it',
      operation: 'task.status',
      input: { id: task.id, status: 'todo' },
    },
    details: { task_id: task.id, status: task.status },
  })
}

function retie(view: View, before: Task, after: Task): number {
  for (const old of before.depends_on) view.remove('dependency', keyOf(before.id, old))
  const unmet = tieDependencies(view, after)
  const loop = loopThrough(view, after.id, after.depends_on)
  if (!loop) return unmet
  throw new Refusal('invalid', `Task ${after.id} would wait for itself: ${loop.join(' → ')}`, {
    next: 'Leave out one of these dependencies.',
    details: { loop },
  })
}

/**
 * The loop that a task would close by waiting for `depends_on`. Looks from both ends in turn, so
 * that a long chain costs nothing where the other end is short.
 */
function loopThrough(view: View, start: string, depends_on: string[]): string[] | undefined {
  const down = new Map<string, string | null>(depends_on.map((id) => [id, null]))
  const up = new Map<string, string | null>([[start, null]])
  const below = walk(down, (id) => view.get('task', id)?.depends_on ?? [])
  const above = walk(up, (id) => {
    return [...view.scan('dependents_of', id)].map((row) => row.task_id)
  })
  for (;;) {
    const [low, high] = [below.next().value, above.next().value]
    if (low === undefined || high === undefined) return undefined
    if (low === start) return [start, ...way(down, start).toReversed()]
    if (depends_on.includes(high)) return [start, ...way(up, high)]
  }
}

/** All that can be reached from those in `from`, which keeps where each was come upon. */
function* walk(from: Map<string, string | null>, next: (id: string) => string[]) {
  for (const id of from.keys()) {
    yield id
    for (const reached of next(id)) if (!from.has(reached)) from.set(reached, id)
  }
}

/** From `last` back to where the walk began. */
function way(from: ReadonlyMap<string, string | null>, last: string): string[] {
  const ids: string[] = []
  for (let id: string | null | undefined = last; id; id = from.get(id)) ids.push(id)
  return ids
}

/** A task as doors show it, with the end of its lock where one is held. */
export const showTask = (view: View, task: Task) => ({
  ...briefTask(view, task),
  ...{ body: bodyOf(view, task), metadata: task.metadata },
})

/** A task in a list: of a long body, the beginning. */
export const listTask = (view: View, task: Task) => ({
  ...briefTask(view, task),
  ...{ ...beginningOf(task), metadata: task.metadata },
})

/** A task without its body and metadata. */
export function briefTask(view: View, task: Task) {
  const { rank: _rank, unmet: _unmet, lock_fence: _fence, run_id: _run, ...rest } = task
  const { body: _body, body_apart: _apart, metadata: _metadata, queue, ...shown } = rest
  const lease = liveLease(view, lockOf(task.id))
  const lock_until = lease ? timesOf(view, lease).expires_at : null
  return { ...shown, queue: queue ? showQueued(queue) : null, lock_until }
}

/** How an enqueued task is to be run; `failed` and `lost` count the runs that ended that way. */
function showQueued({ time_limit_ms, ...queue }: Queued) {
  const { agent_command, retries, failed, lost } = queue
  const time_limit_seconds = time_limit_ms === null ? null : time_limit_ms / 1000
  return { agent_command, time_limit_seconds, retries, failed, lost }
}
