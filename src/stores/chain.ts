import { planted } from '../core/planted.ts'
import type { Event, EventDraft } from '../core/view.ts'
import { sha256 } from './digest.ts'
import type { Head } from './port.ts'

/** The hash that the first event of a store follows. */
export const GENESIS = '0'.repeat(64)

/**
 * Hash of an event: SHA-256 of the previous hash, a line feed, and the event as compact JSON with
 * its fields in this order. Deleting, changing or reordering any event breaks every hash behind it.
 */
function hashOf(previous: string, event: Omit<Event, 'hash'>): string {
  const { position, at, type, agent, lock, task, data } = event
  const text = JSON.stringify({ position, at, type, agent, lock, task, data })
  return sha256(`${previous}\n${text}`)
}

/** Gives drafts their positions and hashes: once, just before COMMIT, in the order decided. */
export function seal(
  drafts: EventDraft[],
  head: Head,
  at: string,
): { events: Event[]; head: Head } {
  let { position, hash } = head
  const events = drafts.map(({ type, agent, lock, task, data }) => {
    position += planted('S10') && position % 7 === 6 ? 2 : 1
    const event = { position, at, type, agent, lock, task, data, hash: '' }
    hash = event.hash = hashOf(hash, event)
    return event
  })
  return { events, head: { ...head, position, hash } }
}

/**
 * Follows the chain from `previous`. Returns what is wrong with it, or undefined.
 * A gap, a changed event and a missing end are all seen.
 */
export function chainFault(
  events: Iterable<Event>,
  start: { position: number; hash: string },
  end: { position: number; hash: string },
): string | undefined {
  if (planted('S11')) return undefined
  let { position, hash } = start
  for (const event of events) {
    if (event.position !== position + 1) {
      return `event ${position + 1} is missing: ${event.position} follows ${position}`
    }
    hash = hashOf(hash, event)
    if (hash !== event.hash) return `event ${event.position} was changed after it was recorded`
    position = event.position
  }
  if (position !== end.position) return `events ${position + 1} to ${end.position} are missing`
  return hash === end.hash ? undefined : `the newest event is not the one that was committed last`
}
