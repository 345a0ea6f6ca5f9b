import { describe, expect, test } from 'vitest'
import { SEEN_MS } from '../../../src/core/bounds.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

/** R18: agents, their heartbeats, and how they are lost. */
export function exerciseAgents(begin: Begin): void {
  describe('an agent', () => {
    test('appears at first use, with its kind and process, and is recorded once', async () => {
      const { verbs, machine, store } = begin()
      const process = machine.spawn()
      const caller = callerOf('claude:web', { process })
      await verbs.heartbeat(caller)
      machine.advance(SEEN_MS)
      await verbs.heartbeat(caller)
      const agent = await store.read((view) => view.get('agent', 'claude:web'))
      expect(agent).toMatchObject({ kind: 'claude', host: 'sim', pid: process.pid })
      expect(Date.parse(agent!.last_seen_at) - Date.parse(agent!.first_seen_at)).toBe(SEEN_MS)
      expect(await verbs.eventTypes()).toEqual(['agent.appeared'])
    })

    test('is lost when its last lease expired', async () => {
      const { verbs, machine, store } = begin()
      await verbs.take('a', ada, { ttl_ms: 1_000 })
      await verbs.take('b', ada, { ttl_ms: 2_000 })
      machine.advance(1_000)
      await verbs.sweep()
      expect(await verbs.eventTypes(2)).toEqual(['lease.expired'])
      machine.advance(1_000)
      await verbs.sweep()
      const [, lost] = await store.events(3, 9)
      expect(lost).toMatchObject({ type: 'agent.lost', agent: 'ada', data: { lock: 'b' } })
    })

    test('is not lost when it released what it held', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 1_000 })
      await verbs.release('a', ada)
      machine.advance(1_000)
      await verbs.sweep()
      expect(await verbs.eventTypes()).not.toContain('agent.lost')
    })
  })

  describe('a heartbeat', () => {
    test('renews each of the leases of its agent by its own TTL', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 5_000 })
      await verbs.take('b', ada, { ttl_ms: 9_000 })
      await verbs.take('c', bob, { ttl_ms: 5_000 })
      machine.advance(4_000)
      const renewed = await verbs.heartbeat(ada)
      expect(renewed.map((lease) => lease.name)).toEqual(['a', 'b'])
      machine.advance(4_999)
      await expectRefusal(verbs.take('a', bob), 'held')
      await verbs.take('c', ada)
      machine.advance(1)
      await verbs.take('a', bob)
      await expectRefusal(verbs.take('b', bob), 'held')
    })

    test('leaves alone what names another process of the same agent', async () => {
      const { verbs, machine } = begin()
      const mine = callerOf('ada', { process: machine.spawn() })
      const other = callerOf('ada', { process: machine.spawn() })
      await verbs.take('a', mine)
      await verbs.take('b', other)
      await verbs.take('c', ada)
      const names = async (caller = mine) => (await verbs.heartbeat(caller)).map((l) => l.name)
      expect(await names(mine)).toEqual(['a', 'c'])
      expect(await names(ada)).toEqual(['c'])
    })

    test('revives nothing, and is not inherited by a new claim', async () => {
      const { verbs, machine } = begin()
      await verbs.add('x', ada, { id: 't' })
      await verbs.claim('t', ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      expect(await verbs.heartbeat(ada)).toEqual([])
      await verbs.claim('t', bob, { ttl_ms: 1_000 })
      expect(await verbs.heartbeat(ada)).toEqual([])
      machine.advance(1_000)
      expect(await verbs.task('t')).toMatchObject({ status: 'todo' })
    })
  })
}
