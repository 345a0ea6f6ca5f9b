import type { Strategy } from '../../../src/core/schema/memory.ts'
import { describe, expect, test } from 'vitest'
import { callerOf } from '../../support/helpers.ts'
import type { MemoryVerbs } from '../../support/memory_verbs.ts'
import { memoryScenes } from './memory_scene.ts'
import type { Begin } from './scene.ts'

const SCOPE = 'project:web'
const lines = (text: string) => text.replaceAll('/', '\n')

/** R33: a new version is merged with whichever siblings it fits, not only with the first. */
export function exerciseMemorySiblings(begin: Begin): void {
  const start = memoryScenes(begin)

  const by = (strategy: Strategy, memory: MemoryVerbs) =>
    memory.settings({ strategies: { 'project:*': strategy } })

  /** A base, and a version of it by each of several agents. */
  async function siblings(strategy: Strategy, base: string, ...said: [string, number?][]) {
    const { memory, verbs } = start()
    await by(strategy, memory)
    await memory.put('k', base, callerOf('ada'), { scope: SCOPE })
    const put = (content: string, i: number, confidence?: number) =>
      memory.put('k', content, callerOf(`agent-${i}`), { scope: SCOPE, based_on: 1, confidence })
    for (const [i, [content, sure]] of said.entries()) await put(content, i, sure)
    return { memory, verbs, put, texts: () => memory.texts('k', SCOPE) }
  }

  describe('a version beside siblings', () => {
    test('is merged with the second, where it does not fit the first', async () => {
      const base = lines('a/b/c/d/e')
      const [one, two] = [lines('A/b/c/d/e'), lines('X/b/c/d/e')]
      const { memory, put, texts } = await siblings('text', base, [one], [two])
      const [open] = await memory.open('k', SCOPE)
      expect(open).toMatchObject({ ours: 2, theirs: 3 })
      const last = await put(lines('X/b/c/d/E'), 3)
      expect(last.conflict).toMatchObject({ status: 'merged', ours: 3, theirs: 4, result: 5 })
      expect(last.version).toMatchObject({ kind: 'merge', parents: [3, 4] })
      expect(await texts()).toEqual([one, lines('X/b/c/d/E')])
      // The disagreement with the first goes on, about what there is now.
      expect(await memory.open('k', SCOPE)).toMatchObject([{ ours: 2, theirs: 5, base: 1 }])
      expect(await memory.conflict(open!.id)).toMatchObject({ status: 'replaced' })
    })

    test('is merged with the first, and what does not fit both stays beside', async () => {
      const base = lines('a/b/c/d/e')
      const [one, two] = [lines('A/b/c/d/e'), lines('X/b/c/d/e')]
      const { memory, put, texts } = await siblings('text', base, [one], [two])
      const last = await put(lines('a/b/c/d/E'), 3)
      expect(last.conflict).toMatchObject({ status: 'merged', ours: 2, theirs: 4 })
      expect(await texts()).toEqual([lines('A/b/c/d/E'), two])
      expect(await memory.open('k', SCOPE)).toMatchObject([{ ours: 5, theirs: 3 }])
    })

    test('that fits none opens a conflict with the first', async () => {
      const { memory, put, texts } = await siblings('text', 'a', ['b'], ['c'])
      const last = await put('d', 3)
      const why = 'both changed the same lines'
      expect(last.conflict).toMatchObject({ status: 'open', ours: 2, theirs: 4, why })
      expect(await texts()).toEqual(['b', 'c', 'd'])
      expect(await memory.open('k', SCOPE)).toHaveLength(2)
    })

    test('that is surer than all of them settles them all', async () => {
      const { memory, verbs, put, texts } = await siblings('confident', 'a', ['b', 0.5], ['c', 0.5])
      const [open] = await memory.open('k', SCOPE)
      const last = await put('d', 3, 0.9)
      expect(await texts()).toEqual(['d'])
      expect((await memory.memory('k', SCOPE))?.heads).toEqual([last.version.version])
      expect(await memory.open('k', SCOPE)).toEqual([])
      const settled = { status: 'resolved', result: last.version.version }
      expect(await memory.conflict(open!.id)).toMatchObject(settled)
      // Every step is a version that names both it was made of: nothing is lost on the way.
      const made = (await memory.versions('k', SCOPE)).slice(-2)
      expect(made.map(({ parents }) => parents)).toEqual([
        [2, 4],
        [3, 5],
      ])
      const types = await verbs.eventTypes()
      expect(types.slice(-3)).toEqual(['memory.merged', 'memory.merged', 'memory.resolved'])
    })

    test('settles what was kept by hand before, once the newest counts', async () => {
      const { memory, put, texts } = await siblings('manual', 'a', ['b'], ['c'], ['d'])
      expect(await texts()).toEqual(['b', 'c', 'd'])
      await by('newest', memory)
      await put('e', 4)
      expect(await texts()).toEqual(['e'])
      expect(await memory.open('k', SCOPE)).toEqual([])
      expect(await memory.text('k', 3, SCOPE)).toBe('c')
    })

    test('is not compared with any number of them', async () => {
      const many = Array.from({ length: 20 }, (_, i): [string] => [`say ${i}`])
      const { memory, put, texts } = await siblings('manual', 'a', ...many)
      await by('newest', memory)
      await put('last', 99)
      // The rest goes on as before, each in a conflict of its own with the first.
      expect((await texts()).length).toBe(9)
      expect(await memory.open('k', SCOPE)).toHaveLength(8)
    })

    test('union: what one removed does not come back by what the other added', async () => {
      const { texts } = await siblings('union', '["a","b"]', ['["b"]'], ['["a","b","c"]'])
      expect(await texts()).toEqual(['["b","c"]'])
    })

    test('that would be longer than a note may be, merged, is kept beside', async () => {
      const long = (name: string) => JSON.stringify([name.repeat(600_000)])
      const { memory, texts } = await siblings('union', '[]', [long('a')], [long('b')])
      expect(await texts()).toHaveLength(2)
      const why = 'together they are longer than a note may be'
      expect(await memory.open('k', SCOPE)).toMatchObject([{ why }])
    })
  })
}
