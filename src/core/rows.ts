/**
 * The rows that a store keeps, with the names they have on the wire.
 * `*_at` is ISO 8601 UTC for people; `*_ms` is the store's own clock, the only one rules compare.
 */

/** A process as an observer can recognise it: a pid alone is reused, and means nothing abroad. */
export interface ProcessRef {
  host: string
  /** Boot id and pid namespace: only an observer with the same seat can prove this process dead. */
  seat: string
  pid: number
  /** Start time in clock ticks since boot. */
  start: number
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
  group: ProcessRef | null
  /** `seat` of `process`, as a column to find leases whose death we can prove. */
  seat: string | null
  acquired_at: string
  acquired_ms: number
  ttl_ms: number
  expires_ms: number
  ended_at: string | null
  reason: string | null
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
}

export interface Task extends TaskFields {
  id: string
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
  /** Set when the waiter was chosen to break a deadlock: the cycle, spelled out. */
  cycle: string[] | null
}

export interface Place {
  key: string
  name: string
  rank: number
  ticket_id: string
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

/** Who may come in with a secret. Only the secret's hash is kept. */
export interface Token {
  hash: string
  /** A short name for people, taken from the hash. */
  id: string
  role: 'viewer' | 'agent' | 'admin'
  agent: string | null
  created_by: string
  created_at: string
  expires_at: string | null
  expires_ms: number | null
  revoked_at: string | null
}

export interface Tables {
  task: Task
  dependency: Dependency
  ready: Ready
  lease: Lease
  run: Run
  ticket: Ticket
  place: Place
  agent: Agent
  request: Request
  token: Token
}

export type TableName = keyof Tables

/** Which field of a row is its key. */
export const KEYS: { [T in TableName]: keyof Tables[T] & string } = {
  task: 'id',
  dependency: 'key',
  ready: 'key',
  lease: 'name',
  run: 'id',
  ticket: 'id',
  place: 'key',
  agent: 'id',
  request: 'key',
  token: 'hash',
}

export const TABLES = Object.keys(KEYS) as TableName[]

/** Parts of a composite key contain no line feed: names with control characters are refused. */
export function keyOf(...parts: string[]): string {
  return parts.join('\n')
}
