import type { ShownEvent } from '../core/event.ts'
import type { Operation } from '../operations/operation.ts'

/** Who is asking, as far as the client knows. */
export interface Who {
  /** Undefined: whoever the access token stands for. */
  agent: string | undefined
  /** False when the id was defaulted: then it may stand for many programs. */
  given: boolean
  admin: boolean
}

/** Something to ask: an operation, its input, and for whom. */
export interface Question {
  operation: Operation
  input: Record<string, unknown>
  who: Who
  signal: AbortSignal | undefined
}

/** What an event stream says: where it begins, an event, or that the place asked for is gone. */
export interface Told {
  id: string
  what: 'begin' | 'event' | 'reset'
  event: ShownEvent | null
}

export type { ShownEvent }

/** The way to a store: through a server, or in this process. */
export interface Transport {
  /** Whether the store is this login's own: then leases name this process, and die with it. */
  readonly isLocal: boolean
  /** Which store it is, so that clients of one process that share it know of each other. */
  readonly place: string
  /** Asks once. Throws a `Refusal`, or `Unanswered` when nobody can say what happened. */
  ask(question: Question): Promise<unknown>
  /** Events behind `after`, as long as the connection lasts. */
  stream(after: string | undefined, who: Who, signal: AbortSignal): AsyncGenerator<Told>
  close(): Promise<void>
}
