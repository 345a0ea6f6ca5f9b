import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { literalGlob, overlaps, parseGlob } from '../../src/core/paths/glob.ts'
import { oracleOf } from '../support/glob_oracle.ts'

const RUNS = process.env['FAULTS'] === 'long' ? 20_000 : 1_000

/**
 * Every path of up to four names of up to two characters. That is enough to show what two globs
 * below have in common: a name of two pieces needs no more than two characters, of which each is
 * `a` or `b`, and two globs of three parts no more than four names.
 */
const NAMES = ['a', 'b', 'aa', 'ab', 'ba', 'bb']
const DEEPER = (paths: string[]) => paths.flatMap((path) => NAMES.map((name) => `${path}/${name}`))
const TWO = DEEPER(NAMES)
const THREE = DEEPER(TWO)
const PATHS = [...NAMES, ...TWO, ...THREE, ...DEEPER(THREE)]

const piece = fc.constantFrom('a', 'b', '*', '?', '[ab]', '[!a]', '[a-b]', '\\a', '{a,b}', '{?,a}')
const name = fc
  .array(piece, { minLength: 1, maxLength: 2 })
  .map((pieces) => pieces.join('').replace('**', '*'))
const part = fc.oneof({ weight: 4, arbitrary: name }, { weight: 1, arbitrary: fc.constant('**') })
const glob = fc.oneof(
  { weight: 6, arbitrary: fc.array(part, { minLength: 1, maxLength: 3 }).map((p) => p.join('/')) },
  { weight: 1, arbitrary: fc.tuple(part, part).map(([x, y]) => `{${x},${y}}`) },
  { weight: 1, arbitrary: fc.tuple(part, part, part).map(([x, y, z]) => `${x}/{${y},${z}}`) },
  { weight: 1, arbitrary: fc.tuple(part, part).map(([x, y]) => `${x}/{${y},b/}`) },
  { weight: 1, arbitrary: fc.tuple(part, part).map(([x, y]) => `${x}/${y}/`) },
)

describe('two globs', () => {
  test('overlap if and only if there is a path that both match', () => {
    let both = 0
    fc.assert(
      fc.property(glob, glob, (one, other) => {
        const [inOne, inOther] = [oracleOf(one), oracleOf(other)]
        const exists = PATHS.some((path) => inOne(path) && inOther(path))
        if (exists) both += 1
        expect({ one, other, overlaps: overlaps(parseGlob(one), parseGlob(other)) }).toEqual({
          one,
          other,
          overlaps: exists,
        })
      }),
      { numRuns: RUNS },
    )
    // Neither answer is rare, or the property would say little.
    expect(both).toBeGreaterThan(RUNS / 10)
    expect(both).toBeLessThan(RUNS * 0.9)
  })

  test('overlap in both directions, and each with itself', () => {
    fc.assert(
      fc.property(glob, glob, (one, other) => {
        const [a, b] = [parseGlob(one), parseGlob(other)]
        expect(overlaps(a, b)).toBe(overlaps(b, a))
        expect(overlaps(a, a)).toBe(true)
      }),
      { numRuns: RUNS },
    )
  })
})

describe('a glob', () => {
  test('matches the paths that it is said to match, and no others', () => {
    fc.assert(
      fc.property(glob, fc.constantFrom(...PATHS), (text, path) => {
        const said = overlaps(parseGlob(text), parseGlob(literalGlob(path)))
        expect({ text, path, said }).toEqual({ text, path, said: oracleOf(text)(path) })
      }),
      { numRuns: RUNS * 4 },
    )
  })

  test('made from a path has that path alone, whatever its characters', () => {
    const odd = fc.string({
      unit: fc.constantFrom(...Array.from(String.raw`a*?[]{}!+@()\,-^ é😀`)),
      minLength: 1,
      maxLength: 8,
    })
    fc.assert(
      fc.property(odd, odd, (one, other) => {
        const glob_of = (path: string) => parseGlob(literalGlob(path))
        expect(overlaps(glob_of(one), glob_of(other))).toBe(one === other)
      }),
      { numRuns: RUNS },
    )
  })

  test.each([
    ['src/**', 'src', true],
    ['src/**', 'src/a/b.ts', true],
    ['src/', 'src/a', true],
    ['.', '.git/config', true],
    ['*', '.env', true],
    ['*', 'a/b', false],
    ['**/*.ts', 'a.ts', true],
    ['src/**/x/**/y', 'src/x/y', true],
    ['src/**/x/**/y', 'src/a/x/b/c/y', true],
    ['src/*.{ts,tsx}', 'src/a.tsx', true],
    ['{src,test}/**', 'tests/a', false],
    ['a{b,{c,d}e}f', 'adef', true],
    ['[!a-y]', 'z', true],
    ['[]a]', ']', true],
    ['[é-ü]', 'ö', true],
    ['?', '😀', true],
    ['./src//a', 'src/a', true],
  ])('%s and %s: %s', (text, path, said) => {
    expect(overlaps(parseGlob(text), parseGlob(literalGlob(path)))).toBe(said)
  })

  test.each([
    ['a**', 'stands alone'],
    ['***', 'two *'],
    ['{a}', 'need a comma'],
    ['{1..3}', 'need a comma'],
    ['{a,b', 'a { without a }'],
    ['a}', 'a } without a {'],
    ['[ab', 'a [ without a ]'],
    ['[b-a]', 'backwards'],
    ['[[:alpha:]]', 'named classes'],
    ['[a/b]', 'part of a name'],
    ['@(a|b)', '@( is not known'],
    ['!src', 'left out'],
    ['a\\', 'nothing behind it'],
    ['/etc', 'begins in its checkout'],
    ['a/../b', 'may not contain ..'],
    ['{a,..}/b', 'no file is ..'],
    ['', 'is empty'],
    ['{,}', 'is no path'],
  ])('%s is refused, with the position', (text, why) => {
    expect(() => parseGlob(text)).toThrow(why)
    expect(() => parseGlob(text)).toThrow(/position \d/)
  })

  test('that would take long to compare is refused, and the largest is compared fast', () => {
    for (const text of ['{a,b}'.repeat(7), 'a'.repeat(1025), `{${'a,'.repeat(64)}a}`]) {
      expect(() => parseGlob(text)).toThrow('too large')
    }
    const one = parseGlob('*a'.repeat(512))
    const other = parseGlob('*b'.repeat(512))
    const begun = performance.now()
    expect(overlaps(one, other)).toBe(false)
    expect(performance.now() - begun).toBeLessThan(1_000)
  })
})
