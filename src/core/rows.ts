/** What rows are made of: the rows themselves are in src/core/schema. */

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
  /** Who was refused because of it, of late. */
  wanted?: RefusedPath[]
}

export interface RefusedPath {
  by: string
  path: string
  at_ms: number
}

/** A word to a holder: why another asks for a path, or (null) that the path was changed. */
export interface ForHolder {
  by: string
  path: string
  reason: string | null
}

export const STATUSES = ['todo', 'in_progress', 'review', 'done', 'failed', 'cancelled'] as const
export type Status = (typeof STATUSES)[number]

export const RUN_STATUSES = ['running', 'completed', 'failed', 'cancelled', 'lost'] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

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

/** A process as a key that sorts as text, to find all that one process of a seat has. */
export const processKey = ({ pid, start }: Pick<ProcessRef, 'pid' | 'start'>) => `${pid}/${start}`

/** Parts of a composite key contain no line feed: names with control characters are refused. */
export const keyOf = (...parts: string[]): string => parts.join('\n')

/** Makes every rank a number of sixteen digits. */
const RANK_BASE = 10 ** 15

/** Sorts as text by scope, then rank, so that a table in the order of its keys needs no index. */
export const readyKey = (ready: { scope: string; rank: number; task_id: string }) =>
  keyOf(ready.scope, String(RANK_BASE + ready.rank), ready.task_id)
