import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { relative, resolve } from 'node:path'
import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import type { Effects } from '../../src/hooks/shell/effects.ts'
import { effectsOf } from '../../src/hooks/shell/script.ts'
import * as corpus from './shell_corpus.ts'
import { FORMS, LET_PAST, NOT_UNDERSTOOD, STARTED, WRITES_NOTHING } from './shell_forms.ts'
import { NOTICED, REFUSED } from './ways.ts'

const ROOT = '/repo'
const FOLDERS = new Set(['', '.git', 'src', 'docs', 'web'].map((name) => resolve(ROOT, name)))
const FILES = new Set(['a.ts', 'b.ts'].map((name) => resolve(ROOT, name)))
const PLACE = {
  cwd: ROOT,
  home: '/home/ada',
  isFolder: (path: string) => FOLDERS.has(path),
  isThere: (path: string) => FOLDERS.has(path) || FILES.has(path),
}

const shown = (path: string) => {
  const short = relative(ROOT, path)
  return short === '' ? '.' : short.startsWith('..') ? path : short
}

const NAMES = { file: 'write', tree: 'tree', glob: 'glob' }

function spell(effects: Effects): string[] {
  const commits = effects.commits.map(({ dir, all, paths }) => {
    const named = paths.length > 0 ? ` ${paths.map(shown).join(',')}` : ''
    return `commit ${all ? '-a ' : ''}${shown(dir)}${named}`
  })
  const patches = effects.patches.map(({ dir, file }) => {
    const where = dir === ROOT ? '' : ` in ${shown(dir)}`
    return `patch ${file === undefined ? '(text)' : shown(file)}${where}`
  })
  return [
    ...effects.writes.map(({ kind, path }) => `${NAMES[kind]} ${shown(path)}`),
    ...commits,
    ...effects.pushes.map((dir) => `push ${shown(dir)}`),
    ...effects.discards.map(({ what, dir, matching, ignored }) => {
      const those = matching ? ` ${matching.join(',')}` : ''
      return `discard ${what}${ignored ? '+ignored' : ''} ${shown(dir)}${those}`
    }),
    ...patches,
  ]
}

const TABLE = { ...corpus, FORMS, STARTED, NOT_UNDERSTOOD }
const PAGE = readFileSync(new URL('../../docs/hooks.md', import.meta.url), 'utf8')

describe.each(Object.entries(TABLE))('%s', (_, cases) => {
  test.each(cases.map(([command, ...effects]) => ({ command, effects })))(
    '$command',
    ({ command, effects }) => {
      expect(spell(effectsOf(command, PLACE)).toSorted()).toEqual(effects.toSorted())
    },
  )
})

test('nothing is let past but what the page says, with the reason', () => {
  const rows = Object.values(TABLE).flat()
  expect(rows.length + REFUSED.length + NOTICED.length).toBeGreaterThanOrEqual(337)
  const silent = rows.filter((row) => row.length === 1).map(([command]) => command)
  const known = new Set([...Object.values(LET_PAST).flat(), ...WRITES_NOTHING])
  expect(silent.filter((each) => !known.has(each))).toEqual([])
  for (const reason of Object.keys(LET_PAST)) expect(PAGE).toContain(reason)
})

/** Pieces that are closed in themselves; every one reads the same with any other beside it. */
const PIECES = [
  'a',
  'B9',
  '-x',
  '\\ ',
  '\\"',
  "\\'",
  '\\$',
  "'q u'",
  "'#'",
  "''",
  '"d q"',
  '"\\"in"',
  '"it\'s"',
  '"\\x"',
  '""',
  "$'t\\tn\\x41\\u00e9\\101'",
  'ü',
  '日',
  '=',
  ',',
  '@',
  '#',
  '%',
]

describe('splitting a command into words', () => {
  const word = fc.array(fc.constantFrom(...PIECES), { minLength: 1, maxLength: 5 })
  const command = fc.array(
    word.map((pieces) => `w${pieces.join('')}`),
    { minLength: 1, maxLength: 5 },
  )

  test('gives what bash gives', () => {
    const commands = fc.sample(command, { numRuns: 400, seed: 7 })
    const script = commands.map((words) => `printf '%s\\0' ${words.join(' ')}; printf '\\1'`)
    const env = { PATH: process.env['PATH'], LC_ALL: 'C.UTF-8' }
    const said = execFileSync('bash', ['--norc'], { input: script.join('\n'), env })
    const expected = said.toString('utf8').split('\u0001').slice(0, -1)
    const found = commands.map((words) => {
      const { writes } = effectsOf(`rm -- ${words.join(' ')}`, PLACE)
      return writes.map(({ path }) => `${relative(ROOT, path)}\0`).join('')
    })
    // What is written twice counts once.
    const distinct = expected.map((each) => [...new Set(each.match(/[^\0]*\0/g))].join(''))
    expect(found).toEqual(distinct)
  })

  test('never fails, whatever the text', () => {
    const pieces = [
      '$(',
      ')',
      '`',
      '"',
      "'",
      '<<',
      'EOF',
      '\n',
      '((',
      '${',
      '}',
      '>',
      '|',
      'case',
      ' ',
    ]
    const text = fc.array(fc.constantFrom(...pieces, 'rm', 'git commit', '[[', ']]'), {
      maxLength: 30,
    })
    fc.assert(
      fc.property(text, (parts) => {
        expect(() => effectsOf(parts.join(' '), PLACE)).not.toThrow()
      }),
      { numRuns: 2_000 },
    )
  })

  test('takes little time for a long or deep script', () => {
    const start_ms = performance.now()
    effectsOf('$('.repeat(50_000), PLACE)
    effectsOf(`rm ${'a '.repeat(50_000)}`, PLACE)
    effectsOf(`${'for f in a b c; do '.repeat(500)} rm $f`, PLACE)
    effectsOf(`cat <<EOF\n${'$(echo '.repeat(5_000)}\nEOF`, PLACE)
    expect(performance.now() - start_ms).toBeLessThan(2_000)
  })
})
