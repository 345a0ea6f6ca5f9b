import { describe, expect, test } from 'vitest'
import {
  cosine,
  fromBytes,
  fromHex,
  Nearest,
  pack,
  type Packed,
  toBytes,
  toHex,
} from '../../src/daemon/embedding/vectors.ts'

const DIMENSIONS = 64

/** Numbers that look drawn at random, and are the same every time. */
function drawing(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 31 - 1
  }
}

/** Vectors in clusters of very different sizes, as texts are about topics. */
function clustered(count: number, topics: number): Packed[] {
  const draw = drawing(11)
  const vector = () => Array.from({ length: DIMENSIONS }, draw)
  const middles = Array.from({ length: topics }, vector)
  return Array.from({ length: count }, (_, i) => {
    const middle = middles[Math.floor(Math.abs(draw() * draw()) * topics)] ?? middles[i % topics]!
    return pack(middle.map((part) => part + 0.6 * draw()))
  })
}

const exactly = (all: Packed[], query: Packed, limit: number) =>
  all
    .map((each, i) => ({ id: String(i), similarity: cosine(each, query) }))
    .toSorted((a, b) => b.similarity - a.similarity)
    .slice(0, limit)

describe('vectors as bytes', () => {
  test('keep their direction, and come back as they were', () => {
    const draw = drawing(3)
    for (let i = 0; i < 50; i += 1) {
      const [a, b] = [0, 1].map(() => Array.from({ length: 512 }, draw)) as [number[], number[]]
      const dot = (x: number[], y: number[]) => x.reduce((sum, part, j) => sum + part * y[j]!, 0)
      const exact = dot(a, b) / Math.sqrt(dot(a, a) * dot(b, b))
      const [x, y] = [pack(a), pack(b)]
      expect(Math.abs(cosine(x, y) - exact)).toBeLessThan(0.01)
      expect(cosine(x, x)).toBeCloseTo(1, 2)
      expect(cosine(fromBytes(toBytes(x)), y)).toBeCloseTo(cosine(x, y), 5)
      expect(fromHex(toHex(x)).parts).toEqual(x.parts)
    }
    expect(cosine(pack([0, 0]), pack([1, 0]))).toBe(0)
    expect(() => pack([Number.NaN])).toThrow(/no numbers/)
  })
})

describe('the index', () => {
  test('is exact, and forgets what is removed or replaced', async () => {
    const all = clustered(9_000, 20)
    const index = new Nearest()
    for (const [i, vector] of all.entries()) index.add(String(i), 'a', vector)
    for (const query of clustered(5, 7)) {
      const near = await index.near(query, 10)
      expect(near.map(({ id }) => id)).toEqual(exactly(all, query, 10).map(({ id }) => id))
    }
    const nearest = async () => (await index.near(all[5]!, 1))[0]!.id
    expect(await nearest()).toBe('5')
    index.remove('5')
    expect(await nearest()).not.toBe('5')
    index.remove('6')
    index.add('6', 'a', all[5]!)
    expect(await nearest()).toBe('6')
    expect(index.size).toBe(8_999)
    expect(await index.near(all[5]!, 10, { least: 1.1 })).toEqual([])
    // Of a note whose versions disagree the nearest counts, and the note once.
    index.add('6', 'a', all[7]!)
    index.remove('7')
    for (const query of [all[5]!, all[7]!]) expect((await index.near(query, 1))[0]!.id).toBe('6')
    expect(index.size).toBe(8_998)
  })

  test('looks at some scopes only', async () => {
    const all = clustered(1_000, 10)
    const index = new Nearest()
    const scopeAt = (i: number) => (i % 100 === 0 ? 'few' : i % 3 === 0 ? 'some' : 'many')
    for (const [i, vector] of all.entries()) index.add(String(i), scopeAt(i), vector)
    const near = await index.near(all[3]!, 500, { scopes: ['few', 'some'] })
    const wanted = exactly(all, all[3]!, 1_000).filter(({ id }) => scopeAt(Number(id)) !== 'many')
    expect(near.map(({ id }) => id).toSorted()).toEqual(wanted.map(({ id }) => id).toSorted())
    expect(await index.near(all[3]!, 5, { scopes: ['none'] })).toEqual([])
  })

  test('gives others their turn, and may change meanwhile', async () => {
    const [same] = clustered(1, 1)
    const index = new Nearest()
    for (let i = 0; i < 20_000; i += 1) index.add(String(i), 'a', same!)
    let turns = 0
    const counting = setImmediate(function count() {
      turns += 1
      index.remove(String(turns))
      if (turns < 3) setImmediate(count)
    })
    expect(await index.near(same!, 3)).toHaveLength(3)
    clearImmediate(counting)
    expect(turns).toBeGreaterThan(1)
    for (let i = 0; i < 20_000; i += 1) index.remove(String(i))
    expect(await index.near(same!, 3)).toEqual([])
  })
})
