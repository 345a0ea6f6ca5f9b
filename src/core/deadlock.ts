import { breakTicket, dropTicket, isGone, lineOf } from './line.ts'
import type { Ticket } from './rows.ts'
import { holdingLease, nodeOfLease } from './standing.ts'
import type { View } from './view.ts'

interface Cycle {
  tickets: Ticket[]
  /** One sentence per edge: who waits for which lock, and who has it. */
  sentences: string[]
}

/** All tickets that the process or agent at `node` waits with, itself or through a child. */
function* ticketsOf(view: View, node: string): Generator<Ticket> {
  for (const index of ['tickets_of', 'tickets_under'] as const) {
    for (const ticket of [...view.scan(index, node)]) {
      // A waiter that is gone waits for nobody: it must not look like part of a deadlock.
      if (isGone(view, ticket)) dropTicket(view, ticket)
      else yield ticket
    }
  }
}

/** Who `ticket` waits for: the holder of each lock, and the waiter just before it in each line. */
function* blockersOf(view: View, ticket: Ticket): Generator<[string, Ticket | string, string]> {
  for (const name of ticket.names) {
    const lease = holdingLease(view, name)
    const node = lease && nodeOfLease(lease)
    if (node) yield [name, node, lease.holder]
    let before: Ticket | undefined
    for (const other of lineOf(view, name)) {
      if (other.id === ticket.id) break
      before = other
    }
    if (before) yield [name, before, before.agent]
  }
}

/**
 * A cycle of waiters through `start`, if one exists. Walks only what is reachable from `start`, so
 * it costs nothing when nobody waits for anybody who waits.
 */
export function findCycle(view: View, start: Ticket): Cycle | undefined {
  const mine = new Set([start.node, start.under_node])
  const seen = new Set<string>([start.id])

  function walk(ticket: Ticket, path: Cycle): Cycle | undefined {
    for (const [name, blocker, whose] of blockersOf(view, ticket)) {
      const here: Cycle = {
        tickets: [...path.tickets, ticket],
        sentences: [...path.sentences, `${ticket.agent} waits for ${name}, which ${whose} has`],
      }
      const closed = typeof blocker === 'string' ? mine.has(blocker) : blocker.id === start.id
      if (closed) return here
      const onward = typeof blocker === 'string' ? ticketsOf(view, blocker) : [blocker]
      for (const next of onward) {
        if (seen.has(next.id) || next.cycle) continue
        seen.add(next.id)
        const found = walk(next, here)
        if (found) return found
      }
    }
    return undefined
  }

  return walk(start, { tickets: [], sentences: [] })
}

/** After `node` was given a lock: the newest waiter of every cycle that this closed is let go. */
export function breakCyclesThrough(view: View, node: string | null): void {
  if (node === null) return
  for (const { id } of [...ticketsOf(view, node)]) {
    // One grant can close several cycles through one waiter: go on until none is left.
    for (;;) {
      const ticket = view.get('ticket', id)
      const cycle = ticket && !ticket.cycle ? findCycle(view, ticket) : undefined
      if (!cycle) break
      const newest = cycle.tickets.reduce((a, b) => (b.asked_ms > a.asked_ms ? b : a))
      breakTicket(view, newest, cycle.sentences)
    }
  }
}
