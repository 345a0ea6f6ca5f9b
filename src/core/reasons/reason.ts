import type { Status } from '../rows.ts'

/** What a reason is made of: the words of the table in `reasons.ts`. */

/** Bad: nothing goes on until a person acts. Warn: a person should look. Info: goes by itself. */
export const SEVERITIES = ['bad', 'warn', 'info'] as const
export type Severity = (typeof SEVERITIES)[number]

export const ABOUT_KINDS = [
  'task',
  'lock',
  'agent',
  'user',
  'project',
  'limit',
  'run',
  'events',
] as const

/** Something that a person may want to look at. */
export interface About {
  kind: (typeof ABOUT_KINDS)[number]
  id: string
}

/** Things of one kind, to be looked at. */
export const about = (kind: About['kind'], ids: Iterable<string>): About[] =>
  [...ids].map((id) => ({ kind, id }))

/** What can be done: an operation to call as it stands here. */
export interface Remedy {
  says: string
  operation: string
  input: Record<string, unknown>
  admin: boolean
}

/** What is waited for, where that may wait itself: the next link of a chain. */
export type Link = { task: string } | { lock: string } | { ticket: string }

/** What reasons are made of. Each has those that its sentence names. */
export interface Facts {
  id: string
  status: Status | null
  queued: boolean
  run: string | undefined
  agent: string
  outcome: string | null
  lost: number
  lately: boolean
  landing: string
  target: string | null
  reason: string | null
  is_left: boolean
  position: number | null
  assignee: string | null
  until: string
  before: string
  late_ms: number
  task_id: string
  paths: string[]
  name: string
  names: string[]
  holder: string | null
  next_holder: string
  expires_at: string
  ticket: string
  waiters: number
  first: { agent: string; ticket: string } | undefined
  also: string[]
  assigned_to: string
  paused: string
  user: string
  busy_with: string
  next: string
  next_task: string
  project: string
  serves_any: boolean
  limit: string
  max: number | null
  used: number
  slots: number
  priority: number
  what: string
  long: boolean
  task: string | undefined
}

export interface KnownReason {
  severity: Severity | ((of: Facts) => Severity)
  /** Behind the name of a task or waiter; of what nobody waits for by name, the whole sentence. */
  says: (of: Facts) => string
  /** What can be done, the best first: as an operation, or in words where none does it. */
  next?: (of: Facts) => (Remedy | string)[]
  /** As what `stuck` tells it, and what tells those of that kind apart; undefined: not at all. */
  root?: (of: Facts) => [kind: string, key: string] | undefined
  /** What it leads to: by that its root is found. */
  leads?: (of: Facts) => Link | undefined
  about?: (of: Facts) => About[]
  /** It has ended, and only waits for a person to look: nothing is kept by it as such. */
  isOver?: true
}

export const can = (says: string, operation: string, input: Remedy['input']): Remedy => {
  return { says, operation, input, admin: false }
}
export const adminCan = (...what: Parameters<typeof can>): Remedy => ({
  ...can(...what),
  admin: true,
})

/** `57 s`, `4 min`, `2 h`. */
export function lasted(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`
}
