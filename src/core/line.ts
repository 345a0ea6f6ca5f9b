import { CALL_MS, TICKET_MS } from './limits.ts'
import { keyOf, type Ticket } from './rows.ts'
import { isFree } from './standing.ts'
import type { View } from './view.ts'

/** Gives `ticket` its place in the line of every lock it waits for. */
export function joinLines(view: View, ticket: Ticket): void {
  view.put('ticket', ticket)
  for (const name of ticket.names) {
    const key = keyOf(name, ticket.id)
    view.put('place', { key, name, rank: ticket.rank, ticket_id: ticket.id })
  }
  for (const name of ticket.names) uncallOvertaken(view, name, ticket)
}

/** Whoever was called but then overtaken by a higher priority keeps its place, and is not late. */
function uncallOvertaken(view: View, name: string, ticket: Ticket): void {
  let head: Ticket | undefined
  for (const next of lineOf(view, name)) {
    if (head) {
      if (next.called_ms !== null) view.put('ticket', { ...next, called_ms: null })
      return
    }
    if (next.id !== ticket.id) return
    head = next
  }
}

/** Takes `ticket` out of every line and calls whoever heads them now. */
export function leaveLines(view: View, ticket: Ticket): void {
  forgetTicket(view, ticket)
  for (const name of ticket.names) callHead(view, name)
}

/**
 * The waiter is gone without what it waited for. A dispatcher may have passed over what was
 * promised to it, and has to look again: such a lock is the one that is named.
 */
function forgetTicket(view: View, ticket: Ticket): void {
  dropTicket(view, ticket)
  const queued = ticket.names.find((name) => /^(?:task|user):/.test(name))
  const held = queued ?? ticket.names[0] ?? null
  const data = { ticket: ticket.id, waited_ms: view.now - ticket.asked_ms }
  view.record({ type: 'ticket.left', agent: ticket.agent, lock: held, task: null, data })
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
  view.put('ticket', { ...ticket, cycle, seen_ms: view.now })
  const data = { ticket: ticket.id, cycle }
  view.record({ type: 'ticket.broken', agent: ticket.agent, lock: null, task: null, data })
  for (const name of ticket.names) callHead(view, name)
}

/** A waiter that died, fell silent or let its call lapse holds up nobody. */
export function isGone(view: View, ticket: Ticket): boolean {
  // Kept only for its waiter to find the cycle, which it does at its next look.
  if (ticket.cycle) return view.now > ticket.seen_ms + TICKET_MS
  if (ticket.called_ms !== null && view.now > ticket.called_ms + CALL_MS) return true
  const fact = ticket.process ? view.process(ticket.process) : 'unknown'
  if (fact === 'alive') return false
  if (fact === 'dead' && ticket.stand_in) {
    // Whoever stood in is gone, not the waiter: it gets the time to come back by its request id.
    view.put('ticket', { ...ticket, process: null, seen_ms: view.now })
    return false
  }
  return fact === 'dead' || view.now > ticket.seen_ms + TICKET_MS
}

/** The waiters for `name` in order. Those who are gone are taken out on the way. */
export function* lineOf(view: View, name: string): Generator<Ticket> {
  for (const place of view.scan('line_of', name)) {
    const ticket = view.get('ticket', place.ticket_id)
    if (ticket && !isGone(view, ticket)) yield ticket
    else if (ticket) forgetTicket(view, ticket)
    else view.remove('place', place.key)
  }
}

export function headOf(view: View, name: string): Ticket | undefined {
  for (const ticket of lineOf(view, name)) return ticket
  return undefined
}

/** 1 for the head; 0 when the ticket is not in the line. */
export function positionOf(view: View, name: string, id: string): number {
  let position = 0
  for (const ticket of lineOf(view, name)) {
    position += 1
    if (ticket.id === id) return position
  }
  return 0
}

/** Whether `ticket` may take all its locks now: it heads every line, and every lock is free. */
function isTurnOf(view: View, ticket: Ticket): boolean {
  return ticket.names.every((name) => headOf(view, name)?.id === ticket.id && isFree(view, name))
}

/** Called when `name` became free or its line changed: tells the head, and only the head. */
export function callHead(view: View, name: string): void {
  const head = headOf(view, name)
  if (!head || head.called_ms !== null || !isTurnOf(view, head)) return
  view.put('ticket', { ...head, called_ms: view.now })
  view.record({
    type: 'ticket.called',
    agent: head.agent,
    lock: name,
    task: null,
    data: { ticket: head.id },
  })
}
