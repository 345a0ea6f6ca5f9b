import { readdirSync, readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkFile } from '../../src/daemon/config/schema.ts'
import { type Block, blocksOf, isShown, stepsOf } from './blocks.ts'
import { play } from './player.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const SHELL = new Set(['sh', 'console'])
const PAGES = [
  'README.md',
  'examples/claude-code/README.md',
  ...readdirSync(join(ROOT, 'docs'), { recursive: true })
    .map((name) => `docs/${String(name)}`)
    .filter((path) => path.endsWith('.md'))
    .toSorted(),
]
const blocks = PAGES.flatMap((path) => blocksOf(path, readFileSync(join(ROOT, path), 'utf8')))
const isRun = ({ language, unrun }: Block) => SHELL.has(language) && unrun === undefined

describe('every command of the pages works as written', () => {
  const run = blocks.filter(isRun)
  const pages = PAGES.filter((path) => run.some(({ at }) => at.startsWith(`${path}:`)))
  test.each(pages)('%s', async (path) => {
    const steps = run.filter(({ at }) => at.startsWith(`${path}:`)).flatMap(stepsOf)
    expect((await play(steps)).join('\n')).toBe('')
  })
})

test('every configuration that the pages show is one', () => {
  const shown = blocks.filter(({ language }) => language === 'json')
  const problems = shown.map(({ at, lines }) => {
    const raw = JSON.parse(lines.join('\n')) as object
    return [at, 'mcpServers' in raw ? [] : checkFile(raw).problems]
  })
  expect(problems.filter(([, found]) => found!.length > 0)).toEqual([])
})

describe('no command of the pages hides from that', () => {
  test('commands stand in blocks of the shell', () => {
    const hidden = blocks.filter(({ language, lines }) => {
      return !SHELL.has(language) && lines.some((line) => /^(?:\$ |leasehold |npm |lh )/.test(line))
    })
    expect(hidden.map(({ at }) => at)).toEqual([])
  })

  test('what is not run says why, in words', () => {
    const unrun = blocks.filter((block) => SHELL.has(block.language) && block.unrun !== undefined)
    expect(unrun.filter((block) => block.unrun!.split(' ').length < 3)).toEqual([])
  })

  test('a wrong command, a wrong exit code and a wrong output are noticed', async () => {
    const page = '```sh\nleasehold lock aquire x\nleasehold lock list   # exits 6\n```\n'
    const shown = '```console\n$ leasehold lock list\nsomething else\n```\n'
    const faults = await play(blocksOf('page.md', page + shown).flatMap(stepsOf))
    expect(faults.map((fault) => fault.split(' ')[0])).toEqual([
      'page.md:1',
      'page.md:1',
      'page.md:5',
    ])
    expect(isShown('held by … until …', 'held by a1 until noon')).toBe(true)
    expect(isShown('held by … until …', 'free')).toBe(false)
  })
})

test('the workflow tries the Nodes that npm run package tries, and the page names them', () => {
  const read = (path: string) => readFileSync(join(ROOT, path), 'utf8')
  const listed = (text: string, pattern: RegExp) => pattern.exec(text)![1]!.match(/[\d.]+/g)
  const nodes = listed(read('lab/package/main.ts'), /NODES = .*\[(.*)\]/)
  expect(nodes).toHaveLength(5)
  expect(listed(read('.github/workflows/package.yml'), /node: \[(.*)\]/)).toEqual(nodes)
  expect(read('docs/install.md')).toContain('20.19.0, the newest 20, 22, 24.0 and the newest 24')
})
