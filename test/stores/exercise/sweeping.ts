import { factsOf } from '../../../src/core/event.ts'
import { describe, expect, test } from 'vitest'
import { callerOf, type Verbs } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

/** More than one write clears away. */
const MANY = 130

const ada = callerOf('ada')
const names = (prefix: string) => Array.from({ length: MANY }, (_, i) => `${prefix}${100 + i}`)

const endedIn = async (verbs: Verbs, name: string) =>
  (await verbs.store.events(0, 10_000)).some(
    ({ type, lock }) => lock === name && /^lease\.(?:died|expired)$/.test(type),
  )

/** L1: what is live, or cannot be freed yet, hides nothing that is over. */
export function exerciseSweeping(begin: Begin): void {
  describe('a sweep', () => {
    test('notices a dead holder behind many leases of a living one', async () => {
      const { verbs, machine } = begin()
      const alive = callerOf('ada', { process: machine.spawn() })
      const process = machine.spawn()
      await verbs.takeAll(names('a'), alive)
      await verbs.take('z', callerOf('bob', { process }))
      machine.kill(process)
      machine.advance(1_000)
      await verbs.sweep()
      expect(await endedIn(verbs, 'z')).toBe(true)
    })

    test('comes to every one of many processes within a few writes', async () => {
      const { verbs, machine } = begin()
      const crowd = names('a').flatMap((name) => [name, `${name}+`])
      await Promise.all(
        crowd.map((name) => verbs.take(name, callerOf(name, { process: machine.spawn() }))),
      )
      const process = machine.spawn()
      await verbs.take('z', callerOf('bob', { process }))
      machine.kill(process)
      machine.advance(1_000)
      for (let i = 0; i < 3; i += 1) await verbs.sweep()
      expect(await endedIn(verbs, 'z')).toBe(true)
    })

    test('frees what is overdue behind many commands that cannot be stopped', async () => {
      const { verbs, machine } = begin()
      machine.canStop = false
      for (const name of names('a')) {
        const { fence } = await verbs.take(name, ada, { ttl_ms: 1_000 })
        await verbs.nameGroup(name, fence, machine.spawnGroup(), ada)
      }
      await verbs.take('z', ada, { ttl_ms: 1_001 })
      machine.advance(1_001)
      await verbs.sweep()
      expect(await endedIn(verbs, 'z')).toBe(true)
    })

    test('takes out a dead waiter behind many living ones', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada)
      const process = machine.spawn()
      const wait = (i: number) => verbs.wait('a', callerOf(`w${i}`, { process }), `T${i}`)
      await Promise.all(Array.from({ length: MANY }, (_, i) => wait(i)))
      const dead = machine.spawn()
      await verbs.wait('a', callerOf('bob', { process: dead }), 'last')
      machine.kill(dead)
      machine.advance(1_000)
      await verbs.sweep()
      const left = (await verbs.store.events(0, 10_000)).filter(
        ({ type }) => type === 'ticket.left',
      )
      expect(left.map((event) => factsOf(event).ticket)).toEqual(['last'])
    })

    test('takes out a waiter that fell silent with its whole machine', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 3600_000 })
      const process = { ...machine.spawn(), seat: 'another machine' }
      await verbs.wait('a', callerOf('bob', { process }), 'far')
      machine.advance(80_000)
      await verbs.sweep()
      const left = await verbs.store.read((view) => [...view.scan('tickets', '')])
      expect(left).toEqual([])
    })

    test('asked for by a daemon clears all that is over, however much', async () => {
      const { verbs, machine, store } = begin()
      const crowd = [...names('a'), ...names('b')]
      await verbs.takeAll(crowd, ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      await store.sweep()
      const ended = (await store.events(0, 10_000)).filter(({ type }) => type === 'lease.expired')
      expect(ended).toHaveLength(crowd.length)
    })
  })

  describe('whoever heads a line', () => {
    const callsIn = async (verbs: Verbs) =>
      (await verbs.store.events(0, 10_000))
        .filter(({ type }) => type === 'ticket.called')
        .map((event) => factsOf(event).ticket)

    test('is called when it overtakes the head of a free lock', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await verbs.wait('a', callerOf('bob'), 'T1')
      await verbs.release('a', ada)
      await verbs.wait('a', callerOf('cyd'), 'T2', { priority: 9 })
      expect(await callsIn(verbs)).toEqual(['T1', 'T2'])
    })

    test('is called when the one before it is found to be gone', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.takeAll(['a', 'b'], ada)
      await verbs.wait(['a', 'b'], callerOf('bob', { process }), 'T1')
      machine.advance(1)
      await verbs.wait('b', callerOf('cyd', { process: machine.spawn() }), 'T2')
      await verbs.release('b', ada)
      expect(await callsIn(verbs)).toEqual([])
      machine.kill(process)
      // Not a sweep: whoever comes upon the line of `a` takes the dead one out of both.
      await verbs.release('a', ada)
      expect(await callsIn(verbs)).toEqual(['T2'])
    })
  })
}
