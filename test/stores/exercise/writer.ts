import { describe, expect, test } from 'vitest'
import { Refusal } from '../../../src/core/refusal.ts'
import { putTask } from '../../../src/core/tasks/ready.ts'
import { chainFault, GENESIS } from '../../../src/stores/writer/chain.ts'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin, Scene } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

async function expectWholeChain({ store }: Scene): Promise<void> {
  const events = await store.events(0, 100_000)
  const end = events.at(-1) ?? { position: 0, hash: GENESIS }
  expect(chainFault(events, { position: 0, hash: GENESIS }, end)).toBeUndefined()
}

/** The writer: many asks in one commit, each decided on its own. */
export function exerciseWriter(begin: Begin): void {
  describe('the writer', () => {
    test('decides asks one after the other, in the order they came', async () => {
      const scene = begin()
      const { verbs } = scene
      const order: number[] = []
      await verbs.add('x', ada, { id: 'counter', metadata: { n: 0 } })
      const counted = Array.from({ length: 300 }, (_, i) => {
        return verbs.store.write((view) => {
          const task = view.get('task', 'counter')!
          order.push(i)
          const n = (task.metadata['n'] as number) + 1
          putTask(view, task, { ...task, metadata: { n } })
          return n
        })
      })
      const seen = await Promise.all(counted)
      expect(seen).toEqual(Array.from({ length: 300 }, (_, i) => i + 1))
      expect([...new Set(order)]).toEqual(Array.from({ length: 300 }, (_, i) => i))
      expect(await verbs.task('counter')).toMatchObject({ metadata: { n: 300 } })
    })

    test('lets a refused ask leave nothing, and those around it everything', async () => {
      const scene = begin()
      const { verbs } = scene
      const asks = Array.from({ length: 60 }, (_, i) => {
        return verbs.takeAll([`own-${i}`, `shared-${i % 10}`], callerOf(`agent-${i}`))
      })
      const settled = await Promise.allSettled(asks)
      expect(settled.filter((one) => one.status === 'fulfilled')).toHaveLength(10)
      const held = await verbs.store.read((view) => [...view.scan('leases_by_expiry', '')])
      expect(held).toHaveLength(20)
      await expectWholeChain(scene)
    })

    test('lets an ask that fails unexpectedly harm nobody but itself', async () => {
      const { verbs, store } = begin()
      const before = verbs.take('a', ada)
      const broken = store.write((view) => {
        view.put('lease', { ...view.get('lease', 'a')!, name: 'half' })
        throw new Error('a bug in a rule')
      })
      const after = verbs.take('b', bob)
      await expect(broken).rejects.toThrow('a bug in a rule')
      expect(await before).toMatchObject({ holder: 'ada' })
      expect(await after).toMatchObject({ holder: 'bob' })
      expect(await verbs.lease('half')).toBeUndefined()
    })

    test('answers an ask that came while the last batch was being answered', async () => {
      const { verbs } = begin()
      for (let i = 0; i < 20; i += 1) {
        await verbs.take(`a${i}`, ada).then(() => verbs.release(`a${i}`, ada))
      }
      expect(await verbs.eventTypes()).toHaveLength(40)
    })

    test('finishes what was asked before it closes', async () => {
      const { verbs, store, beside } = begin()
      const asked = verbs.take('a', ada)
      await store.close()
      await asked
      expect(await beside().lease('a')).toMatchObject({ holder: 'ada' })
    })

    test('sees at once what another writer on the same place has committed', async () => {
      const { verbs, beside } = begin()
      const other = beside()
      await verbs.take('a', ada)
      await expectRefusal(other.take('a', bob), 'held')
      await verbs.release('a', ada)
      await other.take('a', bob)
      await expectRefusal(verbs.take('a', ada), 'held')
      await verbs.add('x', ada, { id: 't' })
      expect(await other.next(bob)).toMatchObject({ task: { id: 't' } })
      expect(await verbs.next(ada)).toBeUndefined()
    })

    test('drops what a read wrote to its view', async () => {
      const { verbs, store } = begin()
      const lease = await verbs.take('a', ada)
      await store.read((view) => view.put('lease', { ...lease, holder: 'nobody' }))
      expect(await verbs.lease('a')).toMatchObject({ holder: 'ada' })
    })

    test('reads an empty store as empty', async () => {
      const { verbs, store } = begin()
      expect(await verbs.lease('a')).toBeUndefined()
      expect(await verbs.ready()).toEqual([])
      expect(await store.events(0, 10)).toEqual([])
    })
  })

  describe('events', () => {
    test('are numbered without a gap and chained, whatever happened', async () => {
      const scene = begin()
      const { verbs, machine, beside } = scene
      const other = beside()
      for (let i = 0; i < 10; i += 1) {
        const writer = i % 2 ? verbs : other
        await writer.add('x', ada)
        await Promise.allSettled([
          writer.next(ada, {}, { ttl_ms: 1_000 }),
          writer.take('a', bob, { ttl_ms: 1_500 }),
          writer.take('a', ada),
          writer.release('a', ada, 1),
        ])
        machine.advance(700)
      }
      machine.reboot(5_000)
      await verbs.sweep()
      const positions = (await scene.store.events(0, 1_000)).map((event) => event.position)
      expect(positions.length).toBeGreaterThan(30)
      expect(positions).toEqual(positions.map((_, i) => i + 1))
      await expectWholeChain(scene)
    })

    test('can be read on from any position', async () => {
      const { verbs, store } = begin()
      for (const name of ['a', 'b', 'c', 'd']) await verbs.take(name, ada)
      const locks = (await store.events(1, 2)).map((event) => event.lock)
      expect(locks).toEqual(['b', 'c'])
    })

    test('that are sought are among those found, by type and by names in any field', async () => {
      const { verbs, store } = begin()
      const [odd, other] = ['an "odd" name/größer', 'other']
      for (const name of [odd, other]) await verbs.take(name, ada)
      await verbs.release(odd, ada)
      await verbs.wait(other, bob, 't1')
      const locks = async (...sought: string[][]) => {
        const found = await store.events(0, 100, sought)
        const isSought = ({ lock }: { lock: string | null }) => lock === odd
        return found.filter(isSought).map(({ type }) => type)
      }
      const named = [`"${odd}"`, JSON.stringify(odd)]
      expect(await locks(named)).toEqual(['lease.granted', 'lease.released'])
      expect(await locks(named, ['"lease.released"'])).toContain('lease.released')
      const waiting = await store.events(0, 100, [['"ticket.'], [JSON.stringify(other)]])
      expect(waiting.map(({ type }) => type)).toContain('ticket.joined')
      const [first] = await store.events(1, 1, [['"lease.']])
      expect(first?.position).toBe(2)
    })

    test('are told to listeners after the commit, in the order they happened', async () => {
      const { verbs, store } = begin()
      const heard: number[] = []
      const stop = store.onCommit((events) => heard.push(...events.map((e) => e.position)))
      await Promise.all(['a', 'b', 'c'].map((name) => verbs.take(name, ada)))
      stop()
      await verbs.take('d', ada)
      expect(heard).toEqual([1, 2, 3])
    })

    test('come from refusals only where a stale fence was fended off', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await expect(verbs.take('a', bob)).rejects.toBeInstanceOf(Refusal)
      expect(await verbs.eventTypes()).toEqual(['lease.granted'])
    })
  })
}
