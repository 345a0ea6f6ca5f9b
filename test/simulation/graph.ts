import type { Ticket } from '../../src/core/schema/lock.ts'
import type { ProcessRef } from '../../src/core/rows.ts'
import type { Base } from '../../src/stores/port.ts'
import type { MachineSim } from '../support/machine_sim.ts'

const CALL_MS = 2_000
const TICKET_MS = 10_000

/**
 * A ring of waiters that nobody will ever break, if there is one. Worked out over all tickets at
 * once, unlike the rules, which look only from where an edge appears.
 */
export function standingCycle(
  all: Ticket[],
  base: Base,
  now: number,
  machine: MachineSim,
): string[] | undefined {
  const tickets = all.filter((ticket) => isThere(ticket, now, machine))
  const blockers = new Map(tickets.map((ticket) => [ticket.id, blockersOf(ticket)]))

  function blockersOf(ticket: Ticket): Ticket[] {
    return ticket.names.flatMap((name) => {
      const node = holderOf(name)
      const ahead = tickets.filter((other) => other.names.includes(name) && isAhead(other, ticket))
      const held = tickets.filter((other) => {
        return node !== null && (other.node === node || other.under_node === node)
      })
      return [...held, ...ahead]
    })
  }

  function holderOf(name: string): string | null {
    const lease = base.get('lease', name)
    if (!lease || lease.ended_at !== null || now >= lease.expires_ms) return null
    if (lease.process && machine.process(lease.process) === 'dead') return null
    if (lease.process) return nodeOf(lease.process)
    return lease.holder_given ? `agent:${lease.holder}` : null
  }

  const done = new Set<string>()
  function walk(ticket: Ticket, path: string[]): string[] | undefined {
    if (path.includes(ticket.id)) return [...path, ticket.id]
    if (done.has(ticket.id)) return undefined
    for (const next of blockers.get(ticket.id) ?? []) {
      const cycle = walk(next, [...path, ticket.id])
      if (cycle) return cycle
    }
    done.add(ticket.id)
    return undefined
  }

  for (const ticket of tickets) {
    const cycle = walk(ticket, [])
    if (cycle) return cycle
  }
  return undefined
}

function isThere(ticket: Ticket, now: number, machine: MachineSim): boolean {
  if (ticket.cycle || (ticket.called_ms !== null && now > ticket.called_ms + CALL_MS)) return false
  const fact = ticket.process ? machine.process(ticket.process) : 'unknown'
  return fact === 'alive' || (fact === 'unknown' && now <= ticket.seen_ms + TICKET_MS)
}

function isAhead(a: Ticket, b: Ticket): boolean {
  return a.rank < b.rank || (a.rank === b.rank && a.id < b.id)
}

function nodeOf({ seat, pid, start }: ProcessRef): string {
  return `process:${seat}/${pid}/${start}`
}
