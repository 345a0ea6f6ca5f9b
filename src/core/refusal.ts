import type { LeavingEvent } from './event.ts'
import { type Action, actionsOf, byName, type Next, nextText, type Say } from './next.ts'
import type { View } from './view.ts'

/**
 * One table for every expected "no". Doors and loops read it; nobody else keeps a list of codes.
 *
 * - `exit`, `http`: how a command line exits, and what HTTP answers.
 * - `lasts`: how long the same ask would be refused so. `decided`: the rules have decided, and will
 *   decide the same until something changes. `moment`: not now, so asking again soon may help.
 *   `mending`: nothing was decided, and somebody may have to mend something first.
 * - `ends_lease`: as the answer to a renewal, it says that the lease is over.
 */
export const REFUSALS = {
  invalid: { exit: 2, http: 400, lasts: 'decided', ends_lease: false },
  unauthorized: { exit: 4, http: 401, lasts: 'mending', ends_lease: false },
  forbidden: { exit: 4, http: 403, lasts: 'mending', ends_lease: false },
  not_found: { exit: 3, http: 404, lasts: 'decided', ends_lease: true },
  held: { exit: 5, http: 409, lasts: 'decided', ends_lease: true },
  deadlock: { exit: 5, http: 409, lasts: 'decided', ends_lease: false },
  conflict: { exit: 5, http: 409, lasts: 'decided', ends_lease: false },
  fence_stale: { exit: 5, http: 412, lasts: 'decided', ends_lease: true },
  lease_expired: { exit: 5, http: 412, lasts: 'decided', ends_lease: true },
  illegal_move: { exit: 5, http: 409, lasts: 'decided', ends_lease: false },
  too_large: { exit: 2, http: 413, lasts: 'decided', ends_lease: false },
  rate_limited: { exit: 75, http: 429, lasts: 'moment', ends_lease: false },
  unavailable: { exit: 75, http: 503, lasts: 'moment', ends_lease: false },
  damaged: { exit: 76, http: 503, lasts: 'mending', ends_lease: false },
  internal: { exit: 1, http: 500, lasts: 'mending', ends_lease: false },
} as const

export type RefusalCode = keyof typeof REFUSALS

export type Details = Record<string, unknown>

interface RefusalOptions {
  next?: Next
  details?: Details
  /** An event that is recorded, or what is written, although the ask changes nothing else. */
  leaves?: LeavingEvent | ((view: View) => void)
}

/** A refusal on the wire. */
export interface RefusalShape {
  code: RefusalCode
  message: string
  next: string
  details: Details
  actions?: Action[]
}

/** An expected, typed "no": what happened, why, what to do next. Thrown, caught once per door. */
export class Refusal extends Error {
  readonly actions: Action[]
  readonly details: Details
  readonly leaves: RefusalOptions['leaves']

  constructor(
    readonly code: RefusalCode,
    message: string,
    options: RefusalOptions = {},
  ) {
    super(message)
    this.name = 'Refusal'
    this.actions = actionsOf(options.next ?? '')
    this.details = options.details ?? {}
    this.leaves = options.leaves
  }

  /** What to do next, as text that no door has worded. */
  get next(): string {
    return nextText(this.actions)
  }

  /** By name, not by class: parts of the program are bundled apart, each with its own class. */
  static override [Symbol.hasInstance](error: unknown): boolean {
    return error instanceof Error && error.name === 'Refusal'
  }

  /** Reads back what `toJSON` wrote, from an answer of a server with this HTTP status. */
  static from(reply: unknown, status: number): Refusal {
    const { error } = Object(reply) as Partial<ReturnType<Refusal['toJSON']>>
    if (!error) return new Refusal('unavailable', `The server answered ${status}`)
    const { code, message, details, next, actions = next } = error
    // A newer server may know more of them.
    const known = Object.hasOwn(REFUSALS, code) ? code : 'internal'
    return new Refusal(known, message, { next: actions, details })
  }

  toJSON(): { error: RefusalShape } {
    return this.inWords(byName)
  }

  /** As a door tells it; where operations do what is next, they are told as data, too. */
  inWords(say: Say): { error: RefusalShape } {
    const { code, message, details, actions } = this
    const shown = { code, message, next: nextText(actions, say), details }
    return { error: actions.some(({ operation }) => operation) ? { ...shown, actions } : shown }
  }
}

/** Whether this is a refusal with that code. */
export function isRefusal(error: unknown, code: RefusalCode): error is Refusal {
  return error instanceof Refusal && error.code === code
}

/** Whether this answer to a renewal says that the lease is over; else the next may be renewed. */
export const endsLease = (error: unknown): error is Refusal =>
  error instanceof Refusal && REFUSALS[error.code].ends_lease

/** Whether the rules have decided, so that asking again would change nothing. */
export const isDecided = (error: unknown): error is Refusal =>
  error instanceof Refusal && REFUSALS[error.code].lasts === 'decided'

/** Whether this is a "not now". One that says `lasting` ends only when somebody does something. */
export const isMomentary = (error: unknown): error is Refusal =>
  error instanceof Refusal && REFUSALS[error.code].lasts === 'moment'

/** Refuses with `not_found`; `list` is the operation that tells what there is. */
export function missing(what: string, list: string, details: Details = {}): never {
  const next = { says: 'See what there is', operation: list }
  throw new Refusal('not_found', `There is no ${what}`, { next, details })
}
