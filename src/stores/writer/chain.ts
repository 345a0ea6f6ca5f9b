import { planted } from '../../core/planted.ts'
import { keepable } from '../../core/text.ts'
import type { Event, EventDraft } from '../../core/event.ts'
import type { EventPlace } from '../../core/view.ts'
import { sha256 } from '../../machine/digest.ts'
import type { Head } from '../port.ts'

/** The hash that the first event of a store follows. */
export const GENESIS = '0'.repeat(64)

/**
 * Hash of an event: SHA-256 of the previous hash, a line feed, and the event as compact JSON with
 * its fields in this order. Deleting, changing or reordering any event breaks every hash behind it.
 */
const hashOf = (previous: string, text: string) => sha256(`${previous}\n${text}`)

function textOf({ position, at, type, agent, lock, task, data }: Event): string {
  return JSON.stringify({ position, at, type, agent, lock, task, data })
}

/** How JSON spells what has no encoding of its own. */
const UNKEPT = /\\u(?:0000|d[89a-f])/

/**
 * A value as the store will give it back: what is hashed is what is kept, or a sound store would
 * look damaged. Doors refuse text that has to be changed for that; this is for what gets past them.
 */
function asKept(value: unknown): unknown {
  if (typeof value === 'string') return keepable(value)
  if (Array.isArray(value)) return value.map(asKept)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([k, v]) => [keepable(k), asKept(v)]))
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
    let event = { position, at, type, agent, lock, task, data, hash: '' } as Event
    let text = textOf(event)
    if (UNKEPT.test(text)) text = textOf((event = asKept(event) as Event))
    hash = event.hash = hashOf(hash, text)
    return event
  })
  return { events, head: { ...head, position, hash } }
}

/** Follows the chain of events. A gap, a changed event and a missing end are all seen. */
export class Chain {
  /** Of the first event that is not as it was; undefined as long as there is none. */
  fault: string | undefined

  constructor(public at: EventPlace) {}

  see(event: Event): void {
    if (this.fault !== undefined) return
    const { position, hash } = event
    const last = this.at.position
    if (planted('S11')) this.at = { position, hash }
    else if (position !== last + 1) {
      this.fault = `event ${last + 1} is missing: ${position} follows ${last}`
    } else if (hashOf(this.at.hash, textOf(event)) !== hash) {
      this.fault = `event ${position} was changed after it was recorded`
    } else this.at = { position, hash }
  }

  /** What is wrong, if all events were seen that there are and `end` has to be the last of them. */
  faultAt(end: EventPlace): string | undefined {
    if (this.fault !== undefined || planted('S11')) return this.fault
    const { position, hash } = this.at
    if (position !== end.position) return `events ${position + 1} to ${end.position} are missing`
    return hash === end.hash ? undefined : `the newest event is not the one that was committed last`
  }
}

/** What is wrong with a chain, or undefined. */
export function chainFault(
  events: Iterable<Event>,
  start: EventPlace,
  end: EventPlace,
): string | undefined {
  const chain = new Chain(start)
  for (const event of events) chain.see(event)
  return chain.faultAt(end)
}

/** A store in which nothing has happened yet. */
export const EMPTY_HEAD = {
  epoch: 0,
  fences: 0,
  task_number: 0,
  position: 0,
  hash: GENESIS,
  boot: '',
  offset_ms: 0,
  last_ms: 0,
} satisfies Head

/** What databases keep of a head. */
export const HEAD = Object.keys(EMPTY_HEAD) as (keyof typeof EMPTY_HEAD)[]
