import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const ADMIN = callerOf('root', { admin: true })

/** R1, R4, R7: who gets a lock, who does not, and what each is told. */
export function exerciseLocks(begin: Begin): void {
  describe('a lock', () => {
    test('is taken when it is free', async () => {
      const { verbs, machine } = begin()
      const lease = await verbs.take('git:web', ada, { ttl_ms: 5_000 })
      expect(lease).toMatchObject({ name: 'git:web', holder: 'ada', ttl_ms: 5_000, ended_at: null })
      expect(lease.acquired_at).toBe(new Date(machine.wallMs()).toISOString())
      expect(await verbs.eventTypes()).toEqual(['lease.granted'])
    })

    test('is refused when another holds it, with who, since when and until when', async () => {
      const { verbs, machine } = begin()
      const shell = machine.spawn()
      const lease = await verbs.take('git:web', ada, { ttl_ms: 10_000, process: shell })
      machine.advance(3_500)
      const no = await expectRefusal(verbs.take('git:web', bob), 'held')
      expect(no.message).toContain('git:web is held by ada')
      expect(no.details).toEqual({
        name: 'git:web',
        holder: 'ada',
        fence: lease.fence,
        since: lease.acquired_at,
        expires_at: new Date(machine.wallMs() + 6_500).toISOString(),
        expires_in_seconds: 7,
        pid: shell.pid,
        host: 'sim',
        by_you: false,
      })
    })

    test('goes to exactly one of many who ask at once, through any writer', async () => {
      const { verbs, beside } = begin()
      const writers = [verbs, beside(), beside()]
      const asked = Array.from({ length: 60 }, (_, i) => {
        return writers[i % 3]!.take('deploy', callerOf(`agent-${i}`))
      })
      const settled = await Promise.allSettled(asked)
      const granted = settled.filter((outcome) => outcome.status === 'fulfilled')
      const refused = settled.filter((outcome) => outcome.status === 'rejected')
      expect(granted).toHaveLength(1)
      const told = new Set(refused.map((outcome) => outcome.reason.details.holder))
      expect([...told]).toEqual([granted[0]!.value.holder])
    })

    test('is independent of every other lock', async () => {
      const { verbs } = begin()
      await verbs.take('user:alice', ada)
      expect(await verbs.take('user:bob', bob)).toMatchObject({ holder: 'bob' })
    })

    test('can be taken again after it was released', async () => {
      const { verbs } = begin()
      const lease = await verbs.take('git:web', ada)
      await verbs.release('git:web', ada, lease.fence)
      expect(await verbs.take('git:web', bob)).toMatchObject({ holder: 'bob' })
    })

    test('can be taken over at the moment it expires, and not before', async () => {
      const { verbs, machine } = begin()
      await verbs.take('git:web', ada, { ttl_ms: 5_000 })
      machine.advance(4_999)
      await expectRefusal(verbs.take('git:web', bob), 'held')
      machine.advance(1)
      expect(await verbs.take('git:web', bob)).toMatchObject({ holder: 'bob' })
    })
  })

  describe('several locks in one call', () => {
    test('are all granted, each with a fence of its own', async () => {
      const { verbs } = begin()
      const leases = await verbs.takeAll(['b', 'a', 'b'], ada)
      expect(leases.map((lease) => lease.name)).toEqual(['a', 'b'])
      expect(new Set(leases.map((lease) => lease.fence)).size).toBe(2)
    })

    test('are none of them granted when one is held', async () => {
      const { verbs } = begin()
      await verbs.take('b', bob)
      const no = await expectRefusal(verbs.takeAll(['a', 'b', 'c'], ada), 'held')
      expect(no.details).toMatchObject({ name: 'b', holder: 'bob' })
      expect(await verbs.lease('a')).toBeUndefined()
      expect(await verbs.lease('c')).toBeUndefined()
      expect(await verbs.eventTypes()).toEqual(['lease.granted'])
    })
  })

  describe('the same agent asking again', () => {
    test('gets a new lease with a new fence when no process was named', async () => {
      const { verbs } = begin()
      const first = await verbs.take('git:web', ada)
      const second = await verbs.take('git:web', ada)
      expect(second.fence).toBeGreaterThan(first.fence)
      await expectRefusal(verbs.renew('git:web', ada, first.fence), 'fence_stale')
    })

    test('gets a new lease from the same process', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.take('git:web', callerOf('ada', { process }))
      await verbs.take('git:web', callerOf('ada', { process }))
      expect(await verbs.lease('git:web')).toMatchObject({ ended_at: null, process })
    })

    test('is refused as by_you when another living process holds it', async () => {
      const { verbs, machine } = begin()
      await verbs.take('git:web', callerOf('ada', { process: machine.spawn() }))
      const again = callerOf('ada', { process: machine.spawn() })
      const no = await expectRefusal(verbs.take('git:web', again), 'held')
      expect(no.details['by_you']).toBe(true)
      expect(no.next).toContain('takeover')
      const plain = await expectRefusal(verbs.take('git:web', ada), 'held')
      expect(plain.details['by_you']).toBe(true)
    })

    test('is refused as by_you when the process that holds it cannot be seen', async () => {
      const { verbs, machine } = begin()
      await verbs.take('git:web', callerOf('ada', { process: machine.elsewhere() }))
      const no = await expectRefusal(verbs.take('git:web', ada), 'held')
      expect(no.details['by_you']).toBe(true)
    })

    test('gets the lock at once when the process that held it is dead', async () => {
      const { verbs, machine } = begin()
      const process = machine.spawn()
      await verbs.take('git:web', callerOf('ada', { process }))
      machine.kill(process)
      expect(await verbs.take('git:web', ada)).toMatchObject({ holder: 'ada', process: null })
    })

    test('is refused when its id was defaulted: every terminal has the same', async () => {
      const { verbs } = begin()
      const terminal = callerOf('cli:ada@laptop', { given: false })
      await verbs.take('git:web', terminal)
      const no = await expectRefusal(verbs.take('git:web', terminal), 'held')
      expect(no.details['by_you']).toBe(true)
    })

    test('takes over from a living process of its own id when it says so', async () => {
      const { verbs, machine } = begin()
      const old = await verbs.take('git:web', callerOf('ada', { process: machine.spawn() }))
      const lease = await verbs.take('git:web', ada, { takeover: true })
      expect(lease.fence).toBeGreaterThan(old.fence)
    })

    test('cannot take over what another agent holds', async () => {
      const { verbs } = begin()
      await verbs.take('git:web', ada)
      const no = await expectRefusal(verbs.take('git:web', bob, { takeover: true }), 'held')
      expect(no.details['by_you']).toBe(false)
    })
  })

  describe('nested agents', () => {
    test('may write under what their parent holds', async () => {
      const { verbs } = begin()
      const { fence } = await verbs.take('git:web', ada)
      const child = callerOf('ada/sub')
      expect(await verbs.renew('git:web', child, fence)).toMatchObject({ holder: 'ada', fence })
      await verbs.release('git:web', child)
    })

    test('exclude siblings, their parent, and agents whose id only begins alike', async () => {
      const { verbs } = begin()
      const { fence } = await verbs.take('git:web', callerOf('ada/one'))
      for (const other of ['ada/two', 'ada', 'ada/onex']) {
        await expectRefusal(verbs.renew('git:web', callerOf(other), fence), 'held')
        await expectRefusal(verbs.take('git:web', callerOf(other)), 'held')
      }
    })
  })

  describe('force-release', () => {
    test('frees a lock whoever holds it, and the record says who and why', async () => {
      const { verbs, store } = begin()
      const { fence } = await verbs.take('git:web', ada)
      await verbs.forceRelease('git:web', ADMIN, 'stuck')
      const [, event] = await store.events(0, 10)
      expect(event).toMatchObject({
        type: 'lease.force_released',
        agent: 'root',
        data: { fence, holder: 'ada', reason: 'stuck' },
      })
      await expectRefusal(verbs.renew('git:web', ada, fence), 'lease_expired')
      await verbs.take('git:web', bob)
    })

    test('is for admins, and only of a lock that somebody holds', async () => {
      const { verbs } = begin()
      await verbs.take('git:web', ada)
      await expectRefusal(verbs.forceRelease('git:web', bob), 'forbidden')
      await expectRefusal(verbs.forceRelease('git:api', ADMIN), 'not_found')
    })
  })
}
