import * as fc from 'fast-check'
import type { MemoryVersion } from '../../src/core/schema/memory.ts'
import { describe, expect, test } from 'vitest'
import { unionOf } from '../../src/core/memory/json_union.ts'
import { draftOf, mergeSides, type MergeSide } from '../../src/core/memory/merge.ts'
import { textTools } from '../../src/operations/text_merge.ts'
import { CASES } from './merge_cases.ts'

const ROW: MemoryVersion = {
  ...{ id: '', memory_id: '', version: 1, parents: [], kind: 'put', strategy: null },
  ...{ author: '', task_id: null, fence: null, confidence: null, tags: [], hash: '', size: 0 },
  ...{ kept: true, created_at: '', created_ms: 0, expires_ms: null },
}

const lines = (text: string | null) => text?.replaceAll('/', '\n') ?? null

const sideOf = (version: number, author: string, text: string | null): MergeSide => ({
  row: { ...ROW, version, author },
  content: lines(text),
})

describe('a merge', () => {
  test.each(CASES)('$strategy: $name', ({ strategy, base, ours, theirs, merged, draft }) => {
    const [o, t] = [sideOf(2, 'ada', ours), sideOf(3, 'bob', theirs)]
    const sides = { base: () => lines(base), ours: () => o, theirs: () => t }
    const got = mergeSides(strategy, sides, textTools)
    if (merged !== undefined) expect(got).toMatchObject({ content: lines(merged) })
    else {
      expect(got).toHaveProperty('why')
      expect(draftOf(lines(base), o, t, textTools)).toBe(lines(draft!))
    }
  })

  test('has at least 30 cases, clean and open ones of each strategy', () => {
    const of = (strategy: string, isClean: boolean) =>
      CASES.filter((each) => each.strategy === strategy && 'merged' in each === isClean).length
    expect(CASES.length).toBeGreaterThanOrEqual(30)
    expect(of('text', true) * of('text', false) * of('union', true) * of('union', false)).not.toBe(
      0,
    )
  })

  test('of the two sides the other way round says the same, where it is clean', () => {
    for (const { strategy, base, ours, theirs, merged } of CASES) {
      if (merged === undefined || strategy === 'union') continue
      const [o, t] = [sideOf(2, 'ada', ours), sideOf(3, 'bob', theirs)]
      const sides = { base: () => lines(base), ours: () => t, theirs: () => o }
      expect(mergeSides(strategy, sides, textTools)).toMatchObject({ content: lines(merged) })
    }
  })

  test('of lists keeps what neither removed, and what either added', () => {
    const list = fc.uniqueArray(fc.integer({ min: 0, max: 9 }))
    fc.assert(
      fc.property(list, list, list, (base, ours, theirs) => {
        const sides = [base, ours, theirs].map((each) => JSON.stringify(each))
        const merged = JSON.parse(unionOf(sides[0]!, sides[1]!, sides[2]!)!) as number[]
        const isKept = (n: number) =>
          base.includes(n) ? ours.includes(n) && theirs.includes(n) : true
        const wanted = [...new Set([...ours, ...theirs])].filter(isKept)
        expect(merged).toEqual(wanted)
      }),
    )
  })

  test('that would hold up everybody is not tried', () => {
    const same = '\n'.repeat(500_000)
    const began_ms = performance.now()
    const labels = { ours: 'a', theirs: 'b' }
    expect(textTools.merge(`x${same}`, `y${same}a`, `z${same}b`, labels)).toBeUndefined()
    expect(textTools.merge(null, `y${same}a`, `z${same}b`, labels)).toBeUndefined()
    // Long texts that have little in common, or nearly all, are no trouble.
    const long = Array.from({ length: 20_000 }, (_, i) => `line ${i}`).join('\n')
    const merged = textTools.merge(long, `first\n${long}`, `${long}\nlast`, labels)
    expect(merged).toBeUndefined()
    expect(performance.now() - began_ms).toBeLessThan(5_000)
  })
})
