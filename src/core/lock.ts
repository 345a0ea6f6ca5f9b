import { type Caller, sameProcess } from './caller.ts'
import { breakCyclesThrough, findCycle } from './deadlock.ts'
import {
  checkFence,
  endLease,
  type Grant,
  grantLease,
  heldBy,
  refuseWhileRunning,
  settleLease,
} from './lease.ts'
import { GRACE_MS, LINE_AGING_MS } from './limits.ts'
import { dropTicket, headOf, isTurnOf, joinLines, leaveLines, positionOf } from './line.ts'
import { planted } from './planted.ts'
import { Refusal } from './refusal.ts'
import type { Lease, ProcessRef, Ticket } from './rows.ts'
import { nodeOf, nodeOfLease } from './standing.ts'
import { NeedsKill, type View } from './view.ts'

export interface AcquireLocks extends Grant {
  names: string[]
  /** Present when the caller would wait: the ticket it has, or would get. */
  ticket_id?: string | undefined
  priority: number
  takeover: boolean
}

export interface Waiting {
  waiting: string
  position: number
}

/**
 * Grants all of `names` to the caller, or none.
 * Refuses with `held`; with a ticket it joins the lines instead and returns `Waiting`, or refuses
 * with `deadlock` when its waiting would close a cycle.
 * A lease that names a living process is never taken over, not even by the same agent id.
 */
export function acquireLocks(view: View, ask: AcquireLocks, caller: Caller): Lease[] | Waiting {
  const ticket = ask.ticket_id === undefined ? undefined : view.get('ticket', ask.ticket_id)
  if (ticket?.cycle) throw deadlocked(ticket.cycle)
  const names = [...new Set(ask.names)].toSorted()
  const blocked = names.map((name) => blockedBy(view, name, ask, caller)).find((b) => b)
  if (!blocked) {
    if (ticket) dropTicket(view, ticket)
    return names.map((name) => takeLock(view, name, ask, caller))
  }
  if (ask.ticket_id === undefined) {
    if (planted('S5')) for (const name of names) tryTake(view, name, ask, caller)
    throw blocked
  }
  return ticket ? wait(view, ticket) : join(view, names, ask, caller)
}

/** The refusal that keeps the caller from `name`, if any. */
export function blockedBy(
  view: View,
  name: string,
  ask: { takeover: boolean; ticket_id?: string | undefined },
  caller: Caller,
): Refusal | undefined {
  if (planted('S1')) return undefined
  const lease = settleLease(view, name)
  if (lease) return mayRetake(view, lease, ask, caller) ? undefined : heldBy(view, lease, caller)
  const head = headOf(view, name)
  return head && head.id !== ask.ticket_id ? promisedTo(view, name, head) : undefined
}

function tryTake(view: View, name: string, ask: AcquireLocks, caller: Caller): void {
  if (!blockedBy(view, name, ask, caller)) takeLock(view, name, ask, caller)
}

/**
 * The same agent asking again gets a new lease, unless another living process may be behind the
 * old one: a defaulted id is shared by terminals, a named process is a claim of its own.
 */
function mayRetake(view: View, lease: Lease, ask: { takeover: boolean }, caller: Caller) {
  if (lease.holder !== caller.agent) return false
  if (ask.takeover) {
    if (lease.group && view.group(lease.group) === 'alive') throw new NeedsKill(lease, lease.group)
    return true
  }
  return caller.given && (lease.process === null || sameProcess(lease.process, caller.process))
}

function takeLock(view: View, name: string, ask: AcquireLocks, caller: Caller): Lease {
  const lease = grantLease(view, name, caller, ask)
  view.record({
    type: 'lease.granted',
    agent: caller.agent,
    lock: name,
    task: null,
    data: { fence: lease.fence, ttl_seconds: lease.ttl_ms / 1000 },
  })
  breakCyclesThrough(view, nodeOfLease(lease))
  return lease
}

/** A free lock with a line belongs to its head. */
function promisedTo(view: View, name: string, head: Ticket): Refusal {
  const waiters = [...view.scan('line_of', name)].length
  return new Refusal('held', `${name} is free but promised to ${head.agent}, who waited for it`, {
    next: `Join the line: leasehold lock acquire ${name} --wait 30s`,
    details: { name, holder: null, next_holder: head.agent, waiters, by_you: false },
  })
}

function join(view: View, names: string[], ask: AcquireLocks, caller: Caller): Waiting {
  const under = caller.under ? view.get('lease', caller.under.lock) : undefined
  const inherits = under && under.fence === caller.under?.fence
  const ticket: Ticket = {
    id: ask.ticket_id!,
    names,
    agent: caller.agent,
    agent_given: caller.given,
    process: caller.process,
    node: nodeOf(ask.process, caller.agent, caller.given),
    under_node: inherits ? nodeOfLease(under) : null,
    priority: ask.priority,
    asked_at: view.at,
    asked_ms: view.now,
    rank: view.now - ask.priority * LINE_AGING_MS,
    seen_ms: view.now,
    called_ms: null,
    cycle: null,
  }
  joinLines(view, ticket)
  const cycle = findCycle(view, ticket)
  if (cycle) throw deadlocked(cycle.sentences)
  view.record({
    type: 'ticket.joined',
    agent: caller.agent,
    lock: names[0] ?? null,
    task: null,
    data: { ticket: ticket.id, names },
  })
  return { waiting: ticket.id, position: positionIn(view, ticket) }
}

function wait(view: View, ticket: Ticket): Waiting {
  view.put('ticket', { ...ticket, seen_ms: view.now })
  return { waiting: ticket.id, position: positionIn(view, ticket) }
}

function positionIn(view: View, ticket: Ticket): number {
  return Math.max(...ticket.names.map((name) => positionOf(view, name, ticket.id)))
}

function deadlocked(cycle: string[]): Refusal {
  return new Refusal('deadlock', `Waiting would never end: ${cycle.join('; ')}`, {
    next: 'Release a lock that you hold, let the others finish, then ask for all of them in one call.',
    details: { cycle },
  })
}

/** How a waiter stands, without changing anything: shall it ask again now? */
export function turnOf(view: View, ticket_id: string): { ask: boolean; position: number } {
  const ticket = view.get('ticket', ticket_id)
  if (!ticket || ticket.cycle) return { ask: true, position: 0 }
  return { ask: isTurnOf(view, ticket) || isOrphan(view, ticket), position: positionIn(view, ticket) }
}

/** The head has to ask when a command must be stopped first: asking is what stops it. */
function isOrphan(view: View, ticket: Ticket): boolean {
  return ticket.names.some((name) => {
    try {
      settleLease(view, name)
      return false
    } catch (stopped) {
      if (stopped instanceof NeedsKill) return headOf(view, name)?.id === ticket.id
      throw stopped
    }
  })
}

/** The waiter has waited long enough. Returns the `held` that tells it so, with its position. */
export function giveUp(view: View, ticket_id: string, caller: Caller): Refusal {
  const ticket = view.get('ticket', ticket_id)
  const name = ticket?.names.find((each) => settledQuietly(view, each)) ?? ticket?.names[0]
  const position = ticket ? positionIn(view, ticket) : 0
  if (ticket) leaveLines(view, ticket)
  const lease = name === undefined ? undefined : view.get('lease', name)
  const held =
    lease && lease.ended_at === null
      ? heldBy(view, lease, caller)
      : new Refusal('held', `${name ?? 'The lock'} did not come free in time`)
  return new Refusal('held', `${held.message}; gave up at position ${position} of the line`, {
    next: held.next,
    details: { ...held.details, position },
  })
}

function settledQuietly(view: View, name: string): boolean {
  const lease = view.get('lease', name)
  return lease !== undefined && lease.ended_at === null
}

/** Extends a lease from now. Never revives one that has expired. */
export function renewLock(
  view: View,
  ask: { name: string; fence?: number | undefined; ttl_ms?: number | undefined },
  caller: Caller,
): Lease {
  const lease = checkFence(view, ask.name, ask.fence, caller)
  return extend(view, lease, ask.ttl_ms ?? lease.ttl_ms)
}

/** Renewals are not recorded as events: they change how long, never who. */
export function extend(view: View, lease: Lease, ttl_ms: number): Lease {
  const renewed = { ...lease, ttl_ms, expires_ms: view.now + ttl_ms }
  view.put('lease', renewed)
  return renewed
}

/** Gives a lock back. Releasing what you no longer hold is refused, never silently accepted. */
export function releaseLock(
  view: View,
  ask: { name: string; fence?: number | undefined },
  caller: Caller,
): Lease {
  const lease = checkFence(view, ask.name, ask.fence, caller)
  refuseWhileRunning(view, lease)
  endLease(view, lease, 'released', caller.agent)
  return lease
}

/**
 * An admin frees a lock whoever holds it. A command we started under it is stopped first; where it
 * cannot be reached, the lease ends now and the lock is free after the grace.
 */
export function forceRelease(
  view: View,
  ask: { name: string; reason?: string | undefined },
  caller: Caller,
): Lease {
  if (!caller.admin) {
    throw new Refusal('forbidden', `Only an admin may force-release ${ask.name}`, {
      next: 'Ask the holder to release it, or a person with an admin token.',
    })
  }
  const lease = settleLease(view, ask.name)
  if (!lease) throw new Refusal('not_found', `Nobody holds ${ask.name}`, { next: 'leasehold lock list' })
  const group = lease.group ? view.group(lease.group) : 'dead'
  if (group === 'alive') throw new NeedsKill(lease, lease.group!)
  if (group === 'unknown') {
    const ended = { ...lease, expires_ms: view.now, ttl_ms: lease.ttl_ms }
    view.put('lease', ended)
    view.record(forced(ask, lease, caller, { free_in_seconds: GRACE_MS / 1000 }))
    return ended
  }
  endLease(view, lease, 'force_released', caller.agent, ask.reason)
  return lease
}

function forced(ask: { name: string }, lease: Lease, caller: Caller, more: object) {
  const data = { fence: lease.fence, holder: lease.holder, ...more }
  return { type: 'lease.revoked', agent: caller.agent, lock: ask.name, task: null, data }
}

/**
 * Names the process group that runs under a lease, before its command may start. From then on the
 * lock is free only when that group is gone.
 */
export function nameGroup(
  view: View,
  ask: { name: string; fence: number; group: ProcessRef },
  caller: Caller,
): Lease {
  const lease = checkFence(view, ask.name, ask.fence, caller)
  const named = { ...lease, group: ask.group }
  view.put('lease', named)
  return named
}
