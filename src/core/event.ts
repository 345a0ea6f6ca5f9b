import type { Retained } from './retention.ts'
import type { RunStatus, Status } from './rows.ts'

/** How long a lease was held, and for which user. An event that says so ends a hold. */
export interface Held {
  held_ms: number
  user?: string
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
  /** Of one that is in the queue. */
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

/** What each type of event says, beside when, by whom, and of which lock or task. */
export interface EventData {
  'agent.appeared': { kind: string }
  'agent.lost': { lock: string; fence: number }
  'alert.raised': { id: string; rule: string; subject: string; message: string }
  'alert.cleared': { id: string; rule: string; subject: string }
  'background_job.dead': { kind: string; subject: string; error: string }
  'deadlock.found': { by: string; cycle: string[] }
  'dispatcher.registered': {
    dispatcher: string
    host: string
    slots_max: number
    projects: string[]
  }
  'duplicate.found': { id: string; similarity: number; label: string | null }
  'duplicate.resolved': { id: string; action: string }
  'hook.bypassed': { paths: string[]; reason: string; refusal?: string }
  'lease.granted': {
    fence: number
    ttl_seconds: number
    /** Of one who waited. */
    ticket?: string
    waited_ms?: number
    /** Of a reservation. */
    path?: string
    checkout?: string | null
    shared?: boolean
    project?: string
  }
  'lease.handed_off': Held & { fence: number; from: string; from_fence: number; to: string }
  'lease.released': LeaseEnded
  'lease.force_released': LeaseEnded
  'lease.cancelled': LeaseEnded
  'lease.overdue': LeaseEnded
  'lease.expired': LeaseEnded
  'lease.died': LeaseEnded
  /** It is to end, as soon as its command has been stopped. */
  'lease.revoked': { fence: number; holder: string; reason: string }
  'memory.conflicted': Disagreement
  'memory.deleted': VersionMade
  'memory.embedded': { provider: string; ids: string[] }
  'memory.provider_changed': { provider: string; dimensions: number }
  'memory.pruned': {
    versions: number
    bytes: number
    items: { scope: string; key: string; version: number | null; why: string }[]
  }
  'memory.put': VersionMade
  'memory.merged': Settled
  'memory.resolved': Settled
  'memory.retried': { tried: number }
  'queue.limited': {
    project?: string | undefined
    group?: string | undefined
    user?: string | undefined
    max?: number | null | undefined
    weight?: number | undefined
  }
  'queue.paused': Paused
  'queue.resumed': Paused
  'run.started': { run: string; fence: number; pid: number; host: string; launch_ms: number }
  'run.ended': Partial<Held> & {
    run: string
    fence: number
    status: RunStatus
    exit_code: number | null
    signal: string | null
    reason: string | null
  }
  'store.pruned': Partial<Record<Retained | 'requests' | 'vectors', number>>
  'store.restored': { epoch: number }
  'task.claimed': {
    fence: number
    run: string
    /** Not where the lock was held already. */
    ttl_seconds?: number
    queued_ms?: number
  }
  'task.created': TaskMade
  'task.edited': { fields: string[]; version: number }
  'task.enqueued': TaskMade
  'task.forgotten': { status: Status }
  'task.moved': Partial<Held> & {
    from: Status
    to: Status
    version: number
    /** Of one that was held. */
    fence?: number
    released?: boolean
  }
  'task.quarantined': { lost: number; run: string | null }
  'ticket.broken': { ticket: string; cycle: string[] }
  'ticket.called': { ticket: string }
  'ticket.joined': { ticket: string; names: string[] }
  'ticket.left': { ticket: string; waited_ms: number }
  'token.created': { token: string; role: string; for: string | null }
  'token.revoked': { token: string }
  'write.fenced_off': { fence: number; current_fence: number | null; by: string }
}

export type EventType = keyof EventData

/** A change that happened, as it is remembered. Position and hash come just before COMMIT. */
export type EventDraft = { [T in EventType]: Draft<T> }[EventType]

interface Draft<T extends EventType> {
  type: T
  agent: string
  lock: string | null
  task: string | null
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

/** The fields of all events, for those who go by what an event says rather than by its type. */
export type EventFacts = { [F in Field]?: FactOf<F> }
type Field = { [T in EventType]: keyof EventData[T] }[EventType]
type FactOf<F> = {
  [T in EventType]: F extends keyof EventData[T] ? EventData[T][F] : never
}[EventType]

export const factsOf = ({ data }: Pick<EventDraft, 'data'>): EventFacts => data

type Noun = EventType extends infer T ? (T extends `${infer N}.${string}` ? N : never) : never

/** What an event is about: `lease` of `lease.granted`. */
export const nounOf = ({ type }: Pick<EventDraft, 'type'>) => type.split('.')[0] as Noun

/** What a refused ask leaves behind all the same. */
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
