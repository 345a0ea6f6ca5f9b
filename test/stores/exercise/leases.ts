import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal, type Verbs } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

/** R2, R3, R4: fences, expiry, renewal and release. */
export function exerciseLeases(begin: Begin): void {
  describe('a fence', () => {
    test('rises with every grant and is never used again', async () => {
      const { verbs, machine } = begin()
      const fences: number[] = []
      const take = async (name: string) => {
        const { fence } = await verbs.take(name, ada, { ttl_ms: 1_000 })
        fences.push(fence)
        return fence
      }
      await take('a')
      await verbs.release('a', ada, await take('b').then(() => fences[0]))
      await take('a')
      machine.advance(5_000)
      await take('a')
      await verbs.forceRelease('a', callerOf('root', { admin: true }))
      await take('a')
      await take('b')
      expect(fences).toEqual(fences.toSorted((a, b) => a - b))
      expect(new Set(fences).size).toBe(fences.length)
      expect(fences.every(Number.isSafeInteger)).toBe(true)
    })

    test('that is older than the latest is refused as stale for every write', async () => {
      const { verbs, machine } = begin()
      await verbs.add('work', ada, { id: 't' })
      const old = await verbs.take('task:t', ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      const { fence } = await verbs.take('task:t', bob)
      const late = [
        verbs.renew('task:t', ada, old.fence),
        verbs.release('task:t', ada, old.fence),
        verbs.handOff('task:t', ada, 'cyd', old.fence),
        verbs.move('t', 'done', ada, old.fence),
        verbs.edit('t', 1, { title: 'mine' }, ada, old.fence),
        verbs.nameGroup('task:t', old.fence, machine.spawnGroup(), ada),
      ]
      for (const write of late) {
        const no = await expectRefusal(write, 'fence_stale')
        expect(no.details).toMatchObject({ fence: old.fence, current_fence: fence, holder: 'bob' })
      }
      expect(await verbs.lease('task:t')).toMatchObject({ holder: 'bob', fence })
      expect(await verbs.task('t')).toMatchObject({ title: 'work', status: 'todo', version: 1 })
    })

    test('that is stale leaves an event, although the write changed nothing else', async () => {
      const { verbs, store } = begin()
      const { fence } = await verbs.take('git:web', ada)
      await verbs.take('git:web', ada)
      await expectRefusal(verbs.release('git:web', ada, fence), 'fence_stale')
      const [event] = await store.events(2, 1)
      expect(event).toMatchObject({ type: 'write.fenced_off', agent: 'ada', lock: 'git:web' })
      expect(event!.data).toMatchObject({ fence, by: 'ada' })
    })

    test('that was the latest, but expired or was released, is told lease_expired', async () => {
      const { verbs, machine } = begin()
      const a = await verbs.take('a', ada, { ttl_ms: 1_000 })
      const b = await verbs.take('b', ada)
      await verbs.release('b', ada, b.fence)
      machine.advance(1_000)
      for (const lease of [a, b]) {
        const no = await expectRefusal(verbs.renew(lease.name, ada, lease.fence), 'lease_expired')
        expect(no.next).toContain('again')
      }
    })

    test('that was never given is refused, for a held lock and for an unknown one', async () => {
      const { verbs } = begin()
      const { fence } = await verbs.take('a', ada)
      await expectRefusal(verbs.release('a', ada, fence + 1), 'fence_stale')
      await expectRefusal(verbs.release('nothing', ada, fence), 'fence_stale')
    })

    test('does not help an agent that is not the holder', async () => {
      const { verbs } = begin()
      const { fence } = await verbs.take('a', ada)
      await expectRefusal(verbs.release('a', bob, fence), 'held')
    })
  })

  describe('without a fence', () => {
    test('the holder may write while its lease names no process', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await verbs.renew('a', ada)
      await verbs.release('a', ada)
      expect(await verbs.lease('a')).toMatchObject({ reason: 'released' })
    })

    test('only the process that a lease names may write', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      const { fence } = await verbs.take('a', callerOf('ada', { process }))
      await expectRefusal(verbs.renew('a', ada), 'held')
      await expectRefusal(verbs.renew('a', callerOf('ada', { process: machine.spawn() })), 'held')
      await verbs.renew('a', callerOf('ada', { process }))
      await verbs.renew('a', ada, fence)
    })
  })

  describe('renewing', () => {
    test('extends from now, by the old length or a new one', async () => {
      const { verbs, machine } = begin()
      const { fence } = await verbs.take('a', ada, { ttl_ms: 5_000 })
      machine.advance(4_000)
      await verbs.renew('a', ada, fence)
      machine.advance(4_999)
      expect(await verbs.renew('a', ada, fence, 20_000)).toMatchObject({ ttl_ms: 20_000 })
      machine.advance(19_999)
      await expectRefusal(verbs.take('a', bob), 'held')
      machine.advance(1)
      await verbs.take('a', bob)
    })

    test('never revives an expired lease, even when nobody else took the lock', async () => {
      const { verbs, machine } = begin()
      const { fence } = await verbs.take('a', ada, { ttl_ms: 5_000 })
      machine.advance(5_000)
      await expectRefusal(verbs.renew('a', ada, fence), 'lease_expired')
      await expectRefusal(verbs.renew('a', ada), 'lease_expired')
      expect((await verbs.take('a', ada)).fence).toBeGreaterThan(fence)
    })

    test('leaves no event and no new version', async () => {
      const { verbs } = begin()
      await verbs.add('work', ada, { id: 't' })
      const { lease, task } = await verbs.claim('t', ada)
      const before = await verbs.eventTypes()
      await verbs.renew('task:t', ada, lease.fence)
      expect(await verbs.eventTypes()).toEqual(before)
      expect(await verbs.task('t')).toMatchObject({ version: task.version })
    })
  })

  describe('releasing', () => {
    test('what you do not hold is refused: never held, released before, or expired', async () => {
      const { verbs, machine } = begin()
      await expectRefusal(verbs.release('never', ada), 'lease_expired')
      await verbs.take('a', ada)
      await verbs.release('a', ada)
      await expectRefusal(verbs.release('a', ada), 'lease_expired')
      await verbs.take('b', ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      await expectRefusal(verbs.release('b', ada), 'lease_expired')
    })

    test('what another holds is refused', async () => {
      const { verbs } = begin()
      await verbs.take('a', ada)
      await expectRefusal(verbs.release('a', bob), 'held')
      expect(await verbs.lease('a')).toMatchObject({ holder: 'ada', ended_at: null })
    })
  })

  describe('an expired lease', () => {
    test('reads as ended before anything was written', async () => {
      const { verbs, machine, store } = begin()
      await verbs.take('a', ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      expect(await verbs.lease('a')).toMatchObject({ reason: 'expired' })
      const held = await store.read((view) => [...view.scan('leases_by_expiry', '')])
      expect(held).toEqual([])
      expect(await verbs.eventTypes()).toEqual(['lease.granted'])
    })

    test('is cleared away by the next write, whatever that is about', async () => {
      const { verbs, machine } = begin()
      await verbs.take('a', ada, { ttl_ms: 1_000 })
      await verbs.take('b', ada, { ttl_ms: 9_000 })
      machine.advance(1_000)
      await verbs.take('c', bob)
      expect(await verbs.eventTypes(2)).toEqual(['lease.expired', 'lease.granted'])
    })

    test('is cleared by a writer that knew of later ones only, whoever granted it', async () => {
      const { verbs, machine, beside } = begin()
      await verbs.take('late', ada, { ttl_ms: 60_000 })
      const other = beside()
      for (const [name, who] of [
        ['own', verbs],
        ['theirs', other],
      ] as const) {
        await verbs.sweep()
        await who.take(name, bob, { ttl_ms: 1_000 })
        machine.advance(999)
        await verbs.sweep()
        expect(await expiredIn(verbs), `${name} too early`).not.toContain(name)
        machine.advance(1)
        await verbs.sweep()
        expect(await expiredIn(verbs)).toContain(name)
      }
    })

    test('is one of at most a hundred that one write clears', async () => {
      const { verbs, machine } = begin()
      const names = Array.from({ length: 130 }, (_, i) => `lock-${i}`)
      await verbs.takeAll(names, ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      await verbs.sweep()
      const expired = async () => {
        return (await verbs.eventTypes()).filter((type) => type === 'lease.expired').length
      }
      expect(await expired()).toBe(100)
      await verbs.sweep()
      expect(await expired()).toBe(130)
    })
  })
}

async function expiredIn({ store }: Verbs): Promise<(string | null)[]> {
  const events = await store.events(0, 100)
  return events.filter(({ type }) => type === 'lease.expired').map(({ lock }) => lock)
}
