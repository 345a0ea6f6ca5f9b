import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

/** R3: whose clock counts. */
export function exerciseClocks(begin: Begin): void {
  describe('the clock on the wall', () => {
    test('may jump ahead without ending any lease', async () => {
      const { verbs, machine } = begin()
      const { fence } = await verbs.take('a', ada, { ttl_ms: 10_000 })
      machine.jumpWall(365 * 24 * 3600_000)
      machine.advance(9_999)
      await expectRefusal(verbs.take('a', bob), 'held')
      await verbs.renew('a', ada, fence)
    })

    test('may jump back without prolonging any lease', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 10_000 })
      machine.jumpWall(-365 * 24 * 3600_000)
      machine.advance(10_000)
      expect(await verbs.take('a', bob)).toMatchObject({ holder: 'bob' })
    })

    test('is what people are shown, whatever the store counts by', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 10_000 })
      machine.jumpWall(3600_000)
      const no = await expectRefusal(verbs.take('a', bob), 'held')
      expect(no.details).toMatchObject({
        expires_at: new Date(machine.wallMs() + 10_000).toISOString(),
        expires_in_seconds: 10,
      })
    })
  })

  describe('a machine that is put back to a snapshot', () => {
    test('goes on counting from the newest commit', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 10_000 })
      machine.advance(4_000)
      await verbs.take('b', ada, { ttl_ms: 10_000 })
      machine.rewind(3600_000)
      await verbs.take('c', ada)
      machine.advance(5_999)
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(1)
      await verbs.take('a', bob)
      machine.advance(4_000)
      await verbs.take('b', bob)
    })
  })

  describe('a new boot', () => {
    test('gives every lease that had not expired one full TTL', async () => {
      const { verbs, machine } = begin()
      await verbs.take('short', ada, { ttl_ms: 5_000 })
      await verbs.take('long', ada, { ttl_ms: 60_000 })
      machine.advance(59_000)
      await verbs.sweep()
      machine.reboot(3600_000)
      await verbs.sweep()
      machine.advance(59_999)
      await verbs.take('short', bob)
      await expectRefusal(verbs.take('long', bob), 'held')
      machine.advance(1)
      await verbs.take('long', bob)
    })

    test('does not make anybody early when the wall clock was set back meanwhile', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 10_000 })
      machine.reboot(-3600_000)
      await verbs.sweep()
      machine.advance(9_999)
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(1)
      await verbs.take('a', bob)
    })

    test('shows in reads before anything was written, and opening changes nothing', async () => {
      const { verbs, machine, beside } = begin()
      await verbs.take('a', ada, { ttl_ms: 10_000 })
      machine.advance(9_000)
      machine.reboot(3600_000)
      const other = beside()
      expect(await other.lease('a')).toMatchObject({ ended_at: null })
      expect(await other.eventTypes()).toEqual(['lease.granted'])
    })

    test('does not let processes of the boot before look dead', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', callerOf('ada', { process: machine.spawn() }), { ttl_ms: 10_000 })
      machine.reboot()
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(10_000)
      await verbs.take('a', bob)
    })

    test('goes on with fences and events where the boot before stopped', async () => {
      const { verbs, machine, store } = begin()
      const before = await verbs.take('a', ada)
      machine.reboot(1_000)
      const after = await verbs.take('b', ada)
      expect(after.fence).toBeGreaterThan(before.fence)
      const events = await store.events(0, 10)
      // In between, the boot is told of: it gave the first one its time back.
      expect(events.map(({ position, type }) => `${position} ${type}`)).toEqual([
        '1 lease.granted',
        '2 lease.extended',
        '3 lease.granted',
      ])
    })
  })
}
