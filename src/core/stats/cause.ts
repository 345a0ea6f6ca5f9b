/** Why work does not go on: one root, however many wait because of it. */

export const CAUSE_KINDS = [
  'store_damaged',
  'store_trouble',
  'paused',
  'no_dispatcher',
  'no_project',
  'unserved',
  'agent_missing',
  'quarantined',
  'deaths',
  'failed',
  'deadlock',
  'holder_silent',
  'held',
  'review',
  'user_busy',
  'limit_full',
  'no_slot',
  'unbegun',
  'unclaimed',
] as const
export type CauseKind = (typeof CAUSE_KINDS)[number]

/** Bad: nothing goes on until a person acts. Warn: a person should look. Info: goes by itself. */
export const SEVERITIES = ['bad', 'warn', 'info'] as const
type Severity = (typeof SEVERITIES)[number]

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

/** What can be done about a cause: an operation to call as it stands here. */
export interface Remedy {
  says: string
  operation: string
  input: Record<string, unknown>
  admin: boolean
}

export interface Cause {
  /** The same as long as the cause lasts. */
  id: string
  kind: CauseKind
  severity: Severity
  what: string
  /** In the words of `explain`. */
  why: string
  next: string
  since: string | null
  about: About[]
  /** How many tasks and agents are kept by it. */
  tasks: number
  agents: number
  /** Counted up to a bound only. */
  at_least: boolean
  actions: Remedy[]
}

export const HEALTH_STATES = ['ok', 'degraded', 'paused', 'silent'] as const

/** `silent` is what a client says of a server that it does not hear any more. */
export interface Health {
  state: (typeof HEALTH_STATES)[number]
  why: string
}

const ABOUT_MAX = 12
const ACTIONS_MAX = 6

type Said = Pick<Cause, 'id' | 'kind' | 'severity' | 'what'> & Partial<Cause>

/** A cause with what is left out, and no more of its lists than a screen has room for. */
export function causeOf(said: Said): Cause {
  const { about = [], actions = [] } = said
  const none = { why: '', next: '', since: null, tasks: 0, agents: 0, at_least: false }
  const bounded = { about: about.slice(0, ABOUT_MAX), actions: actions.slice(0, ACTIONS_MAX) }
  return { ...none, ...said, ...bounded }
}

/** Things of one kind, to be looked at. */
export const about = (kind: About['kind'], ids: Iterable<string>): About[] =>
  [...ids].map((id) => ({ kind, id }))

/** `1 task waits`, `23+ tasks wait`. */
export function many(n: number, noun: string, verb: string, at_least = false): string {
  return n === 1 && !at_least ? `1 ${noun} ${verb}s` : `${n}${at_least ? '+' : ''} ${noun}s ${verb}`
}

/** `57 s`, `4 min`, `2 h`. */
export function lasted(ms: number): string {
  const seconds = Math.max(0, Math.floor(ms / 1000))
  if (seconds < 120) return `${seconds} s`
  return seconds < 7200 ? `${Math.floor(seconds / 60)} min` : `${Math.floor(seconds / 3600)} h`
}

/** The first rows of a scan, and whether there were more. */
export function firstRows<Row>(rows: Iterable<Row>, max: number): { rows: Row[]; more: boolean } {
  const found: Row[] = []
  for (const row of rows) {
    if (found.length === max) return { rows: found, more: true }
    found.push(row)
  }
  return { rows: found, more: false }
}
