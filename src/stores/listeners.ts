import type { Event } from '../core/view.ts'

export interface Listener {
  events(events: Event[]): void
  /** The store was replaced by a backup: positions went back, and all that was seen may be gone. */
  reset(): void
  /** This process cannot serve the store any more, whatever is asked of it. */
  ended(why: string): void
}

/**
 * Tells every listener. What they are told of is committed, so a listener that throws changes
 * nothing about it: the others are told all the same, and the error goes to the log.
 */
export function tellEach(listeners: Iterable<Listener>, tell: (to: Listener) => void): void {
  for (const listener of listeners) {
    try {
      tell(listener)
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error))
    }
  }
}
