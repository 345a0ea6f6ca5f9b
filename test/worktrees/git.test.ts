import { existsSync, mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { commitOf, git, gitList, repositoryAt, tryGit } from '../../src/machine/git.ts'
import { gitIn, gitRepo } from '../support/git_repo.ts'
import { expectRefusal, temporaryFolder } from '../support/helpers.ts'

test('git is asked without the hooks of the repository and the environment of others', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'räpo with spaces'))
  const hook = join(repo.top, '.git/hooks/post-checkout')
  writeFileSync(hook, `#!/bin/sh\ntouch "${repo.top}/hooked"\n`, { mode: 0o755 })
  process.env['GIT_DIR'] = '/nowhere'
  try {
    expect(await gitList(repo.top, ['ls-files', '-z'])).toEqual(['.gitignore', 'a.txt'])
    await git(repo.top, ['checkout', '-q', '-b', 'other'])
  } finally {
    delete process.env['GIT_DIR']
  }
  expect(existsSync(join(repo.top, 'hooked'))).toBe(false)
  expect(await git(repo.top, ['hash-object', '--stdin'], { input: 'x' })).toMatch(/^[0-9a-f]{40}$/)
  expect(await commitOf(repo.top, 'other')).toBe(repo.head())
  expect(await commitOf(repo.top, '--all')).toBeUndefined()
  // A look that failed is no answer: what it was about may well be there.
  await expectRefusal(commitOf(temporaryFolder(), 'other'), 'illegal_move')
})

test('what git refuses is a refusal in its own words; no git is told apart from it', async () => {
  const repo = gitRepo(temporaryFolder())
  const refused = await expectRefusal(git(repo.top, ['checkout', 'nowhere']), 'illegal_move')
  expect(refused.message).toMatch(/git checkout failed \(exit 1\): .*nowhere/)
  const gone = await expectRefusal(tryGit('/no/such/folder', ['status']), 'unavailable')
  expect(gone.message).toContain('there is no folder /no/such/folder')
  const slow = await expectRefusal(
    tryGit(repo.top, ['-c', 'alias.wait=!exec sleep 20', 'wait'], { timeout_ms: 50 }),
    'unavailable',
  )
  expect(slow.message).toContain('took more than')
})

test('a folder is told where its repository is, or why no worktree can be made there', async () => {
  const folder = temporaryFolder()
  const repo = gitRepo(join(folder, 'repo'), { 'web/ü/x': '1' })
  const common = join(repo.top, '.git')
  expect(await repositoryAt(join(repo.top, 'web/ü'))).toEqual({
    common,
    top: repo.top,
    inside: 'web/ü',
  })
  repo.git('worktree', 'add', '-q', join(folder, 'beside'))
  expect((await repositoryAt(join(folder, 'beside'))).common).toBe(common)
  const why = async (path: string) => (await expectRefusal(repositoryAt(path), 'invalid')).message
  mkdirSync(join(folder, 'plain'))
  expect(await why(join(folder, 'plain'))).toContain('is not in a git repository')
  gitIn(folder, 'init', '-q', 'empty')
  expect(await why(join(folder, 'empty'))).toContain('has no commit yet')
  gitIn(folder, 'clone', '-q', '--bare', repo.top, 'bare.git')
  expect(await why(join(folder, 'bare.git'))).toContain('is a bare repository')
})
