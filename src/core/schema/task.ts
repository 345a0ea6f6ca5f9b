import type { RunStatus, Status } from '../rows.ts'
import type { Queued } from '../queue/rows.ts'
import { text, int, bool, json, instant, isNull, notNull, type RowOf, table } from './table.ts'

/** Tasks, what they wait for, and runs: one per attempt. */

export const task = table({
  key: 'id',
  columns: {
    id: text(),
    title: text(),
    body: text(),
    project: text().orNull,
    user: text().orNull,
    priority: int(),
    group: text().orNull,
    labels: json<string[]>(),
    depends_on: json<string[]>(),
    assigned_to: text().orNull,
    metadata: json<Record<string, unknown>>(),
    /** Globs of what it will change, as far as that is known: see `overlapsOf`. */
    touches: json<string[]>(),
    /** How many characters of the body are in `task_text`, behind those here: see `bodyOf`. */
    body_apart: int(),
    status: text<Status>().hot,
    version: int().hot,
    assignee: text().orNull.hot,
    assigned_at: text().orNull.hot,
    attempts: int().hot,
    created_by: text(),
    created_at: text(),
    updated_at: text().hot,
    /** Place among ready tasks: creation time minus priority × aging, so waiting counts too. */
    rank: instant(),
    /** How many of `depends_on` are not done. */
    unmet: int(),
    /** Fence of the live lease on this task's lock, manual or by claim. */
    lock_fence: int().orNull.hot,
    /** The open run, if the lease came from a claim. */
    run_id: text().orNull.hot,
    /** Set for a task that was enqueued: dispatchers start it. */
    queue: json<Queued>().orNull,
  },
  derived: {
    /** Whose queue it waits in. */
    queue_user: { text: (row) => (row.queue && row.status === 'todo' ? (row.user ?? '') : null) },
  },
  indexes: {
    tasks: { order: 'created_at' },
    tasks_with_status: { group: ['status'], order: 'rank' },
    queue_of: { group: ['queue_user'], order: 'rank' },
  },
  isWide: true,
})
export type Task = RowOf<typeof task>

/** What a person or agent says about a task; all else about it is ours to keep. */
export type TaskFields = Pick<Task, Said> & {
  [Name in SaidPerhaps]?: Task[Name] | undefined
}
type Said =
  | 'title'
  | 'body'
  | 'project'
  | 'user'
  | 'priority'
  | 'group'
  | 'labels'
  | 'depends_on'
  | 'assigned_to'
  | 'metadata'
/** What an older program did not ask for. */
type SaidPerhaps = 'touches'

export const task_text = table({
  key: 'id',
  columns: {
    id: text(),
    rest: text().apart,
  },
  isWide: true,
})

/** `task_id` waits for `depends_on`; found from the latter when it is done. */
export const dependency = table({
  key: 'key',
  columns: {
    key: text(),
    task_id: text(),
    depends_on: text(),
  },
  indexes: { dependents_of: { group: ['depends_on'], order: 'task_id' } },
})
export type Dependency = RowOf<typeof dependency>

/** A ready task, once per scope it can be asked for in: all, a project, a label, an agent. */
export const ready = table({
  key: 'key',
  columns: {
    key: text(),
    scope: text(),
    rank: instant(),
    task_id: text(),
    high: bool(),
  },
  indexes: {
    /** A key begins with the scope and the rank: the table itself is in this order. */
    ready_in: { group: ['scope'], order: 'key', prefix: '\n' },
    /** The same rows, by lane: few are looked at, where `ready_in` is read for a whole batch. */
    ready_in_lane: { group: ['scope'], order: 'key', prefix: '\n' },
  },
  isMadeAgain: true,
})
export type Ready = RowOf<typeof ready>

export const run = table({
  key: 'id',
  columns: {
    id: text(),
    task_id: text(),
    agent: text(),
    fence: int(),
    host: text().orNull,
    pid: int().orNull,
    status: text<RunStatus>().hot,
    started_at: text(),
    ended_at: text().orNull.hot,
    outcome: text().orNull.hot,
    /** The dispatcher whose slot it takes; null for a claim by an agent itself. */
    dispatcher: text().orNull,
    /** When the command was let go, at most once; null before. */
    begun_at: text().orNull,
    exit_code: int().orNull,
    signal: text().orNull,
  },
  indexes: {
    /** Those that a dispatcher started, the newest first. */
    runs_newest: { rows: [notNull('dispatcher')], order: 'fence', descends: true },
    runs_dispatched_by: { rows: [isNull('ended_at')], group: ['dispatcher'], order: 'id' },
    runs_of: { group: ['task_id'], order: 'started_at', prefix: '.' },
    runs_ended: { rows: [notNull('ended_at')], order: 'ended_at' },
  },
})
export type Run = RowOf<typeof run>
