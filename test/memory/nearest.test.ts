import { describe, expect, test } from 'vitest'
import { Nearest } from '../../src/daemon/embedding/nearest.ts'
import {
  cosine,
  fromBytes,
  fromHex,
  pack,
  type Packed,
  toBytes,
  toHex,
} from '../../src/daemon/embedding/vector.ts'

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
  test('is exact as long as it is small, and forgets what is removed or replaced', () => {
    const all = clustered(1_000, 20)
    const index = new Nearest(DIMENSIONS)
    for (const [i, vector] of all.entries()) index.put(String(i), 'a', vector)
    for (const query of clustered(20, 7)) {
      const ids = index.near(query, 10).map(({ id }) => id)
      expect(ids).toEqual(exactly(all, query, 10).map(({ id }) => id))
    }
    const [first] = index.near(all[5]!, 1)
    expect(first).toMatchObject({ id: '5' })
    index.remove('5')
    expect(index.near(all[5]!, 1)[0]!.id).not.toBe('5')
    index.put('6', 'a', all[5]!)
    expect(index.near(all[5]!, 1)[0]).toMatchObject({ id: '6' })
    expect(index.size).toBe(999)
    expect(index.near(all[5]!, 10, { least: 1.1 })).toEqual([])
  })

  test('finds nearly all of the nearest among many, and those of one group exactly', () => {
    const all = clustered(8_000, 100)
    const index = new Nearest(DIMENSIONS)
    for (const [i, vector] of all.entries())
      index.put(String(i), i % 100 === 0 ? 'few' : 'many', vector)
    let found = 0
    const queries = all.filter((_, i) => i % 400 === 3)
    for (const query of queries) {
      const ids = new Set(index.near(query, 10).map(({ id }) => id))
      for (const { id } of exactly(all, query, 10)) if (ids.has(id)) found += 1
    }
    expect(found / (10 * queries.length)).toBeGreaterThan(0.9)
    const few = all.map((each, i) => (i % 100 === 0 ? each : pack(each.parts.map(() => 0))))
    const ids = index.near(queries[0]!, 5, { group: 'few' }).map(({ id }) => id)
    expect(ids).toEqual(exactly(few, queries[0]!, 5).map(({ id }) => id))
    expect(index.near(queries[0]!, 5, { group: 'none' })).toEqual([])
  })

  test('copes with many that are the same', () => {
    const index = new Nearest(DIMENSIONS)
    const [same] = clustered(1, 1)
    for (let i = 0; i < 2_000; i += 1) index.put(String(i), 'a', same!)
    expect(index.near(same!, 3)).toHaveLength(3)
    for (let i = 0; i < 2_000; i += 1) index.remove(String(i))
    expect(index.near(same!, 3)).toEqual([])
  })
})
