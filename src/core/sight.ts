import { admits, type Caller, STRANGER } from './caller.ts'
import { taskOf } from './locks/lease.ts'
import type { Lease, Share, TableName, Tables } from './rows.ts'
import { userOf } from './queue/share.ts'
import { hasProject, hasTask, hasUser, isScoped, type Scoped } from './token_scope.ts'
import { type Cursor, INDEXES, type IndexName, type View } from './view.ts'
import { type EventDraft, factsOf } from './event.ts'

/** What of a row may be seen: all of it, a part of it, or that it does not exist. */
type Look<Row> = (row: Row, view: View, caller: Scoped) => Row | undefined

const always = <Row>(row: Row) => row
const never = () => undefined
const when =
  <Row>(test: (row: Row, view: View, caller: Scoped) => boolean): Look<Row> =>
  (row, view, caller) =>
    test(row, view, caller) ? row : undefined

const taskSeen = (view: View, id: string, { scope }: Scoped) => {
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

/** The scope in the id of a note, or of one of its versions. */
const notesOf = (id: string) => id.slice(0, id.indexOf('\n'))
const byNotes = <Row>(idOf: (row: Row) => string) =>
  when<Row>((row, view, caller) => notesSeen(view, notesOf(idOf(row)), caller))

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

/** A user's account also counts what it has in projects outside of the scope. */
function lookAtShare(share: Share, view: View, caller: Scoped): Share | undefined {
  if (!hasUser(caller.scope, share.user)) return undefined
  const running = share.running.filter((name) => lockSeen(view, name, caller) === true)
  const next = share.next_task
  return { ...share, running, next_task: next && taskSeen(view, next, caller) ? next : null }
}

/** Limits of projects within the scope, and the pool, which is everybody's. */
const limitSeen = ({ key }: Tables['limit'], { scope }: Scoped) => {
  const [, project] = /^(?:project|unserved):(.*)$/s.exec(key) ?? []
  return project === undefined ? key === 'pool' : hasProject(scope, project)
}

/** What a caller with a scope sees of each table. A table without a rule does not compile. */
const SIGHTS: { [T in TableName]: Look<Tables[T]> } = {
  task: when((task, _view, { scope }) => hasTask(scope, task)),
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
  lane: when(({ user, project }, _view, { scope }) => {
    return hasUser(scope, user) && hasProject(scope, project)
  }),
  parking: when(({ user }, _view, { scope }) => hasUser(scope, user)),
  limit: when((limit, _view, caller) => limitSeen(limit, caller)),
  queue: always,
  dispatcher: always,
  landing: when(({ project, task_id }, view, caller) => {
    return hasProject(caller.scope, project) && (!task_id || taskSeen(view, task_id, caller))
  }),
  landing_rule: when(({ project }, _view, { scope }) => hasProject(scope, project)),
  memory: when(({ scope }, view, caller) => notesSeen(view, scope, caller)),
  memory_version: byNotes(({ id }) => id),
  memory_text: byNotes(({ id }) => id),
  memory_conflict: when(({ scope }, view, caller) => notesSeen(view, scope, caller)),
  memory_usage: never,
  memory_settings: never,
  stat: never,
  alert: never,
  background_job: never,
  vector: never,
  embedding: never,
  host_settings: never,
  resource: never,
  worktree: when(({ task_id }, view, caller) => taskSeen(view, task_id, caller)),
  duplicate: when(({ a, b }, view, caller) => {
    return [a, b].every((id) => notesSeen(view, notesOf(id), caller))
  }),
}

/**
 * A view for a caller whose token is bound: what the token may not see is not there. Lists leave
 * out what belongs to nobody and is held by a stranger, unless all contenders are looked for
 * (`contended`): there they are shown without a name. Only for looking: it writes nothing.
 */
export class Sight implements View {
  readonly isPartial = true

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

  private *seen<I extends IndexName>(index: I, rows: Iterable<Tables[TableName]>) {
    const look = SIGHTS[INDEXES[index].table] as Look<Tables[TableName]>
    for (const row of rows) {
      const shown = look(row, this.view, this.caller)
      // A row that was changed on the way is one whose holder is not told.
      if (shown && (shown === row || this.contended || INDEXES[index].table !== 'lease')) {
        yield shown as Tables[(typeof INDEXES)[I]['table']]
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

/** Whether a scoped caller is told of an event: all that it names must be within the scope. */
export function eventSeen(view: View, event: EventDraft, caller: Scoped): boolean {
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
