import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test, vi } from 'vitest'
import { stagedPaths } from '../../src/hooks/git_facts.ts'
import { git as quiet, tryGit } from '../../src/machine/git.ts'
import { sandbox } from '../support/processes.ts'

/** A repository that names a program wherever git takes one; each leaves a witness. */
function armed() {
  const place = sandbox()
  const repo = place.path('repo')
  const witnesses = place.path('witnesses')
  mkdirSync(witnesses)
  const home = { HOME: place.home, GIT_CONFIG_NOSYSTEM: '1' }
  const git = (...args: string[]) =>
    execFileSync('git', args, { cwd: repo, env: { PATH: process.env['PATH'], ...home } })
  mkdirSync(repo)
  git('init', '-q', '-b', 'main')
  for (const [key, value] of [
    ['name', 'Ada'],
    ['email', 'ada@example.com'],
  ]) {
    git('config', `user.${key}`, value!)
  }
  const leave = (name: string, then = 'cat') => `touch '${join(witnesses, name)}'; ${then}`
  const attributes = '*.txt filter=evil diff=evil merge=evil\n*.own filter=a=b\n*.lfs filter=lfs\n'
  writeFileSync(join(repo, '.gitattributes'), attributes)
  for (const name of ['a.txt', 'b.own', 'c.lfs']) writeFileSync(join(repo, name), 'one\ntwo\n')
  git('add', '.')
  git('commit', '-q', '-m', 'Begin')
  for (const [key, value] of Object.entries({
    'filter.evil.clean': leave('clean'),
    'filter.evil.smudge': leave('smudge'),
    'filter.evil.process': leave('process'),
    'filter.evil.required': 'true',
    'filter.a=b.clean': leave('named'),
    'filter.a=b.smudge': leave('named'),
    'diff.evil.textconv': leave('textconv'),
    'diff.evil.command': leave('command', 'true'),
    'diff.external': leave('external', 'true'),
    'merge.evil.driver': leave('driver', 'true'),
    'core.fsmonitor': leave('fsmonitor', 'false'),
    // What is missing is fetched by any git that looks for it.
    'core.repositoryFormatVersion': '1',
    'extensions.partialClone': 'evil',
    'protocol.ext.allow': 'always',
    'remote.evil.promisor': 'true',
    'remote.evil.url': `ext::sh -c touch% ${join(witnesses, 'ext')}`,
    'alias.status': `!${leave('alias')}`,
    'alias.evil': `!${leave('alias')}`,
  })) {
    git('config', key, value)
  }
  for (const hook of [
    'post-checkout',
    'pre-commit',
    'post-index-change',
    'reference-transaction',
  ]) {
    mkdirSync(join(repo, '.git/hooks'), { recursive: true })
    const file = join(repo, '.git/hooks', hook)
    writeFileSync(file, `#!/bin/sh\n${leave(hook, 'true')}\n`, { mode: 0o755 })
  }
  vi.stubEnv('HOME', place.home)
  vi.stubEnv('XDG_CONFIG_HOME', undefined)
  const left = () => readdir(witnesses)
  return { place, repo, git, witnesses, left }
}

const readdir = (folder: string) =>
  execFileSync('ls', [folder], { encoding: 'utf8' }).split('\n').filter(Boolean)

test('our own git starts nothing that a repository names, and what its login does', async () => {
  const { place, repo, git, left, witnesses } = armed()
  // What a person has set for the whole login is that person's word, over the repository's.
  const lfs = `touch '${join(witnesses, 'lfs')}'; tr a-z A-Z`
  writeFileSync(
    join(place.home, '.gitconfig'),
    `[filter "lfs"]\n\tclean = ${JSON.stringify(lfs)}\n`,
  )
  writeFileSync(join(repo, 'a.txt'), 'one\nmine\n')
  writeFileSync(join(repo, 'b.own'), 'changed\n')
  await quiet(repo, ['status', '--porcelain'])
  await quiet(repo, ['diff', '--quiet'], {}).catch(() => undefined)
  await quiet(repo, ['add', '.'])
  await quiet(repo, ['commit', '-q', '-m', 'Mine'])
  const tree = place.path('tree')
  await quiet(repo, ['worktree', 'add', '-q', '-b', 'other', tree, 'HEAD~1'])
  expect(readFileSync(join(tree, 'a.txt'), 'utf8')).toBe('one\ntwo\n')
  writeFileSync(join(tree, 'a.txt'), 'theirs\ntwo\n')
  await quiet(tree, ['commit', '-q', '-a', '-m', 'Theirs'])
  expect(await tryGit(tree, ['merge', '-q', 'main'])).toMatchObject({ code: 1 })
  // No side was taken without a word.
  expect(readFileSync(join(tree, 'a.txt'), 'utf8')).toContain('<<<<<<<')
  stagedPaths(repo)
  await tryGit(repo, ['fetch', '-q', 'evil'])
  await tryGit(repo, ['cat-file', '-p', '1'.repeat(40)])
  expect(left().filter((name) => name !== 'lfs')).toEqual([])
  writeFileSync(join(repo, 'c.lfs'), 'big\n')
  await quiet(repo, ['add', 'c.lfs'])
  expect(existsSync(join(witnesses, 'lfs'))).toBe(true)
  expect(await quiet(repo, ['show', ':c.lfs'])).toBe('BIG')
  // And with it, a repository's own does not come back.
  git('config', 'filter.lfs.clean', `touch '${join(witnesses, 'local')}'; cat`)
  writeFileSync(join(repo, 'c.lfs'), 'bigger\n')
  await quiet(repo, ['add', 'c.lfs'])
  expect(await quiet(repo, ['show', ':c.lfs'])).toBe('BIGGER')
  expect(left()).toEqual(['lfs'])
})
