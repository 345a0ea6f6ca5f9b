/**
 * The rows that a store keeps, with the names they have on the wire.
 * `*_at` is ISO 8601 UTC for people; `*_ms` is the store's own clock, the only one rules compare.
 */

import type {
  Memory,
  MemoryConflict,
  MemorySettings,
  MemoryText,
  MemoryVersion,
} from './memory/rows.ts'
import type {
  DispatcherRow,
  HostSettings,
  Lane,
  Limit,
  Parking,
  Queue,
  Queued,
  Resource,
  Salvage,
  Share,
  Worktree,
} from './queue/rows.ts'
import type { Landing, LandingRule } from './landing/rows.ts'
import type { Alert, Stat } from './stats/rows.ts'
import type { Duplicate, Embedding, NoteAttempt, Vector } from './memory/search_rows.ts'

export type { DispatcherRow, Lane, Limit, Parking, Queue, Queued, Salvage, Share, Worktree }

/** A process as an observer can recognise it: a pid alone is reused, and means nothing abroad. */
export interface ProcessRef {
  host: string
  /** Boot id and pid namespace: only an observer with the same seat can prove this process dead. */
  seat: string
  pid: number
  /** Start time in clock ticks since boot. */
  start: number
}

/** No kernel gives out a greater number. */
export const PID_MAX = 2 ** 22

/** A mark is so random that no process carries it by accident. */
export const MARK_FORM = /^[0-9a-f]{32}$/

/**
 * A process group that we started. `mark` is in the environment of everything in it, so that what
 * left the group is found too; `grace_ms` is how long it has between TERM and KILL.
 */
export interface GroupRef extends ProcessRef {
  mark?: string | undefined
  grace_ms?: number | undefined
  /** What left the group is let go, marked or not: a daemon that a build tool started, say. */
  lets_go?: boolean | undefined
}

/** What a claim took along with its lease, and gives back when that ends. */
export interface Terms {
  /** Limits that count this claim: `user:alice`, `project:web`, `group:g`, `pool`. */
  limits: string[]
  since_ms: number
  /** No renewal goes beyond this: the run's time is up. */
  until_ms: number | null
  /** Run time that the user's share was charged in advance. */
  charged_ms: number | null
  /** Values that the run was lent, by resource. */
  lent?: Record<string, string>
  /** The token of the run's agent, which dies with the lease. */
  token_hash?: string
}

/** What a reservation is of. `scope`, `family` and `base` are keys, made from the other fields. */
export interface PathTerms {
  /** Empty where none was named. */
  project: string
  /** The checkout that the paths are relative to; null: every checkout of the project. */
  checkout: string | null
  /** What the checkouts of one repository have in common, where that is known. */
  repository: string | null
  glob: string
  /** Whether others may have the same paths, as long as they share them too. */
  shared: boolean
  /** Why, as the holder said it. */
  reason: string | null
  /** Where it counts: its checkout, or its project. */
  scope: string
  /** Its repository, as a key. */
  family: string | null
  /** Leading folders of the glob without magic. */
  base: string
  /** What others have left for the holder to read. */
  waiting?: ForHolder[]
}

/** A word to a holder: why another asks for a path, or (null) that the path was changed. */
export interface ForHolder {
  by: string
  path: string
  reason: string | null
}

/** The latest lease of a lock. An ended one stays, as the memory of the lock's last fence. */
export interface Lease {
  name: string
  fence: number
  holder: string
  /** False for `cli:login@host`, which every terminal of one person shares. */
  holder_given: boolean
  process: ProcessRef | null
  /** The process group we started under this lease; it must be gone before the lock is free. */
  group: GroupRef | null
  /** `seat` of `process`, as a column to find leases whose death we can prove. */
  seat: string | null
  acquired_at: string
  acquired_ms: number
  ttl_ms: number
  expires_ms: number
  ended_at: string | null
  reason: string | null
  /** Set where the lease came from a claim that counts against limits. */
  terms: Terms | null
  /** Set where the lease is a reservation of paths. */
  path: PathTerms | null
}

export const STATUSES = ['todo', 'in_progress', 'review', 'done', 'failed', 'cancelled'] as const
export type Status = (typeof STATUSES)[number]

/** What a person or agent says about a task; all else about it is ours to keep. */
export interface TaskFields {
  title: string
  body: string
  project: string | null
  user: string | null
  priority: number
  group: string | null
  labels: string[]
  depends_on: string[]
  assigned_to: string | null
  metadata: Record<string, unknown>
  /** Globs of what it will change, as far as that is known: see `overlapsOf`. */
  touches?: string[] | undefined
}

export interface Task extends TaskFields {
  id: string
  touches: string[]
  /** How many characters of the body are in `task_text`, behind those here: see `bodyOf`. */
  body_apart: number
  status: Status
  version: number
  assignee: string | null
  assigned_at: string | null
  attempts: number
  created_by: string
  created_at: string
  updated_at: string
  /** Place among ready tasks: creation time minus priority × aging, so waiting counts too. */
  rank: number
  /** How many of `depends_on` are not done. */
  unmet: number
  /** Fence of the live lease on this task's lock, manual or by claim. */
  lock_fence: number | null
  /** The open run, if the lease came from a claim. */
  run_id: string | null
  /** Set for a task that was enqueued: dispatchers start it. */
  queue: Queued | null
}

export interface TaskText {
  id: string
  rest: string
}

/** `task_id` waits for `depends_on`; found from the latter when it is done. */
export interface Dependency {
  key: string
  task_id: string
  depends_on: string
}

/** A ready task, once per scope it can be asked for in: all, a project, a label, an agent. */
export interface Ready {
  key: string
  scope: string
  rank: number
  task_id: string
  high: boolean
}

export const RUN_STATUSES = ['running', 'completed', 'failed', 'cancelled', 'lost'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

export interface Run {
  id: string
  task_id: string
  agent: string
  fence: number
  host: string | null
  pid: number | null
  status: RunStatus
  started_at: string
  ended_at: string | null
  outcome: string | null
  /** The dispatcher whose slot it takes; null for a claim by an agent itself. */
  dispatcher: string | null
  /** When the command was let go, at most once; null before. */
  begun_at: string | null
  exit_code: number | null
  signal: string | null
}

/** One waiter. It waits for all of `names` at once and has a place in the line of each. */
export interface Ticket {
  id: string
  names: string[]
  agent: string
  agent_given: boolean
  process: ProcessRef | null
  /** Whether `process` only stands in for the waiter, as a daemon does for an open request. */
  stand_in: boolean
  /** Where the waiter stands in the wait-for graph: its process, or its given agent id. */
  node: string | null
  /** The lease it runs under, if any: that lease waits when this ticket does. */
  under_node: string | null
  priority: number
  asked_at: string
  asked_ms: number
  /** Place in every line: `asked_ms` minus priority × aging. */
  rank: number
  /** It is gone this long after anybody last spoke for it, unless `process` lives. */
  seen_ms: number
  called_ms: number | null
  /** `seat` of `process`, and when to look whether it is gone: see `putTicket`. */
  seat: string | null
  due_ms: number | null
  /** Set when the waiter was chosen to break a deadlock: the cycle, spelled out. */
  cycle: string[] | null
}

export interface LinePlace {
  key: string
  name: string
  rank: number
  ticket_id: string
  /** Of its ticket: to find the last of one priority, and those who wait for other locks too. */
  priority: number
  several: boolean
}

export interface Agent {
  id: string
  kind: string
  host: string | null
  pid: number | null
  first_seen_at: string
  last_seen_at: string
  last_seen_ms: number
}

/** What a request id did, so that asking again answers the same without doing it twice. */
export interface Request {
  key: string
  input_hash: string
  reply: unknown
  at_ms: number
}

/**
 * What a token is bound to. A list names all that it may touch, where an empty name stands for
 * tasks that have no user or no project. Null: to none, and what is only of users (or only of
 * projects) is shut, unless it was said to be open: `all`.
 */
export interface TokenScope {
  users: string[] | 'all' | null
  projects: string[] | 'all' | null
  /** The task that the token's run is for; null for a token that a person made. */
  task: string | null
}

/** Who may come in with a secret. Only the secret's hash is kept. */
export interface Token {
  hash: string
  /** A short name for people, taken from the hash. */
  id: string
  role: 'viewer' | 'agent' | 'admin'
  agent: string | null
  /** What it is bound to; null: to nothing. */
  scope: TokenScope | null
  created_by: string
  created_at: string
  expires_at: string | null
  expires_ms: number | null
  revoked_at: string | null
}

export interface Tables {
  task: Task
  task_text: TaskText
  dependency: Dependency
  ready: Ready
  lease: Lease
  run: Run
  ticket: Ticket
  place: LinePlace
  agent: Agent
  request: Request
  token: Token
  share: Share
  lane: Lane
  parking: Parking
  limit: Limit
  queue: Queue
  dispatcher: DispatcherRow
  host_settings: HostSettings
  resource: Resource
  worktree: Worktree
  landing: Landing
  landing_rule: LandingRule
  memory: Memory
  memory_version: MemoryVersion
  memory_text: MemoryText
  memory_conflict: MemoryConflict
  memory_settings: MemorySettings
  stat: Stat
  alert: Alert
  note_attempt: NoteAttempt
  vector: Vector
  embedding: Embedding
  duplicate: Duplicate
}

export type TableName = keyof Tables

/** The rows of one transaction: what each key becomes, null where it goes away. */
export type Changes = { [T in TableName]?: Map<string, Tables[T] | null> }

/** Which field of a row is its key. */
export const KEYS: { [T in TableName]: keyof Tables[T] & string } = {
  task: 'id',
  task_text: 'id',
  dependency: 'key',
  ready: 'key',
  lease: 'name',
  run: 'id',
  ticket: 'id',
  place: 'key',
  agent: 'id',
  request: 'key',
  token: 'hash',
  share: 'user',
  lane: 'key',
  parking: 'key',
  limit: 'key',
  queue: 'key',
  dispatcher: 'id',
  host_settings: 'key',
  resource: 'key',
  worktree: 'id',
  landing: 'id',
  landing_rule: 'project',
  memory: 'id',
  memory_version: 'id',
  memory_text: 'id',
  memory_conflict: 'id',
  memory_settings: 'key',
  stat: 'key',
  alert: 'key',
  note_attempt: 'memory_id',
  vector: 'key',
  embedding: 'key',
  duplicate: 'id',
}

export const TABLES = Object.keys(KEYS) as TableName[]

/** A process as a key that sorts as text, to find all that one process of a seat has. */
export const processKey = ({ pid, start }: Pick<ProcessRef, 'pid' | 'start'>) => `${pid}/${start}`

/** Parts of a composite key contain no line feed: names with control characters are refused. */
export const keyOf = (...parts: string[]): string => parts.join('\n')

/** Makes every rank a number of sixteen digits. */
const RANK_BASE = 10 ** 15

/** Sorts as text by scope, then rank, so that a table in the order of its keys needs no index. */
export const readyKey = ({ scope, rank, task_id }: Pick<Ready, 'scope' | 'rank' | 'task_id'>) =>
  keyOf(scope, String(RANK_BASE + rank), task_id)
