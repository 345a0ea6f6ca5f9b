import type { Lease, Ticket } from '../schema/lock.ts'
import { type Caller, sameProcess } from '../caller.ts'
import { breakCyclesThrough, findCycle } from './deadlock.ts'
import {
  checkFence,
  endLease,
  type Grant,
  grantLease,
  heldBy,
  isRunning,
  refuseForeign,
  refuseWhileRunning,
  revokeLease,
  settleLease,
  taskOf,
} from './lease.ts'
import { LINE_AGING_MS, POSITION_MAX } from '../bounds.ts'
import * as line from './line.ts'
import { dropTicket, headOf, isGone, joinLines, leaveLines, positionOf, putTicket } from './line.ts'
import { planted } from '../planted.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import { type GroupRef, keyOf } from '../rows.ts'
import { isBusyUser, userOf } from '../queue/share.ts'
import {
  busyLease,
  expiryOf,
  holdingLease,
  isFree,
  isOrphaned,
  nodeOf,
  nodeOfLease,
  standing,
} from './standing.ts'
import { NeedsKill, type View } from '../view.ts'

export interface AcquireLocks extends Grant {
  names: string[]
  /** Present when the caller would wait: the ticket it has, or would get. */
  ticket_id?: string | undefined
  priority: number
  takeover: boolean
}

/** The ticket to wait with. */
export interface Waiting {
  waiting: string
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
  refuseSecondUser(view, names, caller.agent)
  const blocked = firstBlocked(view, names, ask, caller)
  if (!blocked) {
    if (ticket) dropTicket(view, ticket)
    const waited = ticket && { ticket, last: line.freedLast(view, names) }
    return names.map((name) => takeLock(view, name, ask, caller, waited))
  }
  if (ask.ticket_id === undefined) {
    if (planted('S5')) return takeSome(view, names, ask, caller)
    throw blocked
  }
  // Looking at the lines takes out waiters that are gone; this one may have been among them.
  const still = view.get('ticket', ask.ticket_id)
  return still
    ? wait(view, still, caller)
    : join(view, names, { ...ask, held: blocked.details['name'] }, caller)
}

/** Looks no further than the first that is not free: a hundred may be asked for at once. */
function firstBlocked(view: View, names: string[], ask: AcquireLocks, caller: Caller) {
  for (const name of names) {
    const blocked = blockedBy(view, name, ask, caller)
    if (blocked) return blocked
  }
  return undefined
}

/** Two users at once would be a way past the limit of each: nobody works for two at a time. */
export function refuseSecondUser(view: View, names: string[], agent: string): void {
  const asked = names.filter((name) => userOf(name) !== undefined)
  if (asked.length === 0) return
  const held = [...view.scan('leases_held_by', agent)]
    .filter((lease) => userOf(lease.name) !== undefined && standing(view, lease) === 'live')
    .map((lease) => lease.name)
  const all = new Set([...held, ...asked])
  if (all.size === 1) return
  throw new Refusal('invalid', `One holder may have one user: lock, not ${all.size}`, {
    next: `Release ${held[0] ?? asked[0]} first.`,
    details: { held, asked },
  })
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
  if (lease) {
    if (mayRetake(view, lease, ask, caller)) return undefined
    return heldBy(view, lease, caller, ask.takeover)
  }
  if (isBusyUser(view, name)) return busyBy(view, name, caller)
  const head = headOf(view, name)
  if (!head || head.id === ask.ticket_id) return undefined
  // A waiter does not get this answer, so nobody need be counted for it.
  return promisedTo(name, head, ask.ticket_id === undefined ? line.waitersIn(view, name) : 0)
}

/** The lock of a user is held by a claim; or by nobody, if the limit of that user is 0. */
function busyBy(view: View, name: string, caller: Caller): Refusal {
  const busy = busyLease(view, name)
  if (busy) return heldBy(view, busy, caller)
  const input = { user: userOf(name), max: 1 }
  return new Refusal('held', `${word(name)} cannot be taken: the limit of this user is 0`, {
    next: { says: 'An admin can change it', operation: 'queue.limit', input },
    details: { name, holder: null, by_you: false },
  })
}

/** The planted bug of S5: part of what was asked for. */
function takeSome(view: View, names: string[], ask: AcquireLocks, caller: Caller): Lease[] {
  const free = names.filter((name) => !blockedBy(view, name, ask, caller))
  return free.map((name) => takeLock(view, name, ask, caller))
}

/**
 * The same agent asking again gets a new lease, unless another living process may be behind the
 * old one: a defaulted id is shared by terminals, a named process is a claim of its own.
 */
function mayRetake(view: View, lease: Lease, ask: { takeover: boolean }, caller: Caller) {
  if (lease.holder !== caller.agent) return false
  if (ask.takeover) {
    const group = lease.group ? view.group(lease.group) : 'dead'
    if (group === 'alive') throw new NeedsKill(lease, lease.group!)
    return group === 'dead'
  }
  return caller.given && (lease.process === null || sameProcess(lease.process, caller.process))
}

function takeLock(
  view: View,
  name: string,
  ask: AcquireLocks,
  caller: Caller,
  waited?: { ticket: Ticket; last: string | undefined },
): Lease {
  const lease = grantLease(view, name, caller, ask)
  keepRun(view, lease)
  const data = {
    fence: lease.fence,
    ttl_seconds: lease.ttl_ms / 1000,
    ...(waited && { ticket: waited.ticket.id }),
    ...(waited?.last === name && { waited_ms: view.now - waited.ticket.asked_ms }),
  }
  view.record('lease.granted', { agent: caller.agent, lock: name }, data)
  breakCyclesThrough(view, lease)
  return lease
}

/** A holder that asks again for the lock of its task in progress goes on with the run it has. */
function keepRun(view: View, lease: Lease): void {
  const id = taskOf(lease.name)
  const run_id = id === undefined ? undefined : view.get('task', id)?.run_id
  const run = run_id ? view.get('run', run_id) : undefined
  if (run) view.put('run', { ...run, fence: lease.fence })
}

/** A free lock with a line belongs to its head. */
function promisedTo(name: string, head: Ticket, waiters: number): Refusal {
  const input = { names: [name], wait_seconds: 30 }
  return new Refusal(
    'held',
    `${word(name)} is free but promised to ${word(head.agent)}, who waited for it`,
    {
      next: { says: 'Join the line', operation: 'lock.acquire', input },
      details: { name, holder: null, next_holder: head.agent, waiters, by_you: false },
    },
  )
}

/** `held`: the first of the locks that is not free. */
type Joining = AcquireLocks & { held: unknown }

function join(view: View, names: string[], ask: Joining, caller: Caller): Waiting {
  const under = caller.under ? view.get('lease', caller.under.lock) : undefined
  const inherits = under && under.fence === caller.under?.fence
  const ticket: Ticket = {
    id: ask.ticket_id!,
    names,
    agent: caller.agent,
    agent_given: caller.given,
    process: caller.waiter ?? caller.process,
    stand_in: caller.waiter !== undefined,
    node: nodeOf(ask.process, caller.agent, caller.given),
    under_node: inherits ? nodeOfLease(under) : null,
    priority: ask.priority,
    asked_at: view.at,
    asked_ms: view.now,
    rank: rankIn(view, names, ask.priority),
    seen_ms: view.now,
    called_ms: null,
    seat: null,
    due_ms: null,
    cycle: null,
  }
  const isFollowed = joinLines(view, ticket)
  const cycle = findCycle(view, ticket, isFollowed)
  if (cycle) throw deadlocked(cycle.sentences, { lock: names[0]!, by: caller.agent })
  const data = { ticket: ticket.id, names, ...(names.length > 1 && { held: String(ask.held) }) }
  view.record('ticket.joined', { agent: caller.agent, lock: names[0] ?? null }, data)
  return { waiting: ticket.id }
}

/**
 * Its place in every line: when it asked, minus priority × aging. Asks of one batch share one
 * instant, so equal tickets stand in the order in which they were decided, a millisecond apart.
 */
function rankIn(view: View, names: string[], priority: number): number {
  let rank = view.now - priority * LINE_AGING_MS
  for (const name of names) {
    for (const last of view.scan('line_end', keyOf(name, String(priority)))) {
      rank = Math.max(rank, last.rank + 1)
      break
    }
  }
  return rank
}

/** The ticket waits on, and names the process that waits with it now: perhaps another daemon. */
function wait(view: View, ticket: Ticket, caller: Caller): Waiting {
  const spoken = { process: caller.waiter ?? caller.process, stand_in: caller.waiter !== undefined }
  putTicket(view, { ...ticket, ...spoken, seen_ms: view.now })
  return { waiting: ticket.id }
}

function positionIn(view: View, ticket: Ticket): number {
  return Math.max(...ticket.names.map((name) => positionOf(view, name, ticket.id)))
}

/** With `found` the refusal leaves an event, so that people see who would wait for ever. */
function deadlocked(cycle: string[], found?: { lock: string; by: string }): Refusal {
  return new Refusal('deadlock', `Waiting would never end: ${cycle.join('; ')}`, {
    next: 'Release what you hold, let the others finish, then ask for all of them in one call.',
    details: { cycle },
    ...(found && {
      leaves: { type: 'deadlock.found', lock: found.lock, data: { by: found.by, cycle } },
    }),
  })
}

export interface LineTurn {
  /** Heads every line it stands in: it is the next to be called. */
  heads: boolean
  /** Asking again now would get the locks, or stop a command that is in the way. */
  ask: boolean
  /** Chosen to break a deadlock: waiting on is of no use. */
  broken: boolean
}

/**
 * How a waiter stands. Changes nothing, so it can be looked at as often as needed; and looks only
 * at the heads of lines, so that a thousand waiters may do so.
 */
export function turnOf(view: View, ticket_id: string): LineTurn {
  const ticket = view.get('ticket', ticket_id)
  if (!ticket) return { heads: false, ask: true, broken: false }
  if (ticket.cycle) return { heads: false, ask: false, broken: true }
  // A waiter that let its call lapse is in no line any more: it has to ask for a new place.
  if (isGone(view, ticket)) return { heads: false, ask: true, broken: false }
  const heads = ticket.names.every((name) => headOf(view, name)?.id === ticket.id)
  const free = (name: string) => isFree(view, name) || isOrphaned(view, name)
  return { heads, ask: heads && ticket.names.every(free), broken: false }
}

/** 1 for the head of all its lines, at most `POSITION_MAX`; 0 for a ticket that is in no line. */
export function placeInLine(view: View, ticket_id: string): number {
  const ticket = view.get('ticket', ticket_id)
  return ticket ? positionIn(view, ticket) : 0
}

/**
 * The waiter goes: its time is up, or it was chosen to break a deadlock. Takes it out of the lines
 * and returns the refusal that tells it why, with its position.
 */
export function giveUp(view: View, ticket_id: string, caller: Caller): Refusal {
  const ticket = view.get('ticket', ticket_id)
  // A ticket that was asked for under a request id bears its key: a refusal is not remembered.
  if (ticket && view.get('request', ticket_id)) view.remove('request', ticket_id)
  if (!ticket) return new Refusal('held', 'The lock did not come free in time')
  const position = placeInLine(view, ticket_id)
  leaveLines(view, ticket)
  if (ticket.cycle) return deadlocked(ticket.cycle)
  const held_by = (name: string) => holdingLease(view, name) ?? busyLease(view, name)
  const lease = ticket.names.map(held_by).find((each) => each)
  const held = lease
    ? heldBy(view, lease, caller)
    : new Refusal('held', `${ticket.names.map(word).join(', ')} did not come free in time`)
  const where = position === POSITION_MAX ? `${position} or later` : String(position)
  return new Refusal('held', `${held.message}; gave up at position ${where} in the line`, {
    next: held.actions,
    details: { ...held.details, position },
  })
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
  const renewed = { ...lease, ttl_ms, expires_ms: expiryOf(view.now, ttl_ms, lease.terms) }
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
 * An admin frees a lock that another holds. If a command runs under the lease, the lease is revoked
 * at once, so that its holder can write no more; the lock is free when that command is stopped, or
 * after the grace if it cannot be reached. Doing it twice is as good as once.
 */
export function forceRelease(
  view: View,
  ask: { name: string; reason?: string | undefined },
  caller: Caller,
): Lease {
  if (!caller.admin) {
    throw new Refusal('forbidden', `Only an admin may force-release ${word(ask.name)}`, {
      next: 'Ask the holder to release it, or a person with an admin token.',
    })
  }
  const lease = view.get('lease', ask.name)
  if (lease && lease.reason === 'force_released') return lease
  if (!lease || !settleLease(view, ask.name)) {
    throw new Refusal('not_found', `Nobody holds ${word(ask.name)}`, {
      next: { says: 'See what there is', operation: 'lock.list' },
    })
  }
  if (!isRunning(view, lease)) {
    endLease(view, lease, 'force_released', caller.agent, ask.reason)
    return lease
  }
  const data = { fence: lease.fence, holder: lease.holder, reason: ask.reason ?? '' }
  view.record('lease.revoked', { agent: caller.agent, lock: ask.name }, data)
  return revokeLease(view, lease, 'force_released')
}

/**
 * Names the process group that runs under a lease, before its command may start. From then on the
 * lock is free only when that group is gone. Refuses one that is no command of ours.
 */
export function nameGroup(
  view: View,
  ask: { name: string; fence: number; group: GroupRef },
  caller: Caller,
): Lease {
  const lease = checkFence(view, ask.name, ask.fence, caller)
  refuseForeign(view, ask.group)
  const named = { ...lease, group: ask.group }
  view.put('lease', named)
  return named
}
