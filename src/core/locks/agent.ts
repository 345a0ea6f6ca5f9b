import type { Agent, Lease } from '../schema/lock.ts'
import { type Caller, sameProcess } from '../caller.ts'
import { SEEN_MS } from '../bounds.ts'
import { extend } from './lock.ts'
import { standing } from './standing.ts'
import type { View } from '../view.ts'

/** An agent appears at first use. Seen again soon, its row is left alone. */
export function seeAgent(view: View, caller: Caller): void {
  const known = view.get('agent', caller.agent)
  if (known && view.now - known.last_seen_ms < SEEN_MS) return
  const agent: Agent = {
    id: caller.agent,
    kind: known?.kind ?? kindOf(caller.agent),
    host: caller.process?.host ?? known?.host ?? null,
    pid: caller.process?.pid ?? known?.pid ?? null,
    first_seen_at: known?.first_seen_at ?? view.at,
    last_seen_at: view.at,
    last_seen_ms: view.now,
  }
  view.put('agent', agent)
  if (known) return
  view.record('agent.appeared', { agent: agent.id }, { kind: agent.kind })
}

/** `cli:ada@laptop` is of the kind `cli`; an id that says nothing is an `agent`. */
function kindOf(id: string): string {
  const colon = id.indexOf(':')
  return colon > 0 ? id.slice(0, colon) : 'agent'
}

/**
 * Renews every lease of the caller that names its process or none, each by its own TTL. There is
 * no second expiry: a lease that is over stays over.
 */
export function heartbeat(view: View, caller: Caller): Lease[] {
  const renewed: Lease[] = []
  for (const lease of [...view.scan('leases_held_by', caller.agent)]) {
    const ours = lease.process === null || sameProcess(lease.process, caller.process)
    const live = standing(view, lease) === 'live'
    if (ours && live) renewed.push(extend(view, lease, lease.ttl_ms))
  }
  return renewed
}
