import type { Cursor } from '../schema/indexes.ts'
import type { Lease, LinePlace, Ticket } from '../schema/lock.ts'
import { CYCLE_STEPS_MAX } from '../bounds.ts'
import { breakTicket, dropTicket, isGone } from './line.ts'
import { word } from '../quote.ts'
import { isNone } from '../first.ts'
import { keyOf, processKey } from '../rows.ts'
import { userOf } from '../queue/share.ts'
import { busyLease, holdingLease, nodeOfLease, processOfNode } from './standing.ts'
import type { View } from '../view.ts'

interface Cycle {
  tickets: Ticket[]
  /** One sentence per edge: who waits for which lock, and who has it. */
  sentences: string[]
}

/**
 * What one search has gone through. Others wait for its write, so it ends at a number of steps: a
 * deadlock among more waiters than that ends with the first of them whose time is up.
 */
interface Search {
  start: Ticket
  left: number
  /** How far each line was gone through: nothing is read twice, however many wait there. */
  lines: Map<string, Cursor>
}

/** All tickets that the process or agent at `node` waits with, itself or through a child. */
export function* ticketsOf(view: View, node: string): Generator<Ticket> {
  for (const index of ['tickets_of', 'tickets_under'] as const) {
    for (const ticket of view.scan(index, node)) {
      // A waiter that is gone waits for nobody: it must not look like part of a deadlock.
      if (isGone(view, ticket)) dropTicket(view, ticket)
      else yield ticket
    }
  }
}

/** One edge of the graph: what it says, and the holder or waiter that it leads to. */
interface Step {
  says: string
  node?: string
  ticket?: Ticket
}

/** Who `ticket` waits for: the holder of each lock, and those before it in each line. */
function* stepsFrom(view: View, ticket: Ticket, search: Search): Generator<Step> {
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
    for (const before of waitersBefore(view, name, ticket, search)) {
      yield { says: says(name, before.agent), ticket: before }
    }
  }
}

/**
 * Of those before `ticket` in a line: the one whose cycle is looked for, and those who wait for
 * other locks too. All others wait for nobody whom `ticket` does not wait for itself.
 */
function* waitersBefore(
  view: View,
  name: string,
  ticket: Ticket,
  search: Search,
): Generator<Ticket> {
  const { start, lines } = search
  if (start.id !== ticket.id && start.names.includes(name) && isBefore(start, ticket)) yield start
  for (const place of view.scan('line_several', name, lines.get(name))) {
    if (!isBefore(placed(place), ticket)) return
    lines.set(name, { order: place.rank, key: place.key })
    const before = view.get('ticket', place.ticket_id)
    if (before && !isGone(view, before)) yield before
  }
}

const placed = ({ rank, ticket_id }: LinePlace) => ({ rank, id: ticket_id })

/** The order of two waiters in any line that both stand in. */
const isBefore = (a: Pick<Ticket, 'rank' | 'id'>, b: Pick<Ticket, 'rank' | 'id'>) =>
  a.rank < b.rank || (a.rank === b.rank && a.id < b.id)

/** Whether anybody stands behind `ticket` in a line. */
function isFollowed(view: View, { names, rank, id }: Ticket): boolean {
  return names.some((name) => {
    return !isNone(view.scan('line_of', name, { order: rank, key: keyOf(name, id) }))
  })
}

/** Of one that holds more, a walk along the waiters costs less than a look at all that it holds. */
const HOLDINGS_MAX = 30

/** Whether anybody waits for a lock that the node of `ticket` holds. */
function isHolding(view: View, ticket: Ticket): boolean {
  let looked = 0
  for (const node of [ticket.node, ticket.under_node]) {
    for (const lease of node === null ? [] : leasesOf(view, node)) {
      looked += 1
      if (looked > HOLDINGS_MAX || isWanted(view, lease)) return true
    }
  }
  return false
}

/** Whether anybody waits for the lock of `lease`, or for that of the user whom it keeps busy. */
function isWanted(view: View, { name, terms }: Lease): boolean {
  const users = terms?.limits.filter((key) => userOf(key) !== undefined) ?? []
  return [name, ...users].some((lock) => !isNone(view.scan('line_of', lock)))
}

/** What the process or agent at `node` holds. */
function* leasesOf(view: View, node: string): Generator<Lease> {
  const process = processOfNode(node)
  if (!process) {
    for (const lease of view.scan('leases_held_by', node.slice('agent:'.length))) {
      if (nodeOfLease(lease) === node) yield lease
    }
    return
  }
  const order = processKey(process)
  for (const lease of view.scan('leases_seated_at', process.seat, { order, key: '' })) {
    if (processKey(lease.process!) !== order) return
    if (nodeOfLease(lease) === node) yield lease
  }
}

/**
 * A cycle of waiters through `start`, which has just joined, if one exists. Most who join stand at
 * the end (are not `followed`) and hold nothing that anybody wants: no cycle can go through them,
 * and nothing need be walked.
 */
export function findCycle(view: View, start: Ticket, followed: boolean): Cycle | undefined {
  if (!followed && !isHolding(view, start)) return undefined
  return searchFrom(view, { start, left: CYCLE_STEPS_MAX, lines: new Map() })
}

/**
 * Walks only what is reachable from the start, so it costs nothing when nobody waits for anybody
 * who waits. Keeps its path in a list: a line may be longer than the stack is deep.
 */
function searchFrom(view: View, search: Search): Cycle | undefined {
  const { start } = search
  const mine = new Set([start.node, start.under_node])
  const seen = new Set<string>([start.id])
  const path = [{ ticket: start, says: '', steps: stepsFrom(view, start, search) }]
  while (path.length > 0 && search.left > 0) {
    search.left -= 1
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
    path.push({ ticket, says: '', steps: stepsFrom(view, ticket, search) })
  }
  return undefined
}

/** After `lease` was granted: the newest waiter of every cycle that this closed is let go. */
export function breakCyclesThrough(view: View, lease: Lease): void {
  const node = nodeOfLease(lease)
  // Where nobody waits for the lock, its grant makes nobody wait for its holder.
  if (node === null || !isWanted(view, lease)) return
  let left = CYCLE_STEPS_MAX
  for (const { id } of ticketsOf(view, node)) {
    // One grant can close several cycles through one waiter: go on until none is left.
    for (;;) {
      const start = view.get('ticket', id)
      if (!start || start.cycle || left <= 0) break
      if (!isFollowed(view, start) && !isHolding(view, start)) break
      const search = { start, left, lines: new Map<string, Cursor>() }
      const cycle = searchFrom(view, search)
      left = search.left - 1
      if (!cycle) break
      const newest = cycle.tickets.reduce((a, b) => (b.asked_ms > a.asked_ms ? b : a))
      breakTicket(view, newest, cycle.sentences)
    }
  }
}
