import type { Limit, Share } from '../schema/queue.ts'
import type { Caller } from '../caller.ts'
import { applyHostSettings, type SettingRows } from './host_settings.ts'
import { LANDING_ROWS } from '../landing/rule.ts'
import { LOCK_TIMEOUT_MS } from '../bounds.ts'
import type { Settings } from './rows.ts'
import { groupLimit, limitOf, POOL, projectLimit, putLimit } from './limit.ts'
import { busyUsers, putShare, queueOf, shareOf } from './share.ts'
import type { View } from '../view.ts'

/** Settings of the queue, as rules read them: by their path in config.json. */
const QUEUE_ROWS: SettingRows = {
  get(view, path) {
    const [section = '', name = '', field] = path
    if (field === 'land') return LANDING_ROWS.get(view, path)
    if (section === 'users') return shareOf(view, name)[field === 'weight' ? 'weight' : 'max']
    if (section !== 'per_user_serialization') return limitOf(view, limitIn(section, name)).max
    const { user_max, lock_timeout_ms } = queueOf(view)
    return name === 'enabled' ? user_max !== null : lock_timeout_ms / 1000
  },
  put(view, path, value) {
    const [section = '', name = '', field] = path
    if (field === 'land') LANDING_ROWS.put(view, path, value)
    else if (section === 'users') {
      const changed = field === 'weight' ? { weight: value ?? 1 } : { max: value ?? null }
      putShare(view, { ...shareOf(view, name), ...(changed as Partial<Share>) })
    } else if (section !== 'per_user_serialization') {
      const max = (value ?? null) as number | null
      putLimit(view, { ...limitOf(view, limitIn(section, name)), max })
    } else if (name === 'enabled') {
      view.put('queue', { ...queueOf(view), user_max: value === false ? null : 1 })
      // Whether a share is busy depends on the queue's own limit too.
      for (const user of busyUsers(view).keys()) putShare(view, shareOf(view, user))
    } else {
      const lock_timeout_ms = value === undefined ? LOCK_TIMEOUT_MS : Number(value) * 1000
      view.put('queue', { ...queueOf(view), lock_timeout_ms })
    }
  },
}

/** `pool.limit`, `projects.web.limit`, `groups.g.limit`: the counter that it bounds. */
function limitIn(section: string, name: string): string {
  if (section === 'pool') return POOL
  return section === 'projects' ? projectLimit(name) : groupLimit(name)
}

/** Makes the configuration true: at a dispatcher's start, and when the file has changed. */
export function applySettings(view: View, source: string, settings: Settings): void {
  applyHostSettings(view, { part: 'queue', source, settings }, QUEUE_ROWS)
}

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
  const type = paused ? 'queue.paused' : 'queue.resumed'
  view.record(type, caller, { project: project ?? null, user: user ?? null })
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
    putLimit(view, { ...boundOf(view, ask), max })
  }
  view.record('queue.limited', caller, { project, group, user, max, weight })
}

/** The limit of a project, of a group, or of the pool. */
export function boundOf(view: View, { project, group }: SetLimit): Limit {
  const key = group === undefined ? POOL : groupLimit(group)
  return limitOf(view, project === undefined ? key : projectLimit(project))
}
