/** The rows of the queue: who is next, and what may run at once. */

/** One user's account in the queue: what runs, what waits, what comes next. */
export interface Share {
  /** Empty for tasks that have no user. */
  user: string
  weight: number
  /** Its own limit; null: the queue's default. */
  max: number | null
  /** Locks that count against the limit: `task:42`, or `user:alice` taken by hand. */
  running: string[]
  /** Enqueued tasks in `todo`, and how many of them have a high priority. */
  pending: number
  pending_high: number
  /** Whether any are pending; changes less often than how many. */
  waits: boolean
  /** When its newest task was enqueued; the next comes at least a millisecond later. */
  last_ms: number
  /** Virtual time: service received, by weight. The share furthest behind is served next. */
  vt: number
  /** Length of its runs, averaged; null until one has ended. */
  run_ms: number | null
  paused: boolean
  /** The group that was started last: its ready tasks come next. */
  group: string | null
  /** Lanes that have a ready task and are not parked. */
  lanes: number
  next_lane: string | null
  next_task: string | null
  next_high: boolean
  /** In which index this share stands: it could start `next_task` now; null: it could not. */
  turn: 'high' | 'normal' | null
}

/** Ready tasks of one user, project and group: what can be parked together on a full limit. */
export interface Lane {
  key: string
  user: string
  project: string | null
  group: string | null
  /** User and group together, to find the tasks that follow each other. */
  group_key: string | null
  ready: number
  head_rank: number | null
  head_task: string | null
  head_high: boolean
  /** The limit that had no room when this lane was looked at. */
  parked_on: string | null
}

/** A user whose lanes are parked on one limit, and when its turn there is. */
export interface Parking {
  key: string
  limit: string
  user: string
  /** The user's virtual time when last looked at; it may have risen since. */
  vt: number
  /** What the best of its lanes there would start. */
  turn: 'high' | 'normal'
}

/**
 * A counter that claims take from: of a project, a group, or the pool of all. Lanes of a project
 * that no dispatcher serves are parked on `unserved:NAME`, which is paused until one does.
 */
export interface Limit {
  key: string
  max: number | null
  used: number
  paused: boolean
  /** How many lanes are parked here. */
  parked: number
  /** Which of the parked lanes could be woken: there is room, or agents may take them. */
  wakes: 'room' | 'unserved' | null
}

/** The queue as a whole; there is one row. */
export interface Queue {
  key: 'queue'
  /** Start tag of the last start: nobody joins with less. */
  vclock: number
  /** High-priority starts in a row while others waited. */
  high_streak: number
  paused: boolean
  /** How many tasks of one user may run at once, unless its share says otherwise. */
  user_max: number | null
  lock_timeout_ms: number
  /** Length of all runs, averaged: the estimate for a user without a history. */
  run_ms: number | null
}

/** How an enqueued task is to be run, and how often that went wrong. */
export interface Queued {
  /** An agent of the configuration; null: the project's own. */
  agent_command: string | null
  time_limit_ms: number | null
  /** How often it may be run again after a failure. */
  retries: number
  failed: number
  lost: number
}

/** A program that starts runs on one host. It lives as long as its lease does. */
export interface DispatcherRow {
  /** The name of the lock that makes it the only one on its host. */
  id: string
  host: string
  pid: number
  slots_max: number
  projects: string[]
  started_at: string
}

/** As people know a host: without what tells it from another of that name (src/machine/host.ts). */
export const nameOfHost = (host: string) => host.replace(/~[0-9a-f]{8}$/, '')

/** Of a resource, and of the limit that counts how much of it is lent. */
export const resourceKey = (host: string, name: string) => `${RESOURCE}${host}:${name}`
export const isResource = (key: string) => key.startsWith(RESOURCE)
const RESOURCE = 'resource:'

/** What a host lends to runs, one value each: ports, or databases. A limit counts how many. */
export interface Resource {
  /** Also the key of its limit. */
  key: string
  host: string
  name: string
  /** As the configuration names them, and whose runs are lent one. */
  offered: string[]
  projects: string[]
  /** Which value is lent for which lock; one that is no longer offered is let run out. */
  lent: Record<string, string>
}

/** What a worktree is: being made, in use by its run, left by a run that is over, going. */
export const WORKTREE_STATES = ['making', 'ready', 'left', 'removing'] as const
export type WorktreeState = (typeof WORKTREE_STATES)[number]

/** What a run left uncommitted, kept as a commit. */
export interface Salvage {
  ref: string
  commit: string
  at: string
  /** What could not be kept, or was not to be: too large, ignored, a repository of its own. */
  left_out: string[]
}

/**
 * A git worktree that a run has for itself. Its row is there before any of it is on disk, and until
 * nothing of it is left: whatever a crash leaves behind has a row.
 */
export interface Worktree {
  /** The id of the run that it was made for; later runs of the task may go on in it. */
  id: string
  task_id: string
  /** The run that has it, or had it last, and the fence under which that is so. */
  run_id: string
  fence: number
  project: string
  host: string
  /** What all worktrees of the repository share: the real path of its `.git`. */
  repository: string
  path: string
  branch: string
  /** The commit that the branch began at; null while that is not known. */
  base: string | null
  state: WorktreeState
  salvage: Salvage | null
  /** Paths that differ from `base`, as last told; of too many, the folders: `src/`. */
  changed: string[]
  /** Why it is still here, when somebody wanted it removed. */
  kept_because: string | null
  begun_at: string
  left_at: string | null
}

export type SettingValue = string | number | boolean | null

/** Settings by their path in config.json, see `settingKey`. What is left out is not named. */
export type Settings = Record<string, SettingValue>

/**
 * What one config.json sets for all who use the store. Its source is a host; or `config.json` where
 * no other host can reach the store, and there is only one.
 */
export interface HostSettings {
  key: string
  part: 'queue' | 'memory'
  source: string
  settings: Settings
  /** When that file was read last. */
  read_ms: number
}
