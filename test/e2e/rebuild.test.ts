import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { temporaryFolder } from '../support/helpers.ts'

/** Stands for the real build, which takes seconds: what it makes says which sources it saw. */
const BUILD = `
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
const { BUILT_FROM, sources } = createRequire(import.meta.url)('./bin/first-use.js')
mkdirSync('dist', { recursive: true })
const said = readFileSync('src/said.txt', 'utf8')
for (const name of ['cli', 'hook']) {
  writeFileSync('dist/' + name + '.cjs', 'process.stdout.write(' + JSON.stringify(said) + ')')
}
writeFileSync(BUILT_FROM, sources())
`

test('a checkout that has moved is built anew, in a git worktree too, but not by a hook', () => {
  const main = temporaryFolder()
  const tree = join(temporaryFolder(), 'tree')
  const git = (cwd: string, ...args: string[]) => {
    const who = ['-c', 'user.name=a', '-c', 'user.email=a@b', '-c', 'commit.gpgsign=false']
    return execFileSync('git', [...who, ...args], { cwd, encoding: 'utf8' })
  }
  const write = (cwd: string, said: string) => {
    writeFileSync(join(cwd, 'src/said.txt'), said)
    git(cwd, 'add', '-A')
    git(cwd, 'commit', '-qm', said)
  }
  const run = (cwd: string, ...args: string[]) =>
    execFileSync(process.execPath, [join(cwd, 'bin/leasehold'), ...args], { encoding: 'utf8' })
  git(main, 'init', '-q')
  cpSync('bin', join(main, 'bin'), { recursive: true })
  mkdirSync(join(main, 'src'))
  writeFileSync(join(main, '.gitignore'), 'node_modules\ndist\n.building\n')
  writeFileSync(join(main, 'build.mjs'), BUILD)
  writeFileSync(join(main, 'package-lock.json'), '{}')
  write(main, 'one')
  git(main, 'worktree', 'add', '-q', '-b', 'other', tree)
  for (const cwd of [main, tree]) {
    mkdirSync(join(cwd, 'node_modules/esbuild'), { recursive: true })
    expect(run(cwd)).toBe('one')
    write(cwd, 'two')
    expect(run(cwd, 'hook', 'claude'), 'a hook takes what is there').toBe('one')
    expect(run(cwd)).toBe('two')
    expect(run(cwd, 'hook', 'claude')).toBe('two')
  }
})

test('a package keeps the code that its first usual run compiled, of an update anew', () => {
  const folder = temporaryFolder()
  cpSync('bin', join(folder, 'bin'), { recursive: true })
  mkdirSync(join(folder, 'dist'))
  const cache = (name: string) => join(folder, 'dist', `${name}.cache`)
  const put = (letter: string) => {
    for (const name of ['cli', 'hook']) {
      const text = `//${letter.repeat(32)}\nprocess.stdout.write('${letter}')`
      writeFileSync(join(folder, 'dist', `${name}.cjs`), text)
    }
  }
  const run = (...args: string[]) =>
    execFileSync(process.execPath, [join(folder, 'bin/leasehold'), ...args], { encoding: 'utf8' })
  put('a')
  expect(run('doctor') + run('hook', 'claude', 'session-start')).toBe('aa')
  expect(['cli', 'hook'].map((name) => existsSync(cache(name)))).toEqual([false, false])
  for (const letter of ['a', 'b']) {
    put(letter)
    for (const [name, ...args] of [
      ['cli', 'lock', 'list'],
      ['hook', 'hook', 'claude', 'pre-tool-use'],
    ] as const) {
      expect(run(...args)).toBe(letter)
      const kept = readFileSync(cache(name))
      expect(kept.toString('latin1')).toContain(`${letter.repeat(32)} ${process.version}`)
      expect(run(...args)).toBe(letter)
      expect(readFileSync(cache(name)).equals(kept)).toBe(true)
    }
  }
  expect(readdirSync(join(folder, 'dist'))).toHaveLength(4)
})
