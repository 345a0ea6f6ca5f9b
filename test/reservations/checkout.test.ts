import { execFileSync } from 'node:child_process'
import { mkdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { checkoutAt, globIn, pathIn } from '../../src/machine/checkout.ts'
import { temporaryFolder } from '../support/helpers.ts'

function git(cwd: string, ...args: string[]): void {
  const who = ['-c', 'user.name=t', '-c', 'user.email=t@t']
  execFileSync('git', [...who, ...args], { cwd, stdio: 'pipe' })
}

/** A repository with a few files, and a folder beside it. */
function scene() {
  const dir = realpathSync(temporaryFolder())
  const repo = join(dir, 'my repo')
  mkdirSync(join(repo, 'src', 'größe'), { recursive: true })
  mkdirSync(join(repo, 'app', '[id]'), { recursive: true })
  mkdirSync(join(dir, 'state'))
  git(repo, 'init', '-q')
  for (const name of ['src/a.ts', 'src/größe/ä b.ts', 'app/[id]/p.ts']) {
    writeFileSync(join(repo, name), '')
  }
  git(repo, 'add', '-A')
  git(repo, 'commit', '-qm', 'begin')
  const options = { folder: join(dir, 'state'), isShared: false }
  return { dir, repo, options }
}

describe('the checkout around a folder', () => {
  test('is the top folder of git, from wherever one looks', () => {
    const { repo, options } = scene()
    const top = checkoutAt(repo, options)
    const repository = join(repo, '.git')
    expect(top).toEqual({ top: repo, checkout: repo, repository, inner: '' })
    expect(checkoutAt(join(repo, 'src', 'größe'), options)).toEqual(top)
    expect(checkoutAt(join(repo, 'not', 'there', 'yet'), options)).toEqual(top)
  })

  test('is another one in each worktree, of the same repository', () => {
    const { dir, repo, options } = scene()
    git(repo, 'worktree', 'add', '-q', join(dir, 'tree'))
    const tree = checkoutAt(join(dir, 'tree', 'src'), options)
    expect(tree).toEqual({
      top: join(dir, 'tree'),
      checkout: join(dir, 'tree'),
      repository: join(repo, '.git'),
      inner: '',
    })
    const config = { reservations: { scope: 'repository' } }
    writeFileSync(join(options.folder, 'config.json'), JSON.stringify(config))
    expect(checkoutAt(repo, options).checkout).toBe(join(repo, '.git'))
    expect(checkoutAt(join(dir, 'tree'), options).checkout).toBe(join(repo, '.git'))
    expect(checkoutAt(join(dir, 'tree'), options).top).toBe(join(dir, 'tree'))
  })

  test('of a submodule is its own, and names this machine where others use the store', () => {
    const { dir, repo, options } = scene()
    const outer = join(dir, 'outer')
    mkdirSync(outer)
    git(outer, 'init', '-q')
    git(outer, '-c', 'protocol.file.allow=always', 'submodule', '--quiet', 'add', repo, 'inner')
    const inner = checkoutAt(join(outer, 'inner', 'src'), { ...options, isShared: true })
    expect(inner.top).toBe(join(outer, 'inner'))
    expect(inner.checkout).toMatch(/^[^/]+:\/.*\/outer\/inner$/)
    expect(inner.repository).toMatch(/\/outer\/\.git\/modules\/inner$/)
  })

  test('without git is the folder that holds the state, else the folder itself', () => {
    const dir = realpathSync(temporaryFolder())
    mkdirSync(join(dir, 'project', 'src'), { recursive: true })
    const options = { folder: join(dir, 'project', '.leasehold'), isShared: false }
    const found = checkoutAt(join(dir, 'project', 'src'), options)
    expect(found).toEqual({
      top: join(dir, 'project'),
      checkout: join(dir, 'project'),
      repository: null,
      inner: '',
    })
    expect(checkoutAt(dir, options).top).toBe(dir)
  })
})

describe('a path', () => {
  test('has one name, however it is said', () => {
    const { dir, repo, options } = scene()
    const at = checkoutAt(repo, options)
    const src = join(repo, 'src')
    symlinkSync(src, join(repo, 'link'))
    symlinkSync(repo, join(dir, 'elsewhere'))
    for (const said of [
      'a.ts',
      './a.ts',
      '../src/a.ts',
      '../src//größe/../a.ts',
      join(repo, 'src', 'a.ts'),
      '../link/a.ts',
      join(dir, 'elsewhere', 'src', 'a.ts'),
    ]) {
      expect(pathIn(at, src, said), said).toBe('src/a.ts')
    }
    expect(pathIn(at, src, 'größe/ä b.ts')).toBe('src/größe/ä b.ts')
    expect(pathIn(at, src, '../link/new/x.ts')).toBe('src/new/x.ts')
    expect(pathIn(at, src, '..')).toBe('.')
    expect(pathIn(at, src, '..a')).toBe('src/..a')
  })

  test('that leads out of the checkout is not ours', () => {
    const { dir, repo, options } = scene()
    const at = checkoutAt(repo, options)
    symlinkSync(join(dir, 'state'), join(repo, 'out'))
    for (const said of ['..', '../my repo2/x', '/etc/passwd', 'out/x', 'src/../../x']) {
      expect(pathIn(at, repo, said), said).toBeUndefined()
      expect(() => globIn(at, repo, said)).toThrow('is not in this checkout')
    }
    expect(() => globIn(at, repo, '../*.ts')).toThrow('is not in this checkout')
  })
})

describe('a glob', () => {
  test.each([
    ['a.ts', 'src/a.ts'],
    ['*.ts', 'src/*.ts'],
    ['../**/*.{ts,js}', './**/*.{ts,js}'],
    ['../app/*/p.ts', 'app/*/p.ts'],
    ['größe', 'src/größe/'],
    ['größe/', 'src/größe/'],
    ['new/', 'src/new/'],
    ['..', './'],
    ['../app/[id]/p.ts', String.raw`app/\[id\]/p.ts`],
    [String.raw`../app/\[id\]/p.ts`, String.raw`app/\[id\]/p.ts`],
    ['../app/[ij]d/p.ts', 'app/[ij]d/p.ts'],
  ])('%s said in src means %s', (said, meant) => {
    const { repo, options } = scene()
    expect(globIn(checkoutAt(repo, options), join(repo, 'src'), said)).toBe(meant)
  })
})
