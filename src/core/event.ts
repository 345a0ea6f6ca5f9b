import type { Retained } from './retention.ts'
import type { RunStatus, Status } from './rows.ts'

/** How long a lease was held, and for which user and project. Who says so ends a hold. */
export interface Held {
  held_ms: number
  user?: string
  project?: string
}

/** A lease has ended, in one of several ways. */
interface LeaseEnded extends Held {
  fence: number
  holder: string
  reason?: string
  /** Of a reservation. */
  path?: string
  checkout?: string | null
}

interface TaskMade {
  title: string
  priority: number
  project: string | null
  /** Of an enqueued task. */
  user?: string | null
}

interface Paused {
  project: string | null
  user: string | null
}

interface VersionMade {
  scope: string
  key: string
  version: number
  parents: number[]
  size: number
}

interface Disagreement {
  scope: string
  key: string
  conflict: string
  ours: number
  theirs: number
}

/** Two versions became one. */
interface Settled extends Disagreement {
  version: number
  strategy: string
}

interface WorktreeChanged {
  worktree: string
  run: string
  path: string
  branch: string
  /** The commit that holds what was not committed. */
  salvage: string | null
}

/** What each type of event says, beside when, by whom, and of which lock or task. */
export interface EventData {
  /** An agent was seen for the first time. */
  'agent.appeared': { kind: string }
  /** The last lease of an agent expired. */
  'agent.lost': { lock: string; fence: number }
  /** A condition that people should know of began; see `alert.list`. */
  'alert.raised': { id: string; rule: string; subject: string; message: string }
  /** The condition of an alert is over. */
  'alert.cleared': { id: string; rule: string; subject: string }
  /** A background job of memory failed too often and was put aside. */
  'background_job.dead': { kind: string; subject: string; error: string }
  /** A wait was refused, because it would have closed this cycle. */
  'deadlock.found': { by: string; cycle: string[] }
  /** A dispatcher began to serve these projects, or changed its settings. */
  'dispatcher.registered': {
    dispatcher: string
    host: string
    slots_max: number
    projects: string[]
  }
  /** Two notes were found to be alike. */
  'duplicate.found': { id: string; similarity: number; label: string | null }
  /** Somebody settled a pair of notes that are alike. */
  'duplicate.resolved': { id: string; action: string }
  /** An edit was let past a hook: by a person, or (not by_person) with the token of an agent. */
  'hook.bypassed': { paths: string[]; reason: string; by_person: boolean; refusal?: string }
  /** A reserved file was changed, and not by a tool call of its holder; `agent` noticed it. */
  'hook.noticed': { path: string; checkout: string | null; holder: string; fence: number }
  /** A copy was put in the place of a file, reserved by `holder` if by anybody. */
  'hook.restored': { path: string; checkout: string | null; holder: string | null }
  /** Codex was started in this folder, where nobody has trusted our hooks: it runs none. */
  'hook.untrusted': { folder: string }
  /** There it runs them now. */
  'hook.trusted': { folder: string }
  /** A branch is to be landed, or (target null) checked. */
  'landing.asked': { landing: string; target: string | null; branch: string | null }
  /** It passed its check and is part of its target; or (target null) it passed its check. */
  'landing.landed': { landing: string; target: string | null; commit: string; fence: number }
  /** It came back: nothing has changed in git. */
  'landing.returned': { landing: string; reason: string; paths: string[] }
  /** It is not to be landed any more. */
  'landing.cancelled': { landing: string; reason: string }
  /** An agent took a lock, or reserved a path. */
  'lease.granted': {
    fence: number
    ttl_seconds: number
    /** After a wait; of several locks, the one that was held last says how long. */
    ticket?: string
    waited_ms?: number
    /** Of a reservation. */
    path?: string
    checkout?: string | null
    shared?: boolean
    project?: string
  }
  /** It got a full TTL: its holder may have been kept from renewing by a boot, or by the daemon. */
  'lease.extended': { fence: number; ttl_seconds: number; after: 'boot' | 'absence' }
  /** A holder passed its lease to another agent, under a new fence. */
  'lease.handed_off': Held & { fence: number; from: string; from_fence: number; to: string }
  /** The holder gave its lock back. */
  'lease.released': LeaseEnded
  /** An admin freed the lock, or a restore did. */
  'lease.force_released': LeaseEnded
  /** The task was cancelled while it was held. */
  'lease.cancelled': LeaseEnded
  /** The run took longer than it may, and was ended. */
  'lease.overdue': LeaseEnded
  /** The TTL ran out without a renewal. */
  'lease.expired': LeaseEnded
  /** The process that held the lease died, or its run was lost. */
  'lease.died': LeaseEnded
  /** The lease is to end, as soon as its command has been stopped. */
  'lease.revoked': { fence: number; holder: string; reason: string }
  /** Two versions of a note disagree. */
  'memory.conflicted': Disagreement
  /** A note was deleted: the deletion is a version too. */
  'memory.deleted': VersionMade
  /** Texts of notes got their vectors, and can be found by meaning. */
  'memory.embedded': { provider: string; ids: string[] }
  /** Another provider makes the vectors from now on. */
  'memory.provider_changed': { provider: string; dimensions: number }
  /** Notes, or texts of old versions, were taken away for good. */
  'memory.pruned': {
    versions: number
    bytes: number
    items: { scope: string; key: string; version: number | null; why: string }[]
  }
  /** An agent wrote a version of a note. */
  'memory.put': VersionMade
  /** Two versions were merged automatically, as the scope says. */
  'memory.merged': Settled
  /** Somebody settled a conflict. */
  'memory.resolved': Settled
  /** Background jobs that were put aside are tried again. */
  'memory.retried': { tried: number }
  /** A limit or a weight was set. */
  'queue.limited': {
    project?: string | undefined
    group?: string | undefined
    user?: string | undefined
    max?: number | null | undefined
    weight?: number | undefined
  }
  /** A project, a user or (both null) the whole queue starts nothing more. */
  'queue.paused': Paused
  /** What was paused may start again. */
  'queue.resumed': Paused
  /** The command of a run was let go. */
  'run.started': { run: string; fence: number; pid: number; host: string; launch_ms: number }
  /** A run is over, and nothing of it is left. */
  'run.ended': Partial<Held> & {
    run: string
    fence: number
    status: RunStatus
    exit_code: number | null
    signal: string | null
    reason: string | null
  }
  /** What is over was forgotten: how many rows of each kind. */
  'store.pruned': Partial<Record<Retained | 'requests' | 'vectors', number>>
  /** A backup was put in place; all fences rise with the epoch. */
  'store.restored': { epoch: number }
  /** An agent took a task: its lock, `in_progress` and a run. */
  'task.claimed': {
    fence: number
    run: string
    /** Unless the lock was held already. */
    ttl_seconds?: number
    /** Of a run of an enqueued task. */
    user?: string
    project?: string
    /** Of the first run of an enqueued task. */
    queued_ms?: number
  }
  /** A task was added. */
  'task.created': TaskMade
  /** These fields of a task were changed. */
  'task.edited': { fields: string[]; version: number }
  /** A task was added to the queue of its user. */
  'task.enqueued': TaskMade
  /** A finished task left the store, as retention says. */
  'task.forgotten': { status: Status }
  /** The status of a task changed. */
  'task.moved': Partial<Held> & {
    from: Status
    to: Status
    version: number
    /** If the task was held. */
    fence?: number
    released?: boolean
  }
  /** A task whose runs were lost too often was set to `failed`. */
  'task.quarantined': { lost: number; run: string | null }
  /** A waiter was chosen to leave its lines, to break a deadlock. */
  'ticket.broken': { ticket: string; cycle: string[]; waited_ms: number }
  /** It is this waiter's turn: it has 2 s to take the lock. */
  'ticket.called': { ticket: string }
  /** An agent joined the lines of these locks. */
  'ticket.joined': {
    ticket: string
    names: string[]
    /** Of several: the first that was not free. */
    held?: string
  }
  /** A waiter is gone without what it waited for. */
  'ticket.left': { ticket: string; waited_ms: number }
  /** A token was made. */
  'token.created': { token: string; role: string; for: string | null }
  /** A token was made worthless. */
  'token.revoked': { token: string }
  /** A run has a worktree of its own, and is about to begin in it. */
  'worktree.made': WorktreeChanged
  /** A run is done with its worktree; what it left uncommitted was saved. */
  'worktree.left': WorktreeChanged
  /** Nothing is left of a worktree, and nothing was lost. */
  'worktree.removed': WorktreeChanged
  /** A write with a stale fence was refused. */
  'write.fenced_off': { fence: number; current_fence: number | null; by: string }
}

export type EventType = keyof EventData

/** A change that happened, as it is remembered. Position and hash come just before COMMIT. */
export type EventDraft = { [T in EventType]: Draft<T> }[EventType]

/** By whom an event is, and of which lock or task, if it is of one. */
export interface EventSubject {
  agent: string
  lock?: string | null
  task?: string | null
}

interface Draft<T extends EventType> extends Required<EventSubject> {
  type: T
  data: EventData[T]
}

interface Recorded {
  position: number
  at: string
  hash: string
}

export type Event = EventDraft & Recorded

/** As doors show it: without the hash that chains it to the one before. */
export type ShownEvent = EventDraft & Omit<Recorded, 'hash'>

/** An event of one of these types. */
export type EventOf<T extends EventType> = Extract<EventDraft, { type: T }> & Recorded

/** The fields of all events, for code that goes by what an event says and not by its type. */
export type EventFacts = { [F in Field]?: FactOf<F> }
type Field = { [T in EventType]: keyof EventData[T] }[EventType]
type FactOf<F> = {
  [T in EventType]: F extends keyof EventData[T] ? EventData[T][F] : never
}[EventType]

export const factsOf = ({ data }: Pick<EventDraft, 'data'>): EventFacts => data

type Noun = EventType extends infer T ? (T extends `${infer N}.${string}` ? N : never) : never

/** What an event is about: `lease` of `lease.granted`. */
export const nounOf = ({ type }: Pick<EventDraft, 'type'>) => type.split('.')[0] as Noun

/** The events that a refused ask leaves behind, although its layer is dropped. */
export type LeavingEvent = {
  [T in 'write.fenced_off' | 'deadlock.found']: { type: T; lock: string; data: EventData[T] }
}['write.fenced_off' | 'deadlock.found']

const ENDINGS = ['released', 'force_released', 'cancelled', 'overdue', 'expired', 'died'] as const
export type Ending = (typeof ENDINGS)[number]

/** Whether an event says that a lease has ended. */
export const isEnding = ({ type }: Pick<EventDraft, 'type'>) =>
  ENDINGS.some((how) => type === `lease.${how}`)

/** Whether an event says that what ran under a lease is over: the token of a run ends with it. */
export const endsRun = (event: Pick<EventDraft, 'type'>) =>
  event.type === 'run.ended' || isEnding(event)
