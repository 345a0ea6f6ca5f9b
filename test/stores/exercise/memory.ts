import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { memoryScenes } from './memory_scene.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

/** R31: notes, their versions, what they are written under, and how they go away. */
export function exerciseMemory(begin: Begin): void {
  const start = memoryScenes(begin)

  describe('a note', () => {
    test('keeps what was said, by whom, and for which task', async () => {
      const { memory, verbs } = start()
      await verbs.add('x', ada, { id: 't' })
      const { fence } = await verbs.take('task:t', ada)
      const more = { confidence: 0.25, tags: ['b', 'a', 'b'], task_id: 't', fence }
      const { version } = await memory.put('k', 'ä "quoted" \\ {x}\n錠\t𝄞', ada, more)
      expect(version).toMatchObject({
        ...{ version: 1, parents: [], kind: 'put', author: 'ada', task_id: 't', fence },
        ...{ confidence: 0.25, tags: ['b', 'a'], size: 26, kept: true, expires_ms: null },
      })
      expect(await memory.texts('k')).toEqual(['ä "quoted" \\ {x}\n錠\t𝄞'])
      expect(await memory.memory('k')).toMatchObject({ heads: [1], live: true, author: 'ada' })
      expect((await verbs.eventTypes()).at(-1)).toBe('memory.put')
    })

    test('is one per scope and key, and listed by both', async () => {
      const { memory } = start()
      for (const scope of ['global', 'project:web', 'project:web2']) {
        for (const key of ['b', 'a', 'ä']) await memory.put(key, scope, ada, { scope })
      }
      expect(await memory.keys('project:web')).toEqual(['a', 'b', 'ä'])
      expect(await memory.texts('a', 'project:web2')).toEqual(['project:web2'])
    })

    test('may be empty, or a megabyte', async () => {
      const { memory } = start()
      const long = `${'x'.repeat(1023)}\n`.repeat(1024)
      await memory.put('empty', '', ada)
      await memory.put('long', long, ada)
      expect(await memory.texts('empty')).toEqual([''])
      expect((await memory.texts('long'))[0] === long).toBe(true)
    })

    test('goes on from the version it was based on', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada, { tags: ['x'] })
      const { version, conflict } = await memory.put('k', 'two', bob, { based_on: 1 })
      expect(version).toMatchObject({ version: 2, parents: [1], author: 'bob', tags: ['x'] })
      expect(conflict).toBeNull()
      expect(await memory.texts('k')).toEqual(['two'])
      expect(await memory.text('k', 1)).toBe('one')
    })

    test('that says the same again makes no version, whatever its base', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      await memory.put('k', 'two', ada, { based_on: 1 })
      for (const more of [{}, { based_on: 1 }, { based_on: 2 }]) {
        const again = await memory.put('k', 'two', bob, more)
        expect(again).toMatchObject({ written: false, conflict: null, version: { version: 2 } })
      }
    })

    test('with more to say about the same content is a version, and keeps the rest', async () => {
      const { memory, machine } = start()
      await memory.put('k', 'one', ada, { tags: ['x'], confidence: 0.5 })
      const { version, conflict } = await memory.put('k', 'one', bob, { confidence: 0.9 })
      expect(conflict).toBeNull()
      expect(version).toMatchObject({ version: 2, parents: [1], tags: ['x'], confidence: 0.9 })
      const { version: third } = await memory.put('k', 'one', bob, { ttl_ms: 1_000 })
      expect(third).toMatchObject({ tags: ['x'], confidence: 0.9 })
      machine.advance(1_000)
      await expectRefusal(memory.texts('k'), 'not_found')
    })

    test('is refused on a version that never was', async () => {
      const { memory } = start()
      await expectRefusal(memory.put('k', 'x', ada, { based_on: 1 }), 'not_found')
      await memory.put('k', 'x', ada)
      const no = await expectRefusal(memory.put('k', 'y', ada, { based_on: 2 }), 'not_found')
      expect(no.details).toMatchObject({ newest: 1 })
    })
  })

  describe('a note written under a lease', () => {
    test('is refused with a stale fence, and nothing is written', async () => {
      const { memory, verbs } = start()
      await verbs.add('x', ada, { id: 't' })
      const { fence } = await verbs.take('task:t', ada)
      await verbs.release('task:t', ada, fence)
      const late = () => memory.put('k', 'late', ada, { task_id: 't', fence })
      await expectRefusal(late(), 'lease_expired')
      await verbs.take('task:t', bob)
      await expectRefusal(late(), 'fence_stale')
      await expectRefusal(memory.put('k', 'late', ada, { task_id: 't' }), 'held')
      await expectRefusal(memory.put('k', 'late', ada, { fence }), 'invalid')
      expect(await memory.memory('k')).toBeUndefined()
      expect(await verbs.eventTypes()).not.toContain('memory.put')
    })
  })

  describe('a deleted note', () => {
    test('is not shown, keeps its history, and may be put again', async () => {
      const { memory, verbs } = start()
      await memory.put('k', 'one', ada)
      const { version } = await memory.delete('k', bob)
      expect(version).toMatchObject({ version: 2, parents: [1], kind: 'delete', kept: false })
      const no = await expectRefusal(memory.texts('k'), 'not_found')
      expect(no.message).toContain('deleted')
      expect(await memory.keys('global')).toEqual([])
      await expectRefusal(memory.delete('k', bob), 'not_found')
      expect(await memory.text('k', 1)).toBe('one')
      const again = await memory.put('k', 'anew', ada)
      expect(again).toMatchObject({ conflict: null, version: { version: 3, parents: [2] } })
      expect(await verbs.eventTypes()).toEqual(['memory.put', 'memory.deleted', 'memory.put'])
    })
  })

  describe('a note with a time to live', () => {
    test('is gone when that is over, to the millisecond, and disagrees with nobody', async () => {
      const { memory, machine } = start()
      await memory.put('k', 'one', ada, { ttl_ms: 60_000 })
      machine.advance(59_999)
      expect(await memory.texts('k')).toEqual(['one'])
      machine.advance(1)
      const no = await expectRefusal(memory.texts('k'), 'not_found')
      expect(no.message).toContain('expired')
      const { version, conflict } = await memory.put('k', 'two', bob)
      expect([version.parents, conflict]).toEqual([[1], null])
      expect(await memory.texts('k')).toEqual(['two'])
    })
  })

  describe('pruning', () => {
    test('tells first and then takes away what is deleted or expired', async () => {
      const { memory, machine } = start()
      await memory.put('stays', 'x', ada)
      await memory.put('expires', 'xx', ada, { ttl_ms: 1_000 })
      await memory.put('deleted', 'xxx', bob)
      await memory.delete('deleted', bob)
      machine.advance(1_000)
      const told = await memory.prune({ dry_run: true }, ada)
      expect(
        told.items.map(({ key, why, versions, bytes }) => [key, why, versions, bytes]),
      ).toEqual([
        ['deleted', 'deleted', 2, 3],
        ['expires', 'expired', 1, 2],
      ])
      expect(await memory.versions('deleted')).toHaveLength(2)
      expect(await memory.prune({}, ada)).toEqual(told)
      expect(await memory.prune({}, ada)).toEqual({ items: [], last: null })
      expect(await memory.versions('deleted')).toEqual([])
      expect(await memory.text('expires', 1)).toBeUndefined()
    })

    test('never has a version number given again', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      await memory.delete('k', ada)
      await memory.prune({}, ada)
      const { version } = await memory.put('k', 'new', bob, { based_on: 1 })
      expect(version).toMatchObject({ version: 3, parents: [] })
    })

    test('finds what is old, unsure, or of a scope; what is in conflict stays', async () => {
      const { memory, machine } = start()
      await memory.put('unsure', 'x', ada, { confidence: 0.1 })
      await memory.put('disputed', 'x', ada, { confidence: 0.1 })
      await memory.put('disputed', 'y', bob)
      await memory.put('web', 'x', ada, { scope: 'project:web', confidence: 0.1 })
      machine.advance(10_000)
      await memory.put('young', 'x', ada)
      const keys = async (ask: object) =>
        (await memory.prune({ dry_run: true, ...ask }, ada)).items.map(({ key }) => key)
      expect(await keys({})).toEqual([])
      expect(await keys({ below_confidence: 0.2 })).toEqual(['unsure', 'web'])
      expect(await keys({ below_confidence: 0.2, scope: 'project:web' })).toEqual(['web'])
      expect(await keys({ older_than_ms: 10_000 })).toEqual(['unsure', 'web'])
      expect(await keys({ older_than_ms: 10_001 })).toEqual([])
      expect(await keys({ expired: true })).toEqual([])
      await memory.put('late', 'x', ada, { ttl_ms: 2_000 })
      await memory.put('soon', 'x', ada, { ttl_ms: 1_000 })
      machine.advance(1_000)
      expect(await keys({ expired: true })).toEqual(['soon'])
      machine.advance(1_000)
      expect(await keys({ expired: true })).toEqual(['soon', 'late'])
      expect(await keys({ expired: true, older_than_ms: 3_000 })).toEqual([])
    })

    test('goes on where it stopped', async () => {
      const { memory } = start()
      const keys = Array.from({ length: 501 }, (_, i) => `k${1000 + i}`)
      await Promise.all(keys.map((key) => memory.put(key, 'x', ada)))
      const first = await memory.prune({ older_than_ms: 0 }, ada)
      expect(first.items).toHaveLength(500)
      const after = { order: first.last!.memory.updated_ms, key: first.last!.memory.id }
      const second = await memory.prune({ older_than_ms: 0 }, ada, after)
      expect([second.items.length, second.last]).toEqual([1, null])
    })

    test('of the history keeps who wrote what, and forgets the texts', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      await memory.put('k', 'two', ada, { based_on: 1 })
      await memory.put('k', 'three', ada, { based_on: 2 })
      await memory.prune({ history: true }, ada)
      expect(await memory.texts('k')).toEqual(['three'])
      expect(await memory.text('k', 2)).toBeUndefined()
      expect((await memory.versions('k')).map(({ kept }) => kept)).toEqual([false, false, true])
    })
  })
}
