import { describe, expect, test } from 'vitest'
import type { Placed } from '../../support/verbs.ts'
import type { ProcessRef } from '../../../src/core/rows.ts'
import { callerOf, expectRefusal, type Verbs } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const cyd = callerOf('cyd')
const dan = callerOf('dan')

async function positionsOf(verbs: Verbs, ...tickets: string[]): Promise<number[]> {
  return Promise.all(tickets.map(async (ticket) => (await verbs.turn(ticket)).position))
}

async function leftovers(verbs: Verbs, ...names: string[]): Promise<unknown[]> {
  return verbs.store.read((view) => {
    const found: unknown[] = [...view.scan('tickets', '')]
    for (const name of names) found.push(...view.scan('line_of', name))
    return found
  })
}

/** R5: the line in front of a lock. */
export function exerciseLines(begin: Begin): void {
  describe('waiting for a lock', () => {
    test('takes a free lock at once, without a place in line', async () => {
      const { verbs } = begin()
      expect(await verbs.wait('a', ada, 'T1')).toMatchObject([{ holder: 'ada' }])
      expect(await leftovers(verbs, 'a')).toEqual([])
    })

    test('keeps the order of arrival', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      for (const [caller, ticket] of [
        [bob, 'T9'],
        [cyd, 'T1'],
        [dan, 'T5'],
      ] as const) {
        machine.advance(1)
        await verbs.wait('a', caller, ticket)
      }
      expect(await positionsOf(verbs, 'T9', 'T1', 'T5')).toEqual([1, 2, 3])
      await verbs.release('a', ada)
      await verbs.wait('a', bob, 'T9')
      expect(await positionsOf(verbs, 'T1', 'T5')).toEqual([1, 2])
    })

    test('keeps the order of arrival also among those who ask at the same instant', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await Promise.all([
        verbs.wait('a', bob, 'T9'),
        verbs.wait('a', cyd, 'T1'),
        verbs.wait('a', dan, 'T5', { priority: 1 }),
      ])
      machine.advance(1)
      await verbs.wait('a', callerOf('eve'), 'T0')
      expect(await positionsOf(verbs, 'T5', 'T9', 'T1', 'T0')).toEqual([1, 2, 3, 4])
    })

    test('lets a step of priority outweigh ten seconds of waiting, and no more', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'early')
      machine.advance(9_000)
      await verbs.wait('a', cyd, 'urgent', { priority: 1 })
      expect(await positionsOf(verbs, 'urgent', 'early')).toEqual([1, 2])
      await verbs.wait('a', bob, 'early')
      machine.advance(2_000)
      await verbs.wait('a', dan, 'late', { priority: 1 })
      expect(await positionsOf(verbs, 'urgent', 'early', 'late')).toEqual([1, 2, 3])
    })

    test('calls the head, and only the head, when the lock is released', async () => {
      const { verbs, machine, store } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('a', cyd, 'T2')
      await verbs.release('a', ada)
      const called = (await store.events(0, 99)).filter((event) => event.type === 'ticket.called')
      expect(called.map((event) => event.data['ticket'])).toEqual(['T1'])
      expect(await verbs.turn('T1')).toMatchObject({ ask: true, position: 1 })
      expect(await verbs.turn('T2')).toMatchObject({ ask: false, position: 2 })
      expect(await verbs.wait('a', cyd, 'T2')).toMatchObject({ position: 2 })
      expect(await verbs.wait('a', bob, 'T1')).toMatchObject([{ holder: 'bob' }])
    })

    test('keeps a free lock for its head against those who did not wait', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      await verbs.release('a', ada)
      const no = await expectRefusal(verbs.take('a', cyd), 'held')
      expect(no.details).toMatchObject({ holder: null, next_holder: 'bob', waiters: 1 })
      await expectRefusal(verbs.take('a', ada), 'held')
    })

    test('calls the head when a lease expires, and when its holder dies', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.take('a', callerOf('ada', { process }))
      await verbs.take('b', ada, { ttl_ms: 3_000 })
      await verbs.wait('a', bob, 'TA')
      await verbs.wait('b', bob, 'TB')
      machine.kill(process)
      machine.advance(3_000)
      await verbs.sweep()
      expect((await verbs.turn('TA')).ask).toBe(true)
      expect((await verbs.turn('TB')).ask).toBe(true)
    })

    test('passes to the next when the head does not come within two seconds', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('a', cyd, 'T2')
      await verbs.release('a', ada)
      machine.advance(2_000)
      expect((await verbs.turn('T2')).ask).toBe(false)
      machine.advance(1)
      expect((await verbs.turn('T2')).ask).toBe(true)
      expect(await verbs.wait('a', cyd, 'T2')).toMatchObject([{ holder: 'cyd' }])
    })

    test('sends a head that came too late to the end of the line, never out of it', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('a', cyd, 'T2')
      await verbs.release('a', ada)
      // The writer has just looked at all waiters, and will not look again within a second.
      machine.advance(1_500)
      await verbs.sweep()
      machine.advance(501)
      expect(await verbs.wait('a', bob, 'T1')).toMatchObject({ waiting: 'T1', position: 2 })
      await verbs.wait('a', cyd, 'T2')
      await verbs.release('a', cyd)
      expect(await verbs.wait('a', bob, 'T1')).toMatchObject([{ holder: 'bob' }])
    })

    test('lets a waiter that is alone take the lock however late it comes', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      await verbs.release('a', ada)
      machine.advance(2_001)
      expect((await verbs.turn('T1')).ask).toBe(true)
      expect(await verbs.wait('a', bob, 'T1')).toMatchObject([{ holder: 'bob' }])
    })

    test('sends a late waiter to ask again, also among a hundred others', async () => {
      const { verbs, machine } = begin()
      await verbs.takeAll(['a', 'crowded'], ada)
      const process = machine.spawn()
      const crowd = Array.from({ length: 100 }, (_, i) => {
        return verbs.wait('crowded', callerOf(`agent-${i}`, { process }), `C${i}`)
      })
      await Promise.all(crowd)
      machine.advance(1)
      await verbs.wait('a', bob, 'T1')
      await verbs.release('a', ada)
      machine.advance(2_001)
      expect(await verbs.turn('T1')).toMatchObject({ position: 0, ask: true })
    })

    test('keeps the place of a head that was called and then overtaken', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      await verbs.release('a', ada)
      const urgent = await verbs.wait('a', cyd, 'T2', { priority: 9 })
      expect(urgent).toMatchObject({ position: 1 })
      await verbs.wait('a', cyd, 'T2', { priority: 9 })
      machine.advance(1)
      await verbs.wait('a', dan, 'T3')
      machine.advance(5_000)
      expect(await positionsOf(verbs, 'T1', 'T3')).toEqual([1, 2])
    })

    test('ends with held and the position when the waiter gives up', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('a', cyd, 'T2')
      const no = await verbs.giveUp('T2', cyd)
      expect(no).toMatchObject({ code: 'held', details: { holder: 'ada', position: 2 } })
      expect(await positionsOf(verbs, 'T1')).toEqual([1])
      await verbs.giveUp('T1', bob)
      expect(await leftovers(verbs, 'a')).toEqual([])
    })

    test('calls the next when the head gives up a free lock', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('a', cyd, 'T2')
      await verbs.release('a', ada)
      await verbs.giveUp('T1', bob)
      expect((await verbs.turn('T2')).ask).toBe(true)
    })

    test('skips waiters whose process died', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.take('a', ada)
      await verbs.wait('a', callerOf('bob', { process }), 'T1')
      machine.advance(1)
      await verbs.wait('a', cyd, 'T2')
      machine.kill(process)
      await verbs.release('a', ada)
      expect((await verbs.turn('T2')).ask).toBe(true)
      await verbs.wait('a', cyd, 'T2')
      expect(await leftovers(verbs, 'a')).toEqual([])
    })

    test('keeps a living process in line, and drops a silent one after ten seconds', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', callerOf('bob', { process: machine.spawn() }), 'T1')
      machine.advance(1)
      await verbs.wait('a', cyd, 'T2')
      machine.advance(1)
      await verbs.wait('a', dan, 'T3')
      machine.advance(9_000)
      await verbs.wait('a', dan, 'T3')
      machine.advance(2_000)
      expect(await positionsOf(verbs, 'T1', 'T2', 'T3')).toEqual([1, 0, 2])
    })

    test('keeps the place of a waiter whose daemon died, while it may come back', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      const through = (daemon: ProcessRef) => callerOf('bob', { waiter: daemon })
      const daemon = machine.spawn()
      await verbs.wait('a', through(daemon), 'T1')
      machine.advance(60_000 - 1)
      await verbs.wait('a', callerOf('cyd', { process: machine.spawn() }), 'T2')
      machine.kill(daemon)
      await verbs.sweep()
      machine.advance(9_000)
      expect(await verbs.wait('a', through(machine.spawn()), 'T1')).toMatchObject([
        { holder: 'bob' },
      ])
      await verbs.release('a', through(daemon))
      expect((await verbs.turn('T2')).ask).toBe(true)
    })

    test('lets go of a waiter whose daemon died and who did not come back', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      const daemon = machine.spawn()
      await verbs.wait('a', callerOf('bob', { waiter: daemon }), 'T1')
      machine.kill(daemon)
      machine.advance(1_001)
      await verbs.sweep()
      expect(await leftovers(verbs, 'a')).toHaveLength(2)
      machine.advance(10_001)
      await verbs.sweep()
      expect(await leftovers(verbs, 'a')).toEqual([])
    })

    test('leaves no tickets behind when everybody went away', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      await verbs.wait(['a', 'b'], cyd, 'T2')
      machine.advance(10_001)
      await verbs.sweep()
      expect(await leftovers(verbs, 'a', 'b')).toEqual([])
    })
  })

  describe('waiting for several locks', () => {
    test('is one ticket, called when it heads every line and every lock is free', async () => {
      const { verbs, machine } = begin()
      const [a] = await verbs.takeAll(['a', 'b'], ada)
      await verbs.wait('b', bob, 'T1')
      machine.advance(1)
      expect(await verbs.wait(['a', 'b'], cyd, 'T2')).toMatchObject({ position: 2 })
      await verbs.release('a', ada, a!.fence)
      expect((await verbs.turn('T2')).ask).toBe(false)
      await verbs.release('b', ada)
      expect((await verbs.turn('T2')).ask).toBe(false)
      await verbs.wait('b', bob, 'T1')
      await verbs.release('b', bob)
      expect((await verbs.turn('T2')).ask).toBe(true)
      const leases = await verbs.wait(['a', 'b'], cyd, 'T2')
      expect(leases).toMatchObject([{ name: 'a' }, { name: 'b' }])
      expect(await leftovers(verbs, 'a', 'b')).toEqual([])
    })

    test('never deadlocks with one who asked for the same in another order', async () => {
      const { verbs, machine } = begin()
      const held = await verbs.takeAll(['a', 'b'], ada)
      await verbs.wait(['a', 'b'], bob, 'T1')
      machine.advance(1)
      const second = (await verbs.wait(['b', 'a'], cyd, 'T2')) as Placed
      expect(second.position).toBe(2)
      for (const lease of held) await verbs.release(lease.name, ada, lease.fence)
      expect(await verbs.wait(['a', 'b'], bob, 'T1')).toHaveLength(2)
    })
  })
}
