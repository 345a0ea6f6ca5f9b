import { type Cursor, cursorOf, INDEXES } from './schema/indexes.ts'
import type { Task } from './schema/task.ts'
import type { IndexName, TableName, TableOf, Tables } from './schema/schema.ts'
import type { Share } from './schema/queue.ts'
import type { Lease } from './schema/lock.ts'
import { admits, type Caller, STRANGER } from './caller.ts'
import { taskOf } from './locks/lease.ts'
import type { TokenScope } from './rows.ts'
import { userOf } from './queue/share.ts'
import {
  fitsProject,
  hasProject,
  hasTask,
  hasUser,
  hasWork,
  isScoped,
  type Scoped,
} from './token_scope.ts'
import type { View } from './view.ts'
import { type EventDraft, factsOf } from './event.ts'

/** What of a row may be seen: all of it, a part of it, or that it does not exist. */
type Look<Row> = (row: Row, view: View, caller: Scoped) => Row | undefined

const always = <Row>(row: Row) => row
const never = () => undefined
const when =
  <Row>(test: (row: Row, view: View, caller: Scoped) => boolean): Look<Row> =>
  (row, view, caller) =>
    test(row, view, caller) ? row : undefined

export const taskSeen = (view: View, id: string, { scope }: Scoped) => {
  const task = view.get('task', id)
  return task !== undefined && hasTask(scope, task)
}

/**
 * Whose a lock is by its name: a task's, a user's, a project's. Any other name belongs to nobody:
 * all may contend for it (`shared`).
 */
export function lockSeen(view: View, name: string, caller: Scoped): boolean | 'shared' {
  const task = taskOf(name)
  if (task !== undefined) return taskSeen(view, task, caller)
  const user = userOf(name)
  if (user !== undefined) return hasUser(caller.scope, user)
  const [, project] = /^(?:git|project):([^:]+)/.exec(name) ?? []
  return project === undefined ? 'shared' : hasProject(caller.scope, project)
}

/** Notes for everybody, and those of the projects, users and tasks that a token is bound to. */
export function notesSeen(view: View, notes: string, caller: Scoped): boolean {
  const [, kind, name = ''] = /^(project|user|task):(.*)$/s.exec(notes) ?? []
  if (kind === 'project') return hasProject(caller.scope, name)
  if (kind === 'user') return hasUser(caller.scope, name)
  return kind === 'task' ? taskSeen(view, name, caller) : notes === 'global'
}

/** So many scopes are searched through where all of a kind are open. */
const SCOPES_MAX = 200

/** The scopes that a search without one goes through: those of tasks have to be named. */
export function scopesSeen(view: View, { scope }: Scoped): string[] {
  const named = (kind: string, bound: TokenScope['users']) =>
    bound === 'all' ? scopesOf(view, kind) : (bound ?? []).map((name) => `${kind}:${name}`)
  const { users, projects, task } = scope
  const own = task === null ? [] : [`task:${task}`]
  return ['global', ...named('user', users), ...named('project', projects), ...own]
}

/** From one scope to the next: what is in them is not read. */
function scopesOf(view: View, kind: string): string[] {
  const scopes: string[] = []
  for (let order = `${kind}:`; scopes.length < SCOPES_MAX;) {
    const [note] = view.scan('memories', '', { order, key: '' })
    if (!note?.scope.startsWith(`${kind}:`)) break
    scopes.push(note.scope)
    order = `${note.scope}\n\u{10ffff}`
  }
  return scopes
}

/** The scope in the id of a note, or of one of its versions. */
const notesOf = (id: string) => id.slice(0, id.indexOf('\n'))

function lookAtLease(lease: Lease, view: View, caller: Scoped): Lease | undefined {
  if (admits(caller.agent, lease.holder) || admits(lease.holder, caller.agent)) return lease
  const { path } = lease
  const seen = path?.project
    ? hasProject(caller.scope, path.project)
    : lockSeen(view, lease.name, caller)
  if (seen !== 'shared') return seen ? lease : undefined
  const unnamed = { holder: STRANGER, process: null, group: null, seat: null, reason: null }
  return { ...lease, ...unnamed, path: path && { ...path, reason: null } }
}

/** What it waits for may be of others: their ids are not told. */
function lookAtTask(task: Task, view: View, caller: Scoped): Task | undefined {
  if (!hasTask(caller.scope, task)) return undefined
  const depends_on = task.depends_on.filter((id) => taskSeen(view, id, caller))
  return depends_on.length === task.depends_on.length ? task : { ...task, depends_on }
}

/** Its account also counts what the user has elsewhere: of numbers nothing is told. */
function lookAtShare(share: Share, view: View, caller: Scoped): Share | undefined {
  const { users } = caller.scope
  if (Array.isArray(users) && !users.includes(share.user)) return undefined
  const running = share.running.filter((name) => lockSeen(view, name, caller) === true)
  const next = share.next_task
  const next_task = next && taskSeen(view, next, caller) ? next : null
  return { ...share, running, next_task, pending: 0, pending_high: 0 }
}

/**
 * Limits of projects within the scope, and the pool, which is everybody's: whether they are full,
 * and not how much others use of them.
 */
function lookAtLimit(limit: Tables['limit'], _view: View, { scope }: Scoped) {
  const { key, max } = limit
  const [, project] = /^(?:project|unserved):(.*)$/s.exec(key) ?? []
  const isSeen = project === undefined ? key === 'pool' : fitsProject(scope, project)
  if (!isSeen) return undefined
  return { ...limit, used: max !== null && limit.used >= max ? max : 0, parked: 0 }
}

/** What a caller with a scope sees of each table. A table without a rule does not compile. */
const SIGHTS: { [T in TableName]: Look<Tables[T]> } = {
  task: lookAtTask,
  task_text: when(({ id }, view, caller) => taskSeen(view, id, caller)),
  dependency: when(({ task_id }, view, caller) => taskSeen(view, task_id, caller)),
  ready: when(({ task_id }, view, caller) => taskSeen(view, task_id, caller)),
  run: when(({ task_id }, view, caller) => taskSeen(view, task_id, caller)),
  lease: lookAtLease,
  ticket: when(({ agent, names }, view, caller) => {
    return admits(caller.agent, agent) || names.every((n) => lockSeen(view, n, caller) === true)
  }),
  place: always,
  agent: when(({ id }, _view, { agent }) => admits(agent, id) || admits(id, agent)),
  request: never,
  token: never,
  share: lookAtShare,
  lane: when((lane, _view, { scope }) => hasWork(scope, lane)),
  parking: when(({ user }, _view, { scope }) => hasWork(scope, { user, project: null })),
  limit: lookAtLimit,
  queue: always,
  dispatcher: (row, _view, { scope }) => {
    return { ...row, projects: row.projects.filter((project) => fitsProject(scope, project)) }
  },
  landing: when(({ task_id, project, asked_by }, view, caller) => {
    if (task_id !== null) return taskSeen(view, task_id, caller)
    return hasProject(caller.scope, project) && admits(caller.agent, asked_by)
  }),
  landing_rule: when(({ project }, _view, { scope }) => fitsProject(scope, project)),
  memory: when(({ scope }, view, caller) => notesSeen(view, scope, caller)),
  memory_version: (row, view, caller) => {
    if (!notesSeen(view, notesOf(row.id), caller)) return undefined
    const isKnown = row.task_id === null || taskSeen(view, row.task_id, caller)
    return isKnown ? row : { ...row, task_id: null, fence: null }
  },
  memory_text: when(({ id }, view, caller) => notesSeen(view, notesOf(id), caller)),
  memory_conflict: when(({ scope }, view, caller) => notesSeen(view, scope, caller)),
  stat: never,
  alert: never,
  note_attempt: never,
  vector: never,
  embedding: never,
  host_settings: never,
  resource: never,
  worktree: when(({ task_id }, view, caller) => taskSeen(view, task_id, caller)),
  duplicate: when(({ a, b }, view, caller) => {
    return [a, b].every((id) => notesSeen(view, notesOf(id), caller))
  }),
}

/** While so many rows are looked at, nobody else is answered. */
const STEP_ROWS = 1_000

/**
 * A view for a caller whose token is bound: what the token may not see is not there. Lists leave
 * out what belongs to nobody and is held by a stranger, unless all contenders are looked for
 * (`contended`): there they are shown without a name. Only for looking: it writes nothing.
 */
export class Sight implements View {
  readonly isPartial = true

  /** Where a list was left because so much of others lay in its way: nobody is told of that. */
  left: Cursor | undefined
  /** The last row that was shown before that. */
  shown: Cursor | undefined

  constructor(
    private readonly view: View,
    private readonly caller: Scoped,
    private readonly contended = false,
  ) {}

  get now() {
    return this.view.now
  }
  get wall() {
    return this.view.wall
  }
  get at() {
    return this.view.at
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const row = this.view.get(table, key)
    return row && SIGHTS[table](row, this.view, this.caller)
  }

  *scan<I extends IndexName>(index: I, group: string, after?: Cursor) {
    yield* this.seen(index, this.view.scan(index, group, after))
  }

  *due<I extends IndexName>(index: I, group: string, until: number) {
    yield* this.seen(index, this.view.due(index, group, until))
  }

  /** As `scan`, but it ends behind so many rows: a long walk is made in steps. */
  *walk<I extends IndexName>(index: I, group: string, after?: Cursor) {
    yield* this.seen(index, this.view.scan(index, group, after), STEP_ROWS)
  }

  private *seen<I extends IndexName>(
    index: I,
    rows: Iterable<Tables[TableName]>,
    steps = Infinity,
  ) {
    const look = SIGHTS[INDEXES[index].table] as Look<Tables[TableName]>
    let last: Tables[TableName] | undefined
    for (const row of rows) {
      if (last && (steps -= 1) <= 0) return void (this.left = cursorOf(index, last))
      last = row
      const shown = look(row, this.view, this.caller)
      // A row that was changed on the way is one whose holder is not told.
      if (shown && (shown === row || this.contended || INDEXES[index].table !== 'lease')) {
        this.shown = cursorOf(index, row)
        yield shown as Tables[TableOf<I>]
      }
    }
  }

  put(): void {}
  remove(): void {}
  record(): void {}
  forgetEvents(): void {}
  nextFence(): number {
    throw new Error('a look draws no fence')
  }
  nextTaskNumber(): number {
    throw new Error('a look draws no task number')
  }
  process: View['process'] = (ref) => this.view.process(ref)
  group: View['group'] = (ref) => this.view.group(ref)
  leader: View['leader'] = (ref) => this.view.leader(ref)
}

/** What `caller` may see: all, unless its token is bound. */
export const sightOf = (view: View, caller: Caller, contended = false): View =>
  isScoped(caller) ? new Sight(view, caller, contended) : view

/**
 * An event as a scoped caller is told of it, if it is: all that it names must be within the scope.
 * Of what the caller did itself to a lock that is everybody's, strangers are not named.
 */
export function eventTold<E extends EventDraft>(
  view: View,
  event: E,
  caller: Scoped,
): E | undefined {
  if (!eventSeen(view, event, caller)) return undefined
  const { holder, by, cycle } = factsOf(event)
  const isShared = event.lock !== null && lockSeen(view, event.lock, caller) === 'shared'
  if (!isShared || (holder ?? by ?? cycle) === undefined) return event
  const known = new Sight(view, caller).get('lease', event.lock!)?.holder
  const isNamed = (agent: string) => agent === known || admits(caller.agent, agent)
  const told = (agent: string) => (isNamed(agent) ? agent : STRANGER)
  const named = {
    ...(typeof holder === 'string' && { holder: told(holder) }),
    ...(by !== undefined && { by: told(by) }),
    ...(cycle !== undefined && { cycle: cycle.map(told) }),
  }
  return { ...event, data: { ...event.data, ...named } }
}

function eventSeen(view: View, event: EventDraft, caller: Scoped): boolean {
  const { agent, lock, task } = event
  const { scope: notes, names = lock === null ? [] : [lock] } = factsOf(event)
  if (task !== null && !taskSeen(view, task, caller)) return false
  if (notes !== undefined) return notesSeen(view, notes, caller)
  const isOwn = admits(caller.agent, agent)
  if (
    !names.every(
      (name) => lockSeen(view, name, caller) === true || (isOwn && lockSeen(view, name, caller)),
    )
  ) {
    return false
  }
  return isOwn || task !== null || names.length > 0
}
