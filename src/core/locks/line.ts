import type { Ticket } from '../schema/lock.ts'
import { CALL_MS, POSITION_MAX, TICKET_MS } from '../bounds.ts'
import { first, firstOf } from '../first.ts'
import { keyOf } from '../rows.ts'
import { isFree } from './standing.ts'
import type { View } from '../view.ts'

const LOOK_STEP_MS = 60_000

/** The only way to write a ticket: keeps `seat` and `due_ms` right, by which sweeps find it. */
export function putTicket(view: View, ticket: Kept): Ticket {
  const kept = { ...ticket, seat: ticket.process?.seat ?? null, due_ms: dueOf(ticket) }
  view.put('ticket', kept)
  return kept
}

type Kept = Omit<Ticket, 'seat' | 'due_ms'>

/**
 * When to look whether the waiter is gone. A living one speaks for its ticket sooner than this; the
 * look is for one that went with its whole machine. In steps, or the index would change each time.
 */
function dueOf(ticket: Kept): number {
  const look_ms = Math.ceil((ticket.seen_ms + TICKET_MS) / LOOK_STEP_MS) * LOOK_STEP_MS
  return Math.min(endOf(ticket) ?? look_ms, look_ms)
}

/** When a ticket is gone whatever its process does; null: it lives as long as its process. */
function endOf({ process, called_ms, seen_ms, cycle }: Kept): number | null {
  const silent_ms = seen_ms + TICKET_MS
  // Kept only for its waiter to find the cycle, which it does at its next look.
  if (cycle) return silent_ms
  const lapses_ms = called_ms === null ? null : called_ms + CALL_MS
  if (process !== null) return lapses_ms
  return Math.min(silent_ms, lapses_ms ?? silent_ms)
}

/**
 * Gives `ticket` its place in the line of every lock it waits for. Returns whether that is before
 * anybody else's.
 */
export function joinLines(view: View, ticket: Ticket): boolean {
  putTicket(view, ticket)
  const { id: ticket_id, names, rank, priority } = ticket
  let isFollowed = false
  for (const name of names) {
    for (const next of view.scan('line_of', name, { order: rank, key: keyOf(name, ticket_id) })) {
      uncall(view, next.ticket_id)
      isFollowed = true
      break
    }
  }
  // Only now: a look at a line goes through all places that this ask has taken so far.
  const several = names.length > 1
  for (const name of names) {
    view.put('place', { key: keyOf(name, ticket_id), name, rank, ticket_id, priority, several })
  }
  return isFollowed
}

/** A called waiter that a higher priority overtakes keeps its place, and does not count as late. */
function uncall(view: View, ticket_id: string): void {
  const ticket = view.get('ticket', ticket_id)
  if (ticket && ticket.called_ms !== null) putTicket(view, { ...ticket, called_ms: null })
}

/**
 * The waiter is gone without what it waited for. A dispatcher may have passed over what was
 * promised to the waiter, and has to look again: the event names such a lock.
 */
export function leaveLines(view: View, ticket: Ticket): void {
  dropTicket(view, ticket)
  const queued = ticket.names.find((name) => /^(?:task|user):/.test(name))
  const { names } = ticket
  const blocking = names.length > 1 ? names.find((name) => !isFree(view, name)) : undefined
  const held = queued ?? blocking ?? names[0] ?? null
  const data = { ticket: ticket.id, waited_ms: view.now - ticket.asked_ms }
  view.record('ticket.left', { agent: ticket.agent, lock: held }, data)
}

export function dropTicket(view: View, ticket: Ticket): void {
  view.remove('ticket', ticket.id)
  dropPlaces(view, ticket)
}

function dropPlaces(view: View, ticket: Ticket): void {
  for (const name of ticket.names) view.remove('place', keyOf(name, ticket.id))
}

/** Chooses `ticket` to break a deadlock: it leaves the lines, and its waiter finds the cycle. */
export function breakTicket(view: View, ticket: Ticket, cycle: string[]): void {
  dropPlaces(view, ticket)
  putTicket(view, { ...ticket, cycle, seen_ms: view.now })
  const lock = ticket.names[0] ?? null
  const data = { ticket: ticket.id, cycle, waited_ms: view.now - ticket.asked_ms }
  view.record('ticket.broken', { agent: ticket.agent, lock }, data)
}

/** Keeps tickets whose waiters still wait. Returns the ids of those that are gone. */
export function keepTickets(view: View, ids: string[]): string[] {
  return ids.filter((id) => {
    const ticket = view.get('ticket', id)
    if (ticket && !ticket.cycle) putTicket(view, { ...ticket, seen_ms: view.now })
    return !ticket
  })
}

/** Nobody waits with this ticket now; its waiter has the time to come back by its request id. */
export function disownTicket(view: View, id: string): void {
  const ticket = view.get('ticket', id)
  if (!ticket || ticket.cycle) return
  putTicket(view, { ...ticket, process: null, stand_in: false, seen_ms: view.now })
}

/** A waiter that died, fell silent or let its call lapse holds up nobody. */
export function isGone(view: View, ticket: Ticket): boolean {
  const end_ms = endOf(ticket)
  if (end_ms !== null && view.now > end_ms) return true
  // Without a process only silence tells, and a ticket with a cycle ends by its time alone.
  if (ticket.cycle || ticket.process === null) return false
  const fact = view.process(ticket.process)
  if (fact === 'alive') return false
  if (fact === 'dead' && ticket.stand_in) {
    // The stand-in is gone, not the waiter: the waiter has time to come back by its request id.
    putTicket(view, { ...ticket, process: null, seen_ms: view.now })
    return false
  }
  return fact === 'dead' || view.now > ticket.seen_ms + TICKET_MS
}

/** The waiters for `name` in order. Those who are gone are taken out, and `left` is told. */
export function* lineOf(
  view: View,
  name: string,
  left?: (ticket: Ticket) => void,
): Generator<Ticket> {
  for (const place of view.scan('line_of', name)) {
    const ticket = view.get('ticket', place.ticket_id)
    if (ticket && !isGone(view, ticket)) yield ticket
    else if (ticket) {
      leaveLines(view, ticket)
      left?.(ticket)
    } else view.remove('place', place.key)
  }
}

/** The first of those who wait for `name`, as many as are shown. */
export const firstInLine = (view: View, name: string): Ticket[] => [
  ...firstOf(lineOf(view, name), POSITION_MAX),
]

/** The ticket that heads the line for `name`, if there is one. */
export const headOf = (view: View, name: string, left?: (ticket: Ticket) => void) =>
  first(lineOf(view, name, left))

/**
 * 1 for the head; 0 when the ticket is not in the line. Counts no further than `POSITION_MAX`: to
 * count a line of ten thousand for each of them would stop everybody.
 */
export function positionOf(view: View, name: string, id: string): number {
  let position = 0
  for (const { ticket_id } of view.scan('line_of', name)) {
    position += 1
    if (ticket_id === id || position === POSITION_MAX) return position
  }
  return 0
}

/** Whether `ticket` may take all its locks now: it heads every line, and every lock is free. */
export function isTurnOf(view: View, ticket: Ticket): boolean {
  return ticket.names.every((name) => isFree(view, name) && headOf(view, name)?.id === ticket.id)
}

/** How many wait for `name`, as far as is counted. */
export const waitersIn = (view: View, name: string): number =>
  [...firstOf(view.scan('line_of', name), POSITION_MAX)].length

/** Of several locks that were waited for, the one that kept the waiter to the end. */
export function freedLast(view: View, names: string[]): string | undefined {
  if (names.length === 1) return names[0]
  const endedAt = (name: string) => view.get('lease', name)?.ended_at ?? ''
  return names.reduce((last, name) => (endedAt(name) > endedAt(last) ? name : last))
}
