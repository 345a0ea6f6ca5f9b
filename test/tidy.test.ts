import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { PAGE_RULES } from './tidy_pages.ts'
import { BAD, FINE } from './tidy_samples.ts'
import { type Fault, SHAPE_RULES, type TreeFile, treeFile } from './tidy_rules.ts'
import { WORD_RULES } from './tidy_words.ts'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const RULES = { ...SHAPE_RULES, ...WORD_RULES, ...PAGE_RULES }
const TEXT = /\.(?:tsx?|mjs|js|sql|py|sh|md|json|ya?ml|html|css)$|^(?:\.ci|bin)\/|^\.\w+rc$/
/** The last is what a hunt for flakes has kept. */
const NOT_OURS = new Set(['node_modules', 'dist', '.git', '.leasehold', '/flakes'])

function pathsUnder(folder: string): string[] {
  return readdirSync(join(ROOT, folder), { withFileTypes: true }).flatMap((found) => {
    const path = folder ? `${folder}/${found.name}` : found.name
    if (NOT_OURS.has(found.name) || NOT_OURS.has(`/${path}`)) return []
    return found.isDirectory() ? pathsUnder(path) : [path]
  })
}

const tree: TreeFile[] = pathsUnder('')
  .filter((path) => TEXT.test(path))
  .map((path) => treeFile(path, readFileSync(join(ROOT, path), 'utf8')))

/** Fails with one fault per line, each a place to click on. */
function expectNone(faults: Fault[]): void {
  expect(faults.join('\n')).toBe('')
}

describe('the tree keeps the rules of the house', () => {
  test('there is a tree to look at', () => {
    const paths = tree.map((file) => file.path)
    expect(paths).toContain('src/core/locks/lock.ts')
    expect(paths).toContain('package-lock.json')
  })

  for (const [name, rule] of Object.entries(RULES)) {
    test(`${name}: ${rule.says}`, () => expectNone(rule.faults(tree)))
  }
})

describe('every rule can fail, and says where', () => {
  for (const { rule, files, at } of BAD) {
    const [path, text] = Object.entries(files).at(-1)!
    test(`${rule} sees ${path}: ${text.trim().split('\n').at(-1)!.slice(0, 60)}`, () => {
      const faults = RULES[rule].faults(Object.entries(files).map((each) => treeFile(...each)))
      expect(faults.map((fault) => fault.split(' ')[0])).toContain(at)
    })
  }

  test('no rule is without a bad sample', () => {
    const proved = new Set<string>(BAD.map(({ rule }) => rule))
    expect(Object.keys(RULES).filter((name) => !proved.has(name))).toEqual([])
  })
})

describe('no rule is alarmed by what is fine', () => {
  for (const [path, text] of FINE) {
    test(`${path}: ${text.trim().split('\n')[0]!.slice(0, 60)}`, () => {
      const file = treeFile(path, text)
      const others = ['src/core/locks/lock.ts', 'src/core/view.ts'].map((each) =>
        treeFile(each, ''),
      )
      const faults = Object.values(RULES).flatMap((rule) => rule.faults([...others, file]))
      expectNone(faults.filter((fault) => fault.startsWith(path)))
    })
  }
})
