import type { Event } from '../../core/event.ts'

export interface Listener {
  events(events: Event[]): void
  /** The store was replaced by a backup: positions went back, and all that was seen may be gone. */
  reset(): void
  /** Something may be claimed or started that could not before; see `Store.onOpening`. */
  opened(): void
  /** This process cannot serve the store any more, whatever is asked of it. */
  ended(why: string): void
}

/** One that wants to hear of nothing; a listener says what it does. */
export const SILENT: Listener = {
  events: () => undefined,
  reset: () => undefined,
  opened: () => undefined,
  ended: () => undefined,
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
