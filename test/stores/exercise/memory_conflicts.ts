import type { Strategy } from '../../../src/core/schema/memory.ts'
import { describe, expect, test } from 'vitest'
import { callerOf, expectRefusal } from '../../support/helpers.ts'
import { MemoryVerbs } from '../../support/memory_verbs.ts'
import { memoryScenes } from './memory_scene.ts'
import type { Begin } from './scene.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const cyd = callerOf('cyd')

/** R32, R33: agents who disagree know at once, and nothing is lost. */
export function exerciseMemoryConflicts(begin: Begin): void {
  const start = memoryScenes(begin)

  describe('two notes that disagree', () => {
    test('are both kept, and the second writer is told at once', async () => {
      const { memory, verbs } = start()
      await memory.put('k', 'one', ada)
      const { version, conflict } = await memory.put('k', 'two', bob)
      expect(version).toMatchObject({ version: 2, parents: [] })
      expect(conflict).toMatchObject({ status: 'open', ours: 1, theirs: 2, base: null })
      expect(await memory.texts('k')).toEqual(['one', 'two'])
      expect(await memory.open('k')).toEqual([conflict])
      expect(await verbs.eventTypes()).toEqual(['memory.put', 'memory.put', 'memory.conflicted'])
    })

    test('know what they grew from, however far back', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      for (let v = 1; v < 30; v += 1) await memory.put('k', `ada ${v}`, ada, { based_on: v })
      const { conflict } = await memory.put('k', 'late', bob, { based_on: 4 })
      expect(conflict).toMatchObject({ ours: 30, theirs: 31, base: 4 })
    })

    test('are many when many ask at once: all kept, a conflict for each but one', async () => {
      const { memory, beside } = start()
      const other = new MemoryVerbs(beside().store)
      const puts = Array.from({ length: 16 }, (_, i) =>
        (i % 2 ? memory : other).put('k', `by ${i}`, callerOf(`agent-${i}`)),
      )
      const done = await Promise.all(puts)
      expect(done.filter(({ conflict }) => conflict === null)).toHaveLength(1)
      const wanted = Array.from({ length: 16 }, (_, i) => `by ${i}`)
      expect(new Set(await memory.texts('k'))).toEqual(new Set(wanted))
      expect(await memory.open('k')).toHaveLength(15)
    })

    test('are settled by choosing one: a version that names both', async () => {
      const { memory, verbs } = start()
      await memory.put('k', 'one', ada, { confidence: 0.3 })
      const { conflict } = await memory.put('k', 'two', bob, { confidence: 0.7 })
      const { version, conflict: done } = await memory.resolve(
        conflict!.id,
        { choose: 'ours' },
        cyd,
      )
      expect(version).toMatchObject({ parents: [1, 2], kind: 'resolve', confidence: 0.3 })
      expect(done).toMatchObject({ status: 'resolved', strategy: 'choose', result: 3 })
      expect(await memory.texts('k')).toEqual(['one'])
      expect((await verbs.eventTypes()).at(-1)).toBe('memory.resolved')
      const no = await expectRefusal(memory.resolve(conflict!.id, { choose: 2 }, ada), 'conflict')
      expect(no.details).toMatchObject({ status: 'resolved', version: 3 })
    })

    test.each([
      [{ choose: 2 }, 'two', 'choose'],
      [{ content: 'both', supersede: false }, 'both', 'merge'],
      [{ content: 'neither', supersede: true }, 'neither', 'supersede'],
    ] as const)('are settled by %j', async (how, text, strategy) => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      const { conflict } = await memory.put('k', 'two', bob)
      const { version } = await memory.resolve(conflict!.id, how, cyd)
      expect(version).toMatchObject({ strategy, parents: [1, 2], author: 'cyd' })
      expect(await memory.texts('k')).toEqual([text])
      expect(await memory.open('k')).toEqual([])
    })

    test('are not settled by who has not seen what one of them says now', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      const { conflict } = await memory.put('k', 'two', bob)
      const { conflict: now } = await memory.put('k', 'three', bob, { based_on: 2 })
      expect(now).toMatchObject({ ours: 1, theirs: 3, status: 'open' })
      const no = await expectRefusal(
        memory.resolve(conflict!.id, { choose: 'ours' }, cyd),
        'conflict',
      )
      expect(no.details).toMatchObject({ status: 'replaced', replaced_by: now!.id })
      await expectRefusal(memory.resolve(now!.id, { choose: 2 }, cyd), 'invalid')
      await memory.resolve(now!.id, { choose: 'theirs' }, cyd)
      expect(await memory.texts('k')).toEqual(['three'])
    })

    test('agree when one comes to say what the other says', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      const { conflict } = await memory.put('k', 'two', bob)
      const { version } = await memory.put('k', 'one', bob, { based_on: 2 })
      expect(version).toMatchObject({ parents: [1, 2] })
      expect(await memory.open('k')).toEqual([])
      expect(await memory.conflict(conflict!.id)).toMatchObject({ status: 'resolved', result: 3 })
    })

    test('may be three, and are settled one by one', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      const second = await memory.put('k', 'two', bob)
      const third = await memory.put('k', 'three', cyd)
      expect(third.conflict).toMatchObject({ ours: 1, theirs: 3 })
      await memory.resolve(second.conflict!.id, { choose: 'theirs' }, ada)
      expect(await memory.texts('k')).toEqual(['two', 'three'])
      const [left] = await memory.open('k')
      expect(left).toMatchObject({ ours: 4, theirs: 3 })
      expect(await memory.conflict(third.conflict!.id)).toMatchObject({ replaced_by: left!.id })
      await memory.resolve(left!.id, { content: 'all', supersede: false }, ada)
      expect(await memory.texts('k')).toEqual(['all'])
      expect((await memory.memory('k'))?.heads).toEqual([5])
    })

    test('are not deleted by who does not say which', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      const { conflict } = await memory.put('k', 'two', bob)
      const no = await expectRefusal(memory.delete('k', ada), 'conflict')
      expect(no.details).toMatchObject({ heads: [1, 2], conflicts: [conflict!.id] })
      await memory.delete('k', ada, { based_on: 1 })
      expect(await memory.texts('k')).toEqual([null, 'two'])
    })
  })

  describe('a deletion', () => {
    test('of a version that was changed since is a conflict', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      await memory.put('k', 'two', bob, { based_on: 1 })
      const { conflict } = await memory.delete('k', ada, { based_on: 1 })
      expect(conflict).toMatchObject({ ours: 2, theirs: 3, base: 1 })
      expect(await memory.texts('k')).toEqual(['two', null])
      await memory.resolve(conflict!.id, { choose: 'theirs' }, bob)
      await expectRefusal(memory.texts('k'), 'not_found')
    })

    test('that a later writer has not seen is a conflict', async () => {
      const { memory } = start()
      await memory.put('k', 'one', ada)
      await memory.delete('k', ada)
      const { conflict } = await memory.put('k', 'two', bob, { based_on: 1 })
      expect(conflict).toMatchObject({ ours: 2, theirs: 3, base: 1 })
      expect(await memory.texts('k')).toEqual([null, 'two'])
    })
  })

  describe('a scope that merges', () => {
    const merging = async (strategy: Strategy, base: string, ours: object, theirs: object) => {
      const scene = start()
      await scene.memory.settings({ strategies: { 'project:*': strategy } })
      const scope = 'project:web'
      await scene.memory.put('k', base, ada, { scope })
      const put = (said: object, agent: typeof ada) => {
        const { content, ...more } = { content: '', ...said }
        return scene.memory.put('k', content, agent, { scope, based_on: 1, ...more })
      }
      await put(ours, ada)
      const last = await put(theirs, bob)
      return { ...scene, last, texts: () => scene.memory.texts('k', scope) }
    }

    test('text: line by line, at once, and says so', async () => {
      const sides = [
        { content: 'A\nb\nc\nd', tags: ['x'] },
        { content: 'a\nb\nc\nD', tags: ['y'] },
      ]
      const { last, texts, verbs } = await merging('text', 'a\nb\nc\nd', sides[0]!, sides[1]!)
      expect(await texts()).toEqual(['A\nb\nc\nD'])
      expect(last.version).toMatchObject({ kind: 'merge', parents: [2, 3], tags: ['x', 'y'] })
      expect(last.conflict).toMatchObject({
        status: 'merged',
        strategy: 'text',
        result: 4,
        base: 1,
      })
      expect((await verbs.eventTypes()).at(-1)).toBe('memory.merged')
    })

    test('text: what both changed stays open', async () => {
      const { last, texts } = await merging('text', 'a', { content: 'b' }, { content: 'c' })
      expect(last.conflict).toMatchObject({ status: 'open', why: 'both changed the same lines' })
      expect(await texts()).toEqual(['b', 'c'])
    })

    test('newest: the later one', async () => {
      const { texts } = await merging('newest', 'a', { content: 'b' }, { content: 'c' })
      expect(await texts()).toEqual(['c'])
    })

    test('confident: the surer one, and neither if none is', async () => {
      const sure = { content: 'b', confidence: 0.9 }
      const unsure = { content: 'c', confidence: 0.2 }
      const one = await merging('confident', 'a', sure, unsure)
      expect(await one.texts()).toEqual(['b'])
      expect(one.last.version).toMatchObject({ confidence: 0.9, kind: 'merge' })
      const two = await merging('confident', 'a', unsure, sure)
      expect(await two.texts()).toEqual(['b'])
      // Not to say how sure one is counts as half sure.
      const three = await merging(
        'confident',
        'a',
        { content: 'b' },
        { ...unsure, confidence: 0.5 },
      )
      expect(await three.texts()).toEqual(['b', 'c'])
    })

    test('union: what both have, also without a base', async () => {
      const { texts, memory } = await merging(
        'union',
        '{"a":[1]}',
        { content: '{"a":[1,2]}' },
        { content: '{"a":[1,3],"b":true}' },
      )
      expect(await texts()).toEqual(['{"a":[1,2,3],"b":true}'])
      await memory.put('new', '[1]', ada, { scope: 'project:api' })
      await memory.put('new', '[2]', bob, { scope: 'project:api' })
      expect(await memory.texts('new', 'project:api')).toEqual(['[1,2]'])
    })

    test('is found by its name, then by the longest prefix, then by default', async () => {
      const { memory } = start()
      const strategies = { default: 'newest', 'project:*': 'manual', 'project:web': 'newest' }
      await memory.settings({ strategies: strategies as Record<string, Strategy> })
      for (const scope of ['global', 'project:web', 'project:api']) {
        await memory.put('k', 'one', ada, { scope })
        await memory.put('k', 'two', bob, { scope })
      }
      expect(await memory.texts('k', 'global')).toEqual(['two'])
      expect(await memory.texts('k', 'project:web')).toEqual(['two'])
      expect(await memory.texts('k', 'project:api')).toEqual(['one', 'two'])
    })
  })
}
