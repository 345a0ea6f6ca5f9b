import type { Lease, Ticket } from '../schema/lock.ts'
import { ticketsOf } from '../locks/deadlock.ts'
import { timesOf } from '../locks/lease.ts'
import { lineOf } from '../locks/line.ts'
import { busyLease, holdingLease, nodeOfLease } from '../locks/standing.ts'
import type { View } from '../view.ts'
import { because, type Reason } from './reasons.ts'

/** What keeps a waiter from one of its locks: who holds it, and who comes first in its line. */
interface Block {
  lock: string
  lease: Lease | undefined
  /** Who comes first; where the lock is held, only one that waits for other locks too. */
  before: Ticket | undefined
}

/** The waits for locks as a graph, of which no part is read twice. */
export class Waits {
  private readonly lines = new Map<string, Ticket[]>()
  private readonly holders = new Map<string, Lease | undefined>()
  private readonly roots = new Map<string, Set<Lease>>()

  /** Of very long lines as many are looked at as are asked for. */
  constructor(
    private readonly view: View,
    private readonly lineMax = Infinity,
  ) {}

  /** Who keeps others from a lock: its holder, or the claim that keeps its user busy. */
  holderOf(name: string): Lease | undefined {
    if (!this.holders.has(name)) {
      this.holders.set(name, holdingLease(this.view, name) ?? busyLease(this.view, name))
    }
    return this.holders.get(name)
  }

  /** What the holder of a lease waits for itself. */
  ofHolder(lease: Lease): Ticket[] {
    const node = nodeOfLease(lease)
    return node === null ? [] : [...ticketsOf(this.view, node)].filter(({ cycle }) => !cycle)
  }

  lineOf(name: string): Ticket[] {
    const known = this.lines.get(name)
    if (known) return known
    const line: Ticket[] = []
    this.lines.set(name, line)
    for (const ticket of lineOf(this.view, name)) if (line.push(ticket) >= this.lineMax) break
    return line
  }

  blocks(ticket: Ticket): Block[] {
    return ticket.names.flatMap((lock) => {
      const lease = this.holderOf(lock)
      const line = this.lineOf(lock)
      const at = line.findIndex(({ id }) => id === ticket.id)
      const ahead = at < 0 ? line : line.slice(0, at)
      // All others in front wait for nobody whom this one does not wait for as well.
      const before =
        ahead.findLast(({ names }) => names.length > 1) ?? (lease ? undefined : ahead[0])
      return lease || before ? [{ lock, lease, before }] : []
    })
  }

  /** Why a waiter does not have `name` yet, or what it waits for first. */
  reasonOf(ticket: Ticket, asked?: string): Reason {
    const blocks = this.blocks(ticket)
    const name = asked ?? (blocks.find(({ lease }) => lease) ?? blocks[0])?.lock ?? ticket.names[0]!
    const block = blocks.find(({ lock }) => lock === name)
    const line = this.lineOf(name)
    const { lease, before } = block ?? {}
    return because('waiting', {
      name,
      ticket: ticket.id,
      position: line.findIndex(({ id }) => id === ticket.id) + 1,
      waiters: line.length,
      holder: lease?.holder ?? null,
      until: lease ? timesOf(this.view, lease).expires_at : '',
      first: before && { agent: before.agent, ticket: before.id },
      also: ticket.names.filter((each) => each !== name),
    })
  }

  /** The leases at the ends of all chains from a waiter: their holders wait for nobody. */
  rootsOf(ticket: Ticket): Set<Lease> {
    const known = this.roots.get(ticket.id)
    if (known) return known
    const found = new Set<Lease>()
    this.roots.set(ticket.id, found)
    for (const { lease, before } of this.blocks(ticket)) {
      const passed = new Set<Lease>()
      for (const next of lease ? this.ofHolder(lease) : []) {
        for (const end of this.rootsOf(next)) passed.add(end)
      }
      if (lease && passed.size === 0) found.add(lease)
      if (before) for (const end of this.rootsOf(before)) passed.add(end)
      for (const end of passed) found.add(end)
    }
    return found
  }
}

/**
 * How long nothing was heard of a holder, where that is more than half of its TTL: holders renew
 * sooner. Undefined for one whose process is known to live.
 */
export function silentFor(view: View, lease: Lease): number | undefined {
  if (lease.process && view.process(lease.process) === 'alive') return undefined
  const renewed_ms = lease.expires_ms - lease.ttl_ms
  const seen_ms = view.get('agent', lease.holder)?.last_seen_ms ?? 0
  const silent_ms = view.now - Math.max(renewed_ms, lease.acquired_ms, seen_ms)
  return silent_ms > lease.ttl_ms / 2 ? silent_ms : undefined
}
