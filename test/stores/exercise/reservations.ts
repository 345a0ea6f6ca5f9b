import { factsOf } from '../../../src/core/event.ts'
import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { PathVerbs } from '../../support/path_verbs.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const cyd = callerOf('cyd')

/** R27: leases on path globs. */
export function exerciseReservations(begin: Begin): void {
  const start = () => {
    const scene = begin()
    return { ...scene, paths: new PathVerbs(scene.store) }
  }

  describe('a reservation', () => {
    test('keeps others from every glob that has a path in common, and from no other', async () => {
      const { paths } = start()
      await paths.one('src/core/**', ada, { reason: 'new rules' })
      const refusal = await expectRefusal(paths.one('src/*/lock.ts', bob), 'held')
      expect(refusal.message).toContain('src/*/lock.ts overlaps src/core/**, reserved by ada since')
      expect(refusal.details).toMatchObject({ holder: 'ada', reason: 'new rules', by_you: false })
      expect(refusal.actions[0]).toMatchObject({ operation: 'reserve.list' })
      for (const glob of ['**', 'src/', 'src', 'src/core', 'src/core/a/b.ts', '{a,src}/core/x']) {
        const meets = glob !== 'src'
        if (meets) await expectRefusal(paths.one(glob, bob), 'held')
      }
      for (const glob of ['src', 'src/cor', 'src/core.ts', 'src/[!c]*/**', 'docs/**']) {
        expect((await paths.one(glob, bob)).holder).toBe('bob')
      }
    })

    test('of several globs is all or nothing', async () => {
      const { paths, store } = start()
      await paths.one('b/x.ts', ada)
      await expectRefusal(paths.reserve(['a/**', 'b/**', 'c/**'], bob), 'held')
      expect(await paths.check('a/x', cyd)).toBe('free')
      const { leases } = await paths.reserve(['a/**', 'c/**', './a/'], bob)
      expect(leases.map(({ path }) => path.glob)).toEqual(['a/**', 'c/**'])
      const events = await store.events(0, 10)
      expect(events.map((event) => `${event.type} ${factsOf(event).path}`)).toEqual([
        'lease.granted b/x.ts',
        'lease.granted a/**',
        'lease.granted c/**',
      ])
    })

    test('asked for again is renewed under its fence, and others are told it is held', async () => {
      const { paths, machine } = start()
      const first = await paths.one('src/**', ada, { reason: 'why' })
      machine.advance(50_000)
      const again = await paths.one('src/**', ada)
      expect(again.fence).toBe(first.fence)
      expect(again.expires_ms).toBe(first.expires_ms + 50_000)
      expect(again.path.reason).toBe('why')
      machine.advance(50_000)
      await expectRefusal(paths.one('src/a', bob), 'held')
      machine.advance(10_000)
      const taken = await paths.one('src/a', bob)
      expect(taken.fence).toBeGreaterThan(first.fence)
    })

    test('is gone at once when its process is dead, and not while that lives', async () => {
      const { paths, machine } = start()
      const process = machine.spawn()
      await paths.one('src/**', ada, { process, ttl_ms: 3600_000 })
      await expectRefusal(paths.one('src/a', bob), 'held')
      machine.kill(process)
      expect((await paths.one('src/a', bob)).holder).toBe('bob')
    })

    test('is released, renewed and freed like any lock, and not taken like one', async () => {
      const { paths, verbs } = start()
      const lease = await paths.one('src/**', ada)
      expect(lease.name).toBe('path:/repo:src/**')
      await expectRefusal(verbs.release(lease.name, bob), 'held')
      await verbs.renew(lease.name, ada, lease.fence)
      await verbs.release(lease.name, ada, lease.fence)
      await expectRefusal(paths.release('src/**', ada), 'lease_expired')
      const again = await paths.one('src/**', bob)
      await expectRefusal(paths.release('src/**', ada, { fence: lease.fence }), 'fence_stale')
      await expectRefusal(paths.release('src/**', ada), 'held')
      await verbs.forceRelease(again.name, callerOf('root', { admin: true }))
      expect(await paths.check('src/a', ada)).toBe('free')
    })

    test('by another process of the same agent id is not its own', async () => {
      const { paths, machine } = start()
      const one = machine.spawn()
      const other = machine.spawn()
      await paths.one('src/**', ada, { process: one })
      const refusal = await expectRefusal(paths.one('src/a', ada, { process: other }), 'held')
      expect(refusal.details['by_you']).toBe(true)
      expect((await paths.one('src/a', ada, { process: one })).holder).toBe('ada')
      const terminal = callerOf('cli:me@here', { given: false })
      await paths.one('docs/**', terminal)
      await expectRefusal(paths.one('docs/**', terminal), 'held')
      expect(await paths.check('docs/a', terminal)).toBe('mine')
      expect(await paths.release('docs/**', terminal)).toHaveLength(1)
    })

    test('with a very long name is still found, refused and released', async () => {
      const { paths } = start()
      const deep = 'größe/'.repeat(60)
      const checkout = `/${'x'.repeat(400)}`
      const lease = await paths.one(`${deep}a.ts`, ada, { checkout })
      expect(lease.name.length).toBeLessThanOrEqual(300)
      await expectRefusal(paths.one(`${deep}*`, bob, { checkout }), 'held')
      expect((await paths.one(`${deep}b.ts`, bob, { checkout })).name).not.toBe(lease.name)
      expect(await paths.check(`${deep}a.ts`, bob, { checkout: `${checkout}y` })).toBe('free')
      await paths.release(`${deep}a.ts`, ada, { checkout })
    })
  })

  describe('shared reservations', () => {
    test('go together, each with its own fence, and exclude who wants it alone', async () => {
      const { paths } = start()
      const first = await paths.one('docs/**', ada, { shared: true })
      const second = await paths.one('docs/*.md', bob, { shared: true })
      const third = await paths.one('docs/**', cyd, { shared: true })
      expect(new Set([first, second, third].map(({ name }) => name)).size).toBe(3)
      expect(third.fence).toBeGreaterThan(second.fence)
      await expectRefusal(paths.one('docs/a.md', callerOf('dee')), 'held')
      await expectRefusal(paths.one('docs/**', ada), 'held')
      expect(await paths.check('docs/a.md', bob)).toBe('mine')
      expect(await paths.check('docs/a.md', callerOf('dee'))).not.toBe('free')
    })

    test('become exclusive when nobody else is left, under a new fence', async () => {
      const { paths, verbs } = start()
      const shared = await paths.one('docs/**', ada, { shared: true })
      await paths.one('docs/**', bob, { shared: true })
      await expectRefusal(paths.one('docs/**', ada), 'held')
      await paths.release('docs/**', bob)
      const alone = await paths.one('docs/**', ada)
      expect(alone.path.shared).toBe(false)
      expect(alone.fence).toBeGreaterThan(shared.fence)
      expect(await verbs.lease(shared.name)).toMatchObject({ reason: 'released' })
      await expectRefusal(paths.one('docs/x', bob, { shared: true }), 'held')
      await paths.one('docs/**', ada, { shared: true })
      expect((await paths.one('docs/x', bob, { shared: true })).holder).toBe('bob')
    })
  })

  describe('reservations of nested agents', () => {
    const child = callerOf('ada/one')
    const sibling = callerOf('ada/two')

    test('admit those below, keep siblings apart, and keep the parent out', async () => {
      const { paths } = start()
      const above = await paths.one('src/**', ada)
      const below = await paths.one('src/**', child)
      expect(below.name).not.toBe(above.name)
      await expectRefusal(paths.one('src/a', sibling), 'held')
      expect(await paths.check('src/a', child)).toBe('mine')
      expect(await paths.check('src/a', ada)).toBe('ada/one')
      await expectRefusal(paths.one('src/a', ada), 'held')
      await paths.release('src/**', child)
      expect(await paths.check('src/a', sibling)).toBe('mine')
      expect((await paths.one('src/a', ada)).holder).toBe('ada')
    })

    test('are released with those of their parent when it asks for that', async () => {
      const { paths } = start()
      await paths.one('a/**', ada)
      await paths.one('b/**', child)
      await paths.one('c/**', bob)
      await paths.one('d/**', ada, { checkout: '/other' })
      expect(await paths.releaseAll(ada, { checkout: '/repo', nested: true })).toHaveLength(2)
      expect(await paths.releaseAll(ada)).toHaveLength(1)
      expect(await paths.releaseAll(ada)).toHaveLength(0)
      expect(await paths.check('c/x', ada)).toBe('bob')
    })
  })

  describe('the scope of a reservation', () => {
    const one = { checkout: '/one', repository: '/one/.git' }
    const two = { checkout: '/two', repository: '/one/.git' }

    test('is its checkout, with a warning across worktrees of one repository', async () => {
      const { paths } = start()
      await paths.one('src/**', ada, one)
      const { warnings } = await paths.reserve('src/a.ts', bob, two)
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toContain('src/a.ts overlaps src/**, reserved by ada in another checkout')
      expect((await paths.reserve('docs/a', bob, two)).warnings).toEqual([])
      const other = { checkout: '/three', repository: '/three/.git' }
      expect((await paths.reserve('src/a.ts', bob, other)).warnings).toEqual([])
    })

    test('is the whole project where no checkout is named', async () => {
      const { paths } = start()
      const web = { project: 'web' }
      await paths.one('src/**', ada, { ...web, checkout: null })
      await expectRefusal(paths.one('src/a', bob, { ...web, checkout: '/one' }), 'held')
      expect((await paths.one('src/a', bob, { project: 'api', checkout: '/one' })).holder).toBe(
        'bob',
      )
      await paths.one('docs/a', bob, { ...web, checkout: '/two' })
      await expectRefusal(paths.one('docs/**', ada, { ...web, checkout: null }), 'held')
      expect((await paths.one('docs/**', ada, { project: 'ops', checkout: null })).holder).toBe(
        'ada',
      )
    })
  })

  describe('a touch', () => {
    test('reserves that path in auto, whatever its characters, and renews the rest', async () => {
      const { paths, machine } = start()
      const first = await paths.touch(['app/[id]/p.ts'], ada)
      expect(first).toMatchObject({ renewed: 0, warnings: [] })
      expect(first.reserved.map(({ path }) => path.shared)).toEqual([false])
      expect(await paths.check('app/i/p.ts', bob)).toBe('free')
      machine.advance(50_000)
      expect(await paths.touch(['b.ts'], ada)).toMatchObject({ renewed: 1 })
      machine.advance(50_000)
      expect(await paths.touch([], ada)).toMatchObject({ renewed: 2, reserved: [] })
      machine.advance(50_000)
      const refusal = await expectRefusal(paths.touch(['c.ts', 'app/[id]/p.ts'], bob), 'held')
      expect(refusal.details).toMatchObject({ path: 'app/[id]/p.ts', holder: 'ada' })
      expect(await paths.check('c.ts', ada)).toBe('free')
      machine.advance(10_000)
      expect((await paths.touch(['app/[id]/p.ts'], bob)).reserved).toHaveLength(1)
    })

    test('renews in every checkout, nothing of others, or of another process', async () => {
      const { paths, machine } = start()
      const process = machine.spawn()
      const mine = await paths.one('a', ada)
      const shorter = await paths.one('b', ada, { process, ttl_ms: 30_000 })
      await paths.one('c', ada, { checkout: '/other' })
      await paths.one('d', bob)
      machine.advance(20_000)
      expect(await paths.touch([], ada)).toMatchObject({ renewed: 2 })
      expect(await paths.touch([], ada, { process })).toMatchObject({ renewed: 3 })
      machine.advance(45_000)
      expect(await paths.check('a', bob)).toBe(mine.holder)
      expect(await paths.check('b', bob)).toBe(shorter.holder)
      expect(await paths.check('c', bob, { checkout: '/other' })).toBe('ada')
      expect(await paths.check('d', ada)).toBe('free')
    })

    test('keeps what the caller and its waiting parents hold, locks too', async () => {
      const { paths, machine, verbs } = start()
      const child = callerOf('ada/one')
      await paths.one('a', ada)
      await paths.one('b', callerOf('ada/two'))
      await verbs.take('task:7', child, { ttl_ms: 60_000 })
      machine.advance(40_000)
      await paths.touch('c', child)
      machine.advance(40_000)
      expect(await paths.check('a', bob)).toBe('ada')
      expect(await paths.check('b', bob)).toBe('free')
      await expectRefusal(verbs.take('task:7', bob), 'held')
    })

    test('keeps it longer this once, where more silence is foreseen', async () => {
      const { paths, machine } = start()
      await paths.one('a', ada)
      await paths.touch([], ada, { keep_ms: 600_000 })
      machine.advance(599_000)
      expect(await paths.check('a', bob)).toBe('ada')
      await paths.touch([], ada)
      machine.advance(59_000)
      expect(await paths.check('a', bob)).toBe('ada')
      machine.advance(2_000)
      expect(await paths.check('a', bob)).toBe('free')
    })

    test('again at once changes nothing; later it renews all', async () => {
      const { paths, machine, store } = start()
      await paths.touch(['a', 'b'], ada)
      const before = await store.events(0, 100)
      expect(await paths.touch('a', ada)).toEqual({
        reserved: [],
        renewed: 0,
        warnings: [],
        words: [],
      })
      expect(await store.events(0, 100)).toEqual(before)
      machine.advance(50_000)
      await paths.touch('a', ada)
      machine.advance(50_000)
      expect(await paths.check('b', bob)).toBe('ada')
    })

    test('refuses in strict what was not reserved first, and only warns in warn', async () => {
      const { paths } = start()
      const refusal = await expectRefusal(
        paths.touch('a', ada, { mode: 'strict' }),
        'lease_expired',
      )
      expect(refusal.actions).toMatchObject([{ operation: 'reserve.add', input: { paths: ['a'] } }])
      await paths.one('a', ada)
      expect(await paths.touch('a', ada, { mode: 'strict' })).toMatchObject({ reserved: [] })
      const child = callerOf('ada/one')
      expect(await paths.touch('a', child, { mode: 'strict' })).toMatchObject({ reserved: [] })
      await expectRefusal(paths.touch('a', bob, { mode: 'strict' }), 'held')
      const { warnings, reserved } = await paths.touch(['a', 'z'], bob, { mode: 'warn' })
      expect(warnings).toHaveLength(1)
      expect(warnings[0]).toContain('a is reserved by ada since')
      expect(reserved).toEqual([])
      expect(await paths.check('z', ada)).toBe('free')
    })

    test('of what its parent has reserves it for the child, apart from its siblings', async () => {
      const { paths } = start()
      await paths.one('src/**', ada)
      const { reserved } = await paths.touch('src/a', callerOf('ada/one'))
      expect(reserved).toHaveLength(1)
      await expectRefusal(paths.touch('src/a', callerOf('ada/two')), 'held')
      await expectRefusal(paths.touch('src/a', ada), 'held')
      expect((await paths.touch('src/a', callerOf('ada/one'))).reserved).toEqual([])
    })
  })
  describe('a word to the holder', () => {
    test('is read once, by the holder alone, and goes with the reservation', async () => {
      const { paths } = start()
      await paths.one('src/**', ada)
      expect(await paths.ask(['src/a', 'free'], bob, 'I wait')).toEqual([true, false])
      expect(await paths.ask('src/a', bob, 'I still wait')).toEqual([true])
      expect((await paths.touch([], ada)).words).toEqual([])
      expect((await paths.touch([], callerOf('ada/one'), { hears: true })).words).toEqual([])
      // Asking for it again renews it, and loses nothing.
      await paths.one('src/**', ada)
      const { words } = await paths.touch([], ada, { hears: true })
      expect(words).toEqual(['bob asks for src/a: "I still wait" (their words)'])
      expect((await paths.touch([], ada, { hears: true })).words).toEqual([])
      for (const who of ['b1', 'b2', 'b3', 'b4']) await paths.ask('src/a', callerOf(who), 'me')
      expect((await paths.touch([], ada, { hears: true })).words).toHaveLength(3)
      await paths.ask('src/a', bob, 'I wait')
      await paths.release('src/**', ada)
      await paths.one('src/**', ada)
      expect((await paths.touch([], ada, { hears: true })).words).toEqual([])
    })

    test('says what was changed behind its back, and so does an event', async () => {
      const { paths, store } = start()
      await paths.one('a', ada)
      expect(await paths.notice(['a', 'b'], bob)).toEqual(['held', 'free'])
      expect(await paths.notice('a', ada)).toEqual(['mine'])
      const { words } = await paths.touch([], ada, { hears: true })
      expect(words).toEqual([
        expect.stringMatching(/^a was changed while bob worked, not by you; /),
      ])
      const events = (await store.events(0, 100)).filter(({ type }) => type === 'hook.noticed')
      expect(events.map((event) => [event.agent, factsOf(event).holder])).toEqual([
        ['bob', 'ada'],
        ['ada', 'ada'],
      ])
    })

    test('is not left by a token for a stranger', async () => {
      const { paths } = start()
      await paths.one('a', ada)
      const scope = { users: ['bob'], projects: null, task: null }
      expect(await paths.ask('a', { ...bob, scope }, 'Do as I say')).toEqual([false])
      expect((await paths.touch([], ada, { hears: true })).words).toEqual([])
    })
  })

  test('a reservation that is handed over is one still', async () => {
    const { paths, verbs } = start()
    const { name } = await paths.one('src/**', ada)
    await verbs.handOff(name, ada, 'bob')
    expect(await paths.check('src/a', ada)).toBe('bob')
    expect(await paths.check('src/a', bob)).toBe('mine')
  })

  test('how to free what another has is told to people, and not to agents', async () => {
    const { paths } = start()
    await paths.one('a', ada)
    const agent = await expectRefusal(paths.one('a', bob), 'held')
    expect(agent.next).toMatch(/Only a person can free it: ask your user\.$/)
    const person = { ...callerOf('cli:ada@box'), given: false }
    const { actions } = await expectRefusal(paths.one('a', person), 'held')
    expect(actions.at(-1)).toMatchObject({ operation: 'lock.force_release' })
  })
}
