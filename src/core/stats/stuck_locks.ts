import type { Lease, Ticket } from '../schema/lock.ts'
import { type Caller, STRANGER } from '../caller.ts'
import { circles, lastOf, sentencesOf } from '../locks/circle.ts'
import { busyWith } from '../queue/share.ts'
import { taskOf } from '../locks/lease.ts'
import { whoHolds } from '../tasks/explain.ts'
import { busyLease, holdingLease, nodeOfLease } from '../locks/standing.ts'
import { argument, listed, word } from '../quote.ts'
import type { View } from '../view.ts'
import { about, type Cause, causeOf, firstRows, lasted, many, type Remedy } from './cause.ts'

/** Waiters that are looked at, those who have waited longest first. */
const TICKETS_MAX = 1_000
/** A wait of this length is worth a look. */
const LONG_MS = 60_000

/** One holder that is not itself waiting, and all who wait for it in the end. */
interface Root {
  leases: Map<string, Lease>
  waiters: Map<string, Ticket>
}

/** Who is waited for, by those who wait for nobody: the roots of the wait-for graph. */
export function lockCauses(view: View): Cause[] {
  const { rows, more } = firstRows(view.scan('tickets', ''), TICKETS_MAX)
  const waiting = new Waiting(
    view,
    rows.filter(({ cycle }) => cycle === null),
  )
  const held = waiting.roots().map((root) => heldCause(view, root, more))
  const broken = rows.flatMap(({ agent, cycle, asked_at }) => {
    return cycle
      ? [deadlockCause(agent, `Waiting would never end: ${cycle.join('; ')}`, asked_at)]
      : []
  })
  return [...held, ...broken]
}

/** Agents that want each other's files, and try again and again. */
export function circleCauses(view: View, caller: Caller): Cause[] {
  const { rows } = firstRows(view.scan('reservations', ''), TICKETS_MAX)
  return circles(view, caller, rows).map((circle) => {
    const agents = circle.map(({ agent }) => agent)
    const { name, holder, path } = lastOf(circle)
    return causeOf({
      id: `circle:${agents.toSorted().join(',')}`,
      kind: 'deadlock',
      severity: 'warn',
      what: `${listed(agents.map(word))} wait for each other's files`,
      why: sentencesOf(circle).join('; '),
      next:
        `${word(holder)} is told to let go of ${word(path!.glob)}. Or free it: ` +
        `leasehold lock force-release ${argument(name)}`,
      agents: agents.length,
      about: about('agent', agents),
      actions: [freeing(view, name)],
    })
  })
}

/** Somebody was refused, or let go, because its wait would never have ended. */
export const deadlockCause = (agent: string, why: string, since: string): Cause =>
  causeOf({
    id: `deadlock:${agent}`,
    kind: 'deadlock',
    severity: 'warn',
    what: `${word(agent)} was let go, to break a deadlock`,
    why,
    next: 'Take several locks in one call, or always in the same order.',
    since,
    agents: 1,
    about: [...about('agent', [agent]), ...about('events', ['deadlock.found,ticket.broken'])],
  })

class Waiting {
  private readonly byNode = new Map<string, Ticket[]>()
  private readonly found = new Map<string, Root>()

  constructor(
    private readonly view: View,
    private readonly tickets: Ticket[],
  ) {
    for (const ticket of tickets) {
      for (const node of [ticket.node, ticket.under_node]) {
        if (node === null) continue
        const known = this.byNode.get(node)
        if (known) known.push(ticket)
        else this.byNode.set(node, [ticket])
      }
    }
  }

  roots(): Root[] {
    for (const ticket of this.tickets) this.climb(ticket, ticket, new Set())
    return [...this.found.values()]
  }

  /**
   * From a waiter to who holds what it waits for, as far as those wait themselves. False if nobody
   * is in its way: it is about to be called.
   */
  private climb(ticket: Ticket, from: Ticket, seen: Set<string>): boolean {
    if (seen.has(ticket.id)) return false
    seen.add(ticket.id)
    let isBlocked = false
    for (const name of ticket.names) {
      const lease = holdingLease(this.view, name) ?? busyLease(this.view, name)
      if (!lease) continue
      isBlocked = true
      const behind = this.byNode.get(nodeOfLease(lease) ?? '') ?? []
      const isPassedOn = behind.map((each) => this.climb(each, from, seen)).includes(true)
      if (!isPassedOn) this.blame(lease, name, from)
    }
    return isBlocked
  }

  private blame(lease: Lease, name: string, waiter: Ticket): void {
    const key = nodeOfLease(lease) ?? `lock:${name}`
    const root = this.found.get(key) ?? { leases: new Map(), waiters: new Map() }
    root.leases.set(name, lease)
    root.waiters.set(waiter.id, waiter)
    this.found.set(key, root)
  }
}

function heldCause(view: View, { leases, waiters }: Root, at_least: boolean): Cause {
  const names = [...leases.keys()].toSorted()
  const lease = leases.get(names[0]!)!
  const first = [...waiters.values()].reduce((a, b) => (b.asked_ms < a.asked_ms ? b : a))
  const agents = new Set([...waiters.values()].map(({ agent }) => agent))
  const longest_ms = view.now - first.asked_ms
  // One that should have been renewed by now is enough.
  const [silent_ms] = [...leases.values()].flatMap((each) => silentFor(view, each) ?? [])
  const isStranger = lease.holder === STRANGER
  const holder = isStranger ? lease.holder : word(lease.holder)
  const longest = lasted(longest_ms)
  const waits = `${many(agents.size, 'agent', 'wait', at_least)}, the longest ${longest}`
  const tasks = names.flatMap((name) => taskOf(busyWith(view, name) ?? name) ?? [])
  const heard = silent_ms === undefined ? '' : `, and was not heard of for ${lasted(silent_ms)}`
  return causeOf({
    id: `held:${nodeOfLease(lease) ?? names[0]!}`,
    kind: silent_ms === undefined ? 'held' : 'holder_silent',
    severity: silent_ms !== undefined || longest_ms >= LONG_MS ? 'warn' : 'info',
    what: `${holder} holds ${listed(names.map(word))}${heard}; ${waits}`,
    why: names
      .slice(0, 3)
      .map((name) => `${word(name)}: ${whoHolds(view, name)}`)
      .join('; '),
    next: `Ask ${holder}, or free it: leasehold lock force-release ${argument(names[0]!)}`,
    since: first.asked_at,
    agents: agents.size,
    at_least,
    about: [
      ...about('agent', isStranger ? [] : [lease.holder]),
      ...about('lock', names.slice(0, 5)),
      ...about('task', tasks.slice(0, 2)),
      ...about('agent', [...agents].slice(0, 5)),
    ],
    actions: names.slice(0, 3).map((name) => freeing(view, name)),
  })
}

function freeing(view: View, name: string): Remedy {
  const id = taskOf(busyWith(view, name) ?? '')
  if (id !== undefined) {
    return { says: `Cancel task ${id}`, operation: 'queue.cancel', input: { id }, admin: false }
  }
  const input = { name, reason: 'others wait for it' }
  return {
    says: `Force-release ${word(name)}`,
    operation: 'lock.force_release',
    input,
    admin: true,
  }
}

/**
 * How long nothing was heard of a holder, where that is more than half of its TTL: holders renew
 * sooner. Undefined for one whose process is known to live.
 */
function silentFor(view: View, lease: Lease): number | undefined {
  if (lease.process && view.process(lease.process) === 'alive') return undefined
  const renewed_ms = lease.expires_ms - lease.ttl_ms
  const seen_ms = view.get('agent', lease.holder)?.last_seen_ms ?? 0
  const heard_ms = Math.max(renewed_ms, lease.acquired_ms, seen_ms)
  const silent_ms = view.now - heard_ms
  return silent_ms > lease.ttl_ms / 2 ? silent_ms : undefined
}
