import { breakTicket, dropTicket, isGone, lineOf } from './line.ts'
import { word } from './quote.ts'
import { keyOf, type Ticket } from './rows.ts'
import { busyLease, holdingLease, nodeOfLease } from './standing.ts'
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

/** In one line, the waiter just before each: read once per search, however long the line is. */
type Ahead = Map<string, Ticket | undefined>

function aheadIn(view: View, name: string): Ahead {
  const ahead: Ahead = new Map()
  let before: Ticket | undefined
  for (const ticket of lineOf(view, name)) {
    ahead.set(ticket.id, before)
    before = ticket
  }
  return ahead
}

/** One edge of the graph: what it says, and the holder or waiter that it leads to. */
interface Step {
  says: string
  node?: string
  ticket?: Ticket
}

/** Who `ticket` waits for: the holder of each lock, and the waiter just before it in each line. */
function* stepsFrom(view: View, ticket: Ticket, lines: Map<string, Ahead>): Generator<Step> {
  const says = (name: string, whose: string) =>
    `${word(ticket.agent)} waits for ${word(name)}, which ${word(whose)} has`
  for (const name of ticket.names) {
    const lease = holdingLease(view, name) ?? busyLease(view, name)
    const node = lease && nodeOfLease(lease)
    if (node) {
      yield { says: says(name, lease.holder), node }
      for (const next of ticketsOf(view, node))
        yield { says: says(name, lease.holder), ticket: next }
    }
    let ahead = lines.get(name)
    if (!ahead) lines.set(name, (ahead = aheadIn(view, name)))
    const before = ahead.get(ticket.id)
    if (before) yield { says: says(name, before.agent), ticket: before }
  }
}

/**
 * Whether anybody can be waiting for `ticket`: someone behind it in a line, or for a lock that it
 * holds. Most waiters hold nothing and stand at the end: no cycle can go through them, and the line
 * need not be walked.
 */
function isWaitedFor(view: View, ticket: Ticket): boolean {
  // A process may hold leases of any agent, and a lease above this one is held by definition.
  if (ticket.under_node !== null || ticket.node?.startsWith('process:')) return true
  for (const lease of view.scan('leases_held_by', ticket.agent)) {
    if (nodeOfLease(lease) === ticket.node) return true
  }
  return ticket.names.some((name) => {
    const after = { order: ticket.rank, key: keyOf(name, ticket.id) }
    for (const _ of view.scan('line_of', name, after)) return true
    return false
  })
}

/**
 * A cycle of waiters through `start`, if one exists. Walks only what is reachable from `start`, so
 * it costs nothing when nobody waits for anybody who waits. Keeps its path in a list: a line may be
 * longer than the stack is deep.
 */
export function findCycle(view: View, start: Ticket): Cycle | undefined {
  if (!isWaitedFor(view, start)) return undefined
  const mine = new Set([start.node, start.under_node])
  const seen = new Set<string>([start.id])
  const lines = new Map<string, Ahead>()
  const path = [{ ticket: start, says: '', steps: stepsFrom(view, start, lines) }]
  while (path.length > 0) {
    const here = path.at(-1)!
    const { value: step } = here.steps.next()
    if (!step) {
      path.pop()
      continue
    }
    here.says = step.says
    const { node, ticket } = step
    if ((node !== undefined && mine.has(node)) || ticket?.id === start.id) {
      return { tickets: path.map((each) => each.ticket), sentences: path.map((each) => each.says) }
    }
    if (!ticket || seen.has(ticket.id) || ticket.cycle) continue
    seen.add(ticket.id)
    path.push({ ticket, says: '', steps: stepsFrom(view, ticket, lines) })
  }
  return undefined
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
