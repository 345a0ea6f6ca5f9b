import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const cyd = callerOf('cyd')

/** R6: nobody waits for ever. */
export function exerciseDeadlocks(begin: Begin): void {
  describe('a deadlock', () => {
    test('of two is refused to the one whose waiting would close it, spelled out', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await verbs.take('b', bob)
      await verbs.wait('b', ada, 'T1')
      const no = await expectRefusal(verbs.wait('a', bob, 'T2'), 'deadlock')
      expect(no.details['cycle']).toEqual([
        'bob waits for a, which ada has',
        'ada waits for b, which bob has',
      ])
      expect((await verbs.turn('T1')).position).toBe(1)
      await verbs.release('b', bob)
      expect(await verbs.wait('b', ada, 'T1')).toMatchObject([{ holder: 'ada' }])
    })

    test('of three is found', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await verbs.take('b', bob)
      await verbs.take('c', cyd)
      await verbs.wait('b', ada, 'T1')
      await verbs.wait('c', bob, 'T2')
      const no = await expectRefusal(verbs.wait('a', cyd, 'T3'), 'deadlock')
      expect(no.details['cycle']).toHaveLength(3)
    })

    test('of an agent with itself is found', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      const holder = callerOf('ada', { process })
      await verbs.take('a', holder)
      await expectRefusal(verbs.wait('a', callerOf('bob', { process }), 'T1'), 'deadlock')
    })

    test('through the waiter before one in line is found', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.take('b', cyd)
      await verbs.wait(['a', 'b'], bob, 'T1')
      machine.advance(1)
      // cyd would wait behind bob, who waits for what cyd holds.
      await expectRefusal(verbs.wait('a', cyd, 'T2'), 'deadlock')
    })

    test('is not seen where there is only a queue', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.take('b', bob)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('b', cyd, 'T2')
      expect((await verbs.turn('T2')).position).toBe(1)
    })

    test('through the lease that a child runs under is found', async () => {
      const { verbs } = begin()
      const { fence } = await verbs.take('a', ada)
      await verbs.take('b', bob)
      const child = callerOf('ada/sub', { under: { lock: 'a', fence } })
      await verbs.wait('b', child, 'T1')
      const no = await expectRefusal(verbs.wait('a', bob, 'T2'), 'deadlock')
      expect(no.details['cycle']).toContain('ada/sub waits for b, which bob has')
    })

    test('is not made of a lease that the child no longer runs under', async () => {
      const { verbs } = begin()
      const old = await verbs.take('a', ada)
      await verbs.take('a', ada)
      await verbs.take('b', bob)
      await verbs.wait('b', callerOf('x', { under: { lock: 'a', fence: old.fence } }), 'T1')
      expect(await verbs.wait('a', bob, 'T2')).toMatchObject({ position: 1 })
    })

    test('between processes of one agent id is found, and others stay out of it', async () => {
      const { verbs, machine } = begin()
      const one = callerOf('ada', { process: machine.spawn() })
      const two = callerOf('ada', { process: machine.spawn() })
      const three = callerOf('ada', { process: machine.spawn() })
      await verbs.take('a', one)
      await verbs.take('b', two)
      await verbs.wait('b', one, 'T1')
      expect(await verbs.wait('a', three, 'T3')).toMatchObject({ position: 1 })
      await expectRefusal(verbs.wait('a', two, 'T2'), 'deadlock')
    })

    test('is not made of defaulted ids: they may be different terminals', async () => {
      const { verbs } = begin()
      const terminal = callerOf('cli:ada@laptop', { given: false })
      await verbs.take('a', terminal)
      await verbs.take('b', bob)
      await verbs.wait('b', terminal, 'T1')
      expect(await verbs.wait('a', bob, 'T2')).toMatchObject({ position: 1 })
    })

    test('closed by a hand-off is broken for the newest waiter', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.take('b', cyd)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('b', ada, 'T2')
      // bob now has b and waits for a; ada has a and waits for b, and came later.
      await verbs.handOff('b', cyd, 'bob')
      expect(await verbs.turn('T2')).toMatchObject({ broken: true })
      await expectRefusal(verbs.wait('b', ada, 'T2'), 'deadlock')
      expect(await verbs.turn('T1')).toMatchObject({ broken: false, position: 1 })
      expect(await verbs.giveUp('T2', ada)).toMatchObject({ code: 'deadlock' })
      expect(await verbs.eventTypes()).toContain('ticket.broken')
    })

    test('closed by a grant is broken for the newest waiter, which leaves the line', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', bob, 'T1')
      await verbs.take('b', cyd)
      machine.advance(1)
      await verbs.wait('b', ada, 'T2')
      await verbs.release('b', cyd)
      machine.advance(2_001)
      // ada let its call lapse, so bob may take b: but then ada is no longer waiting for it.
      await verbs.take('b', bob)
      await expectRefusal(verbs.wait('b', ada, 'T2'), 'deadlock')
      expect((await verbs.turn('T1')).position).toBe(1)
    })

    test('of several rings closed by one grant is broken in every ring', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.take('b', callerOf('eve'))
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait(['b', 'c'], ada, 'T2')
      machine.advance(1)
      await verbs.take('d', ada)
      await verbs.wait('b', callerOf('ada/sub', { under: { lock: 'a', fence: 1 } }), 'T3')
      // Both waiters of ada wait for what bob now has, and bob waits for ada: two rings.
      await verbs.handOff('b', callerOf('eve'), 'bob')
      const turns = await Promise.all(['T1', 'T2', 'T3'].map((ticket) => verbs.turn(ticket)))
      expect(turns.map((turn) => turn.broken)).toEqual([false, true, true])
    })

    test('leaves no ticket behind when the waiter chosen never came back', async () => {
      const { verbs, machine, store } = begin()
      const living = callerOf('ada', { process: machine.spawn() })
      await verbs.take('a', living)
      await verbs.take('b', cyd)
      await verbs.wait('a', bob, 'T1')
      machine.advance(1)
      await verbs.wait('b', living, 'T2')
      await verbs.handOff('b', cyd, 'bob')
      expect(await verbs.turn('T2')).toMatchObject({ broken: true })
      machine.advance(10_001)
      await verbs.sweep()
      expect(await store.read((view) => [...view.scan('tickets', '')])).toEqual([])
    })

    test('is not made of waiters that are gone', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      await verbs.take('b', bob)
      await verbs.wait('b', ada, 'T1')
      // The writer has just looked at all waiters, and will not look again within a second.
      machine.advance(9_500)
      await verbs.sweep()
      machine.advance(501)
      expect(await verbs.wait('a', bob, 'T2')).toMatchObject({ position: 1 })
    })

    test('is not made of holders whose process is dead', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      const dying = callerOf('ada', { process })
      await verbs.take('a', dying)
      await verbs.take('b', bob)
      await verbs.wait('b', dying, 'T1')
      machine.kill(process)
      expect(await verbs.wait('a', bob, 'T2')).toMatchObject([{ holder: 'bob' }])
    })
  })
}
