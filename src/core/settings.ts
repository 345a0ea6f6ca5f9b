import type { Caller } from './caller.ts'
import { groupLimit, limitOf, POOL, projectLimit, putLimit } from './limit.ts'
import { busyUsers, putShare, queueOf, shareOf } from './share.ts'
import type { View } from './view.ts'

/** Limits and weights as configured. What is not named has no limit, and weight 1. */
export interface QueueSettings {
  user_max: number | null
  lock_timeout_ms: number
  /** By key: `project:web`, `group:g`, `pool`. */
  limits: ReadonlyMap<string, number | null>
  users: ReadonlyMap<string, { weight: number; max: number | null }>
}

/** Makes the configuration true: at a dispatcher's start, and when the file has changed. */
export function applySettings(view: View, settings: QueueSettings): void {
  const { user_max, lock_timeout_ms, limits, users } = settings
  view.put('queue', { ...queueOf(view), user_max, lock_timeout_ms })
  for (const limit of [...view.scan('limits', '')]) {
    const max = limits.get(limit.key) ?? null
    if (limit.max !== max) putLimit(view, { ...limit, max })
  }
  for (const [key, max] of limits) {
    const limit = limitOf(view, key)
    if (limit.max !== max) putLimit(view, { ...limit, max })
  }
  for (const share of [...view.scan('shares_special', '')]) {
    if (!users.has(share.user)) putShare(view, { ...share, weight: 1, max: null })
  }
  for (const [user, { weight, max }] of users) {
    putShare(view, { ...shareOf(view, user), weight, max })
  }
  // Whether a share is busy depends on the queue's own limit too.
  for (const user of busyUsers(view).keys()) putShare(view, shareOf(view, user))
}

/** The key of a limit by what it bounds. */
export const limitKey = { project: projectLimit, group: groupLimit, pool: POOL }

export interface Pause {
  paused: boolean
  project?: string | undefined
  user?: string | undefined
}

/** Stops starts, or lets them go on: of a project, of a user, of both, or of the whole queue. */
export function pauseQueue(view: View, ask: Pause, caller: Caller): void {
  const { paused, project, user } = ask
  if (project !== undefined) {
    putLimit(view, { ...limitOf(view, projectLimit(project)), paused })
  }
  if (user !== undefined) putShare(view, { ...shareOf(view, user), paused })
  if (project === undefined && user === undefined) view.put('queue', { ...queueOf(view), paused })
  const data = { project: project ?? null, user: user ?? null }
  const type = paused ? 'queue.paused' : 'queue.resumed'
  view.record({ type, agent: caller.agent, lock: null, task: null, data })
}

export interface SetLimit {
  project?: string | undefined
  group?: string | undefined
  user?: string | undefined
  /** Null takes the limit away; undefined leaves it. */
  max?: number | null | undefined
  weight?: number | undefined
}

/** Changes a limit or a weight until the configuration is read again. */
export function setLimit(view: View, ask: SetLimit, caller: Caller): void {
  const { project, group, user, max, weight } = ask
  if (user !== undefined) {
    const share = shareOf(view, user)
    putShare(view, {
      ...share,
      max: max === undefined ? share.max : max,
      weight: weight ?? share.weight,
    })
  } else if (max !== undefined) {
    putLimit(view, { ...limitOf(view, keyFor(project, group)), max })
  }
  const data = { project, group, user, max, weight }
  view.record({ type: 'queue.limited', agent: caller.agent, lock: null, task: null, data })
}

function keyFor(project: string | undefined, group: string | undefined): string {
  if (project !== undefined) return projectLimit(project)
  return group === undefined ? POOL : groupLimit(group)
}
