import type { LeavingEvent } from './event.ts'
/**
 * One table for every expected "no": how a command line exits and what HTTP answers.
 * Doors read it; nobody else decides an exit code.
 */
export const REFUSALS = {
  invalid: { exit: 2, http: 400 },
  unauthorized: { exit: 4, http: 401 },
  forbidden: { exit: 4, http: 403 },
  not_found: { exit: 3, http: 404 },
  held: { exit: 5, http: 409 },
  deadlock: { exit: 5, http: 409 },
  conflict: { exit: 5, http: 409 },
  fence_stale: { exit: 5, http: 412 },
  lease_expired: { exit: 5, http: 412 },
  illegal_move: { exit: 5, http: 409 },
  too_large: { exit: 2, http: 413 },
  rate_limited: { exit: 75, http: 429 },
  unavailable: { exit: 75, http: 503 },
  damaged: { exit: 76, http: 503 },
  internal: { exit: 1, http: 500 },
} as const

export type RefusalCode = keyof typeof REFUSALS

export type Details = Record<string, unknown>

interface RefusalOptions {
  next?: string
  details?: Details
  /** An event that is recorded although the refused ask changes nothing else. */
  leaves?: LeavingEvent
}

/** An expected, typed "no": what happened, why, what to do next. Thrown, caught once per door. */
export class Refusal extends Error {
  readonly code: RefusalCode
  readonly next: string
  readonly details: Details
  readonly leaves: RefusalOptions['leaves']

  constructor(code: RefusalCode, message: string, options: RefusalOptions = {}) {
    super(message)
    this.name = 'Refusal'
    this.code = code
    this.next = options.next ?? ''
    this.details = options.details ?? {}
    this.leaves = options.leaves
  }

  /** By name, not by class: parts of the program are bundled apart, each with its own class. */
  static override [Symbol.hasInstance](error: unknown): boolean {
    return error instanceof Error && error.name === 'Refusal'
  }

  toJSON(): { error: { code: RefusalCode; message: string; next: string; details: Details } } {
    const { code, message, next, details } = this
    return { error: { code, message, next, details } }
  }
}

/** Whether this is a refusal with that code. */
export function isRefusal(error: unknown, code: Refusal['code']): boolean {
  return error instanceof Refusal && error.code === code
}
