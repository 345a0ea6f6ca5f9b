/** The rows of the queue: who is next, and what may run at once. */

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

/** As people know a host: without what tells it from another of that name (src/machine/host.ts). */
export const nameOfHost = (host: string) => host.replace(/~[0-9a-f]{8}$/, '')

/** Of a resource, and of the limit that counts how much of it is lent. */
export const resourceKey = (host: string, name: string) => `${RESOURCE}${host}:${name}`
export const isResource = (key: string) => key.startsWith(RESOURCE)
const RESOURCE = 'resource:'

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

export type SettingValue = string | number | boolean | null

/** Settings by their path in config.json, see `settingKey`. What is left out is not named. */
export type Settings = Record<string, SettingValue>
