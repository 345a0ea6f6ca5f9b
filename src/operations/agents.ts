import { heartbeat } from '../core/locks/agent.ts'
import { showLease } from '../core/locks/lease.ts'
import { liveLease } from '../core/locks/standing.ts'
import * as answers from './answers/locks.ts'
import * as f from './fields.ts'
import { operation } from './operation.ts'
import { cursorIn, pageOf } from './page.ts'

export const listAgents = operation({
  name: 'agent.list',
  effect: 'read',
  role: 'viewer',
  touches: 'rows',
  refuses: ['invalid'],
  doc: 'All agents that were seen here, with what they hold now.',
  input: { limit: f.limit, after: f.after },
  output: answers.agents,
  command: 'agent list',
  decide: (view, { limit, after }) =>
    pageOf(view.scan('agents', '', cursorIn(after)), 'agents', limit, (agent) => {
      const { last_seen_ms: _, ...shown } = agent
      const holds = [...view.scan('leases_held_by', agent.id)].map((lease) => lease.name)
      return { ...shown, holds }
    }),
})

export const beat = operation({
  name: 'agent.heartbeat',
  effect: 'write',
  role: 'agent',
  touches: 'own',
  refuses: [],
  doc: 'Renew all leases of an agent at once, each by its own TTL.',
  tool: 'heartbeat',
  input: { request_id: f.requestId },
  output: answers.leases,
  command: 'agent heartbeat',
  decide: (view, _, caller) => {
    const items = heartbeat(view, caller).map((lease) => showLease(view, lease))
    return { items, next: null }
  },
  // It names what was renewed, and of that only what still lives, as it is now.
  replay: (view, reply) => {
    const items = reply.items.flatMap(({ name, fence }) => {
      const lease = liveLease(view, name)
      return lease?.fence === fence ? [showLease(view, lease)] : []
    })
    return { items, next: null }
  },
})
