import { heartbeat } from '../core/locks/agent.ts'
import { showLease } from '../core/locks/lease.ts'
import { liveLease } from '../core/locks/standing.ts'
import * as answers from './answers/locks.ts'
import * as f from './fields.ts'
import { readOperation, writeOperation } from './operation.ts'
import { pageIn } from './page.ts'

export const listAgents = readOperation({
  name: 'agent.list',
  refuses: ['invalid'],
  doc: 'All agents that were seen here, with what they hold now.',
  input: { ...f.page },
  output: answers.agents,
  command: 'agent list',
  decide: (view, page) =>
    pageIn(view, ['agents', ''], page, (agent) => {
      const { last_seen_ms: _, ...shown } = agent
      const holds = [...view.scan('leases_held_by', agent.id)].map((lease) => lease.name)
      return { ...shown, holds }
    }),
})

export const beat = writeOperation({
  name: 'agent.heartbeat',
  touches: 'own',
  doc: 'Renew all leases of an agent at once, each by its own TTL.',
  tool: 'heartbeat',
  input: {},
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
