import type { ShownEvent } from '../core/event.ts'
import type { Operation } from '../operations/operation.ts'
import type { ReachAsk } from '../reach/ask.ts'
import type { Direct } from '../reach/reach.ts'

/** Something to ask: an operation, its input, and for whom. */
export interface Question extends ReachAsk {
  operation: Operation
}

/** What an event stream says: where it begins, an event, or that the place asked for is gone. */
export interface Told {
  id: string
  what: 'begin' | 'event' | 'reset'
  event: ShownEvent | null
}

export type { ShownEvent }

/**
 * The way to a store: through a server, or in this process. Asks once: throws a `Refusal`, or
 * `Unanswered` when nobody can say what happened.
 */
export interface Transport extends Direct<Question> {
  /** Whether the store is this login's own: then leases name this process, and die with it. */
  readonly isLocal: boolean
  /** Which store it is, so that clients of one process that share it know of each other. */
  readonly place: string
  /** Events behind `after`, as long as the connection lasts. */
  stream(after: string | undefined, signal: AbortSignal): AsyncGenerator<Told>
}
