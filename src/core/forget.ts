import type { Vector } from './schema/search.ts'
import type { Task } from './schema/task.ts'
import type { MemoryConflict } from './schema/memory.ts'
import { type IndexName, KEYS, type TableName, type TableOf, type Tables } from './schema/schema.ts'
import { type Cursor, cursorOf, INDEXES, isBefore } from './schema/indexes.ts'
import type { View } from './view.ts'
import { lockOf } from './locks/lease.ts'
import { REQUEST_MEMORY_MS } from './bounds.ts'
import { notesBehind } from './memory/background.ts'
import { forgetNote } from './memory/prune.ts'
import { type Bound, DAY_MS, type Retention } from './retention.ts'
import { rankOf } from './tasks/ready.ts'
import { firstOf, isNone } from './first.ts'
import { keyOf } from './rows.ts'

/** Rows that one step looks at, or takes away: a few milliseconds in which others wait. */
export const STEP_ROWS = 200

/** The same for what a write forgets on its way, where no daemon may ever come by. */
const PASSING_ROWS = 25

type AnyRow = Tables[TableName]
type RowOf<I extends IndexName> = Tables[TableOf<I>]

interface Kind {
  index: IndexName
  groups: readonly string[]
  /** In the order of the index: once a row is not old, none behind it is. */
  isOld(view: View, row: AnyRow, age_ms: number): boolean
  /** Whether nothing needs the row. `age_ms` is null where it goes because there are too many. */
  mayGo(view: View, row: AnyRow, age_ms: number | null): boolean
  /** Takes it away with what belongs to it. Returns how many rows that were. */
  forget(view: View, row: AnyRow): number
}

function kind<I extends IndexName>(of: {
  index: I
  groups?: readonly string[]
  isOld: (view: View, row: RowOf<I>, age_ms: number) => boolean
  mayGo?: (view: View, row: RowOf<I>, age_ms: number | null) => boolean
  forget?: (view: View, row: RowOf<I>) => number
}): Kind {
  const { table } = INDEXES[of.index]
  const removeRow = (view: View, row: AnyRow) => {
    view.remove(table, row[KEYS[table] as keyof AnyRow])
    return 1
  }
  return { groups: [''], mayGo: () => true, forget: removeRow, ...of }
}

/**
 * Wall-clock times are compared with the earlier of the two clocks: a wall clock that was set ahead
 * must not make everything look old.
 */
const isPast = (view: View, at: string | null, age_ms: number) =>
  at !== null && Date.parse(at) <= Math.min(view.wall, view.now) - age_ms

/** What leaves, found by when it was over; each step is bounded, whatever there is. */
const KINDS = {
  requests: kind({
    index: 'requests_by_age',
    isOld: (view, row, age_ms) => row.at_ms <= view.now - age_ms,
  }),
  /**
   * A lock's fences are refused whether or not the row of its last lease is there (`checkFence`),
   * and the next one comes from the store's counter, which no row holds.
   */
  leases: kind({
    index: 'leases_ended',
    isOld: (view, row, age_ms) => row.expires_ms <= view.now - age_ms,
  }),
  runs: kind({
    index: 'runs_ended',
    isOld: (view, row, age_ms) => isPast(view, row.ended_at, age_ms),
    mayGo: (view, row) => view.get('task', row.task_id)?.run_id !== row.id,
  }),
  landings: kind({
    index: 'landings_ended',
    isOld: (view, row, age_ms) => isPast(view, row.ended_at, age_ms),
  }),
  agents: kind({
    index: 'agents_by_seen',
    isOld: (view, row, age_ms) => row.last_seen_ms <= view.now - age_ms,
    mayGo: (view, row) => isNone(view.scan('leases_held_by', row.id)),
  }),
  tokens: kind({
    index: 'tokens_by_end',
    isOld: (view, row, age_ms) => (row.expires_ms ?? 0) <= view.now - age_ms,
    mayGo: (view, row) => row.revoked_at !== null || (row.expires_ms ?? 0) <= view.now,
  }),
  tasks: kind({
    index: 'tasks_with_status',
    groups: ['done', 'failed', 'cancelled'],
    // By when it was made: what is younger than that cannot be over for longer.
    isOld: (view, row, age_ms) => row.rank <= rankOf(view.now - age_ms, 0),
    mayGo: mayForgetTask,
    forget: forgetTask,
  }),
  notes: kind({
    index: 'memories_deleted',
    isOld: (view, row, age_ms) => row.updated_ms <= view.now - age_ms,
    // Two agents have yet to agree on one that has siblings.
    mayGo: (_view, row) => row.heads.length === 1,
    forget: forgetNote,
  }),
  conflicts: kind({
    index: 'conflicts',
    groups: ['merged', 'resolved', 'replaced'] satisfies MemoryConflict['status'][],
    isOld: (view, row, age_ms) => row.opened_ms <= view.now - age_ms,
    mayGo: (view, row, age_ms) => age_ms === null || isPast(view, row.closed_at, age_ms),
  }),
  /** Of texts that no version says any more, and of a provider that no longer counts. */
  vectors: kind({ index: 'vectors', isOld: () => true, mayGo: mayForgetVector }),
}

export type Forgettable = keyof typeof KINDS
export const FORGETTABLE = Object.keys(KINDS) as Forgettable[]

function mayForgetTask(view: View, task: Task, age_ms: number | null): boolean {
  const isOver = age_ms === null || isPast(view, task.updated_at, age_ms)
  const isTied = task.lock_fence !== null || task.run_id !== null
  // Those that wait for it, or waited, name it, and so do its worktrees: they go first.
  const isNamed = (['dependents_of', 'worktrees_of'] as const).some(
    (index) => !isNone(view.scan(index, task.id)),
  )
  return isOver && !isTied && !isNamed
}

/** One with very many runs loses these first, and goes in a later pass. */
function forgetTask(view: View, { id, status, depends_on, body_apart }: Task): number {
  const runs = [...firstOf(view.scan('runs_of', id), STEP_ROWS)]
  for (const run of runs) view.remove('run', run.id)
  if (runs.length === STEP_ROWS) return STEP_ROWS
  for (const other of depends_on) view.remove('dependency', keyOf(id, other))
  view.remove('lease', lockOf(id))
  view.remove('task', id)
  if (body_apart > 0) view.remove('task_text', id)
  view.record('task.forgotten', { agent: 'leasehold', task: id }, { status })
  return runs.length + depends_on.length + 2
}

function mayForgetVector(view: View, { provider, hash }: Vector): boolean {
  const now = view.get('embedding', 'embedding')
  const isOther = now !== undefined && now.provider !== provider && isNone(notesBehind(view, now))
  return isOther || isNone(view.scan('versions_saying', hash))
}

/** Where the rows of a kind are found. */
export function placesOf(name: Forgettable): { index: IndexName; group: string }[] {
  return KINDS[name].groups.map((group) => ({ index: KINDS[name].index, group }))
}

/** How long rows of a kind stay, and how many. */
export function boundFor(name: Forgettable, retention: Retention): Bound {
  if (name === 'requests') return { days: REQUEST_MEMORY_MS / DAY_MS, max: null }
  return name === 'vectors' ? { days: 0, max: null } : retention[name]
}

export interface Forgetting {
  name: Forgettable
  group: string
  days: number | null
  /** All up to here go whatever their age: there are too many. */
  cut?: Cursor | undefined
  after?: Cursor | undefined
}

interface Step {
  gone: number
  /** The last row that was looked at, where there may be more to go behind it. */
  next: Cursor | undefined
}

/** Takes away some of what is to go, in the order of its index, behind `after`. */
export function forgetSome(view: View, ask: Forgetting, rows_max = STEP_ROWS): Step {
  const it: Kind = KINDS[ask.name]
  const age_ms = ask.days === null ? null : ask.days * DAY_MS
  const going: { row: AnyRow; at: Cursor; age_ms: number | null }[] = []
  // Taken first, because rows are removed while the list is walked.
  for (const row of view.scan(it.index, ask.group, ask.after)) {
    const at = cursorOf(it.index, row)
    const isCut = ask.cut !== undefined && !isBefore(ask.cut, at)
    if (!isCut && (age_ms === null || !it.isOld(view, row, age_ms))) break
    if (going.push({ row, at, age_ms: isCut ? null : age_ms }) === rows_max) break
  }
  let [gone, removed] = [0, 0]
  for (const { row, at, age_ms: age } of going) {
    if (!it.mayGo(view, row, age)) continue
    removed += it.forget(view, row)
    gone += 1
    if (removed >= rows_max) return { gone, next: at }
  }
  return { gone, next: going.length < rows_max ? undefined : going.at(-1)?.at }
}

const IN_PASSING = ['leases', 'runs', 'agents', 'tokens'] as const

/**
 * A little of what is old, with a write: where no daemon runs, a store stays bounded too. Requests
 * leave faster than the `asks` of this write can add to them; the rest only now and then, where
 * `retention` is said.
 */
export function forgetInPassing(view: View, asks: number, retention?: Retention): void {
  forgetRequests(view, retention ? STEP_ROWS : 2 * asks)
  for (const name of retention ? IN_PASSING : []) {
    const { days } = retention![name]
    if (days !== null) forgetSome(view, { name, group: '', days }, PASSING_ROWS)
  }
}

/** Forgets what request ids did more than a day ago. */
function forgetRequests(view: View, rows_max: number): void {
  const until = view.now - REQUEST_MEMORY_MS
  for (const { key } of [...firstOf(view.due('requests_by_age', '', until), rows_max)]) {
    view.remove('request', key)
  }
}
