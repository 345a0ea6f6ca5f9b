import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { GitRepo, gitIn, gitRepo } from '../support/git_repo.ts'
import { expectRefusal, temporaryFolder } from '../support/helpers.ts'
import { Trees } from '../support/trees.ts'

let trees: Trees
beforeAll(() => {
  trees = new Trees()
})
afterAll(() => trees.store.close())

const made: Trees['made'] = (...asked) => trees.made(...asked)

/** Every file of a commit, with what is in it. */
const filesAt = (repo: GitRepo, ref: string) =>
  Object.fromEntries(
    repo
      .git('-c', 'core.quotePath=false', 'ls-tree', '-r', '--name-only', ref)
      .split('\n')
      .map((path) => [path, repo.git('show', `${ref}:${path}`)]),
  )

test('all that a run left is saved: staged, new, deleted, hidden, ignored', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'räpo'), {
    'a.txt': 'a',
    'gone.txt': 'x',
    'hidden.txt': 'h',
    'skipped.txt': 's',
    folder: 'was a file',
  })
  repo.commit('Ignore', { '.gitignore': '*.log\nbuild/\n' })
  const { tree, end, keep, row, saved, worktree } = await made(repo.top)
  tree.write({ 'a.txt': 'staged' }).git('add', 'a.txt')
  tree.write({ 'a.txt': 'written', 'new ü/ b': 'new', 'run.log': 'small', 'build/x': 'built' })
  tree.write({ 'big.log': 'x'.repeat(2000) })
  tree.git('rm', '-q', 'gone.txt')
  tree.git('update-index', '--assume-unchanged', 'hidden.txt')
  tree.git('update-index', '--skip-worktree', 'skipped.txt')
  rmSync(join(worktree.path, 'folder'))
  tree.write({ 'hidden.txt': 'hidden edit', 'skipped.txt': 'skipped edit', 'folder/file': 'now' })
  writeFileSync(join(repo.top, '.git/worktrees', 'x.lock'), '')
  writeFileSync(join(repo.top, `.git/worktrees/${worktree.path.split('/').at(-1)}/index.lock`), '')
  const before = tree.git('status', '--porcelain')
  await end()
  await keep('settle')
    .then(() => row())
    .then((left) => expect(left?.state).toBe('left'))
  expect(filesAt(repo, saved)).toEqual({
    '.gitignore': '*.log\nbuild/',
    'a.txt': 'written',
    'hidden.txt': 'hidden edit',
    'skipped.txt': 'skipped edit',
    'folder/file': 'now',
    'new ü/ b': 'new',
    'run.log': 'small',
  })
  expect(repo.git('show', `${saved}^2:a.txt`)).toBe('staged')
  expect((await row())?.salvage?.left_out).toEqual(['big.log (ignored, 2000 bytes)'])
  // The worktree is as it was; its stale lock is gone, and no lock of others.
  expect(tree.git('status', '--porcelain')).toBe(before)
  expect(existsSync(join(repo.top, '.git/worktrees/x.lock'))).toBe(true)
})

test('what a person changed after it was saved is kept, and what is cloned into it', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  const one = await made(repo.top)
  one.tree.write({ 'a.txt': 'agent' })
  await one.end()
  await one.keep('settle')
  one.tree.write({ 'a.txt': 'person' })
  expect(await one.keep('remove')).toBe('it has changes that are not committed')
  expect(readFileSync(join(one.worktree.path, 'a.txt'), 'utf8')).toBe('person')
  expect((await one.row())?.kept_because).toBe('it has changes that are not committed')
  await one.keep('salvage')
  expect(await one.keep('remove')).toBeUndefined()
  expect(repo.git('show', `${one.saved}:a.txt`)).toBe('person')
  expect(repo.git('log', '--format=%s', one.saved)).toContain('Salvage')

  const two = await made(repo.top)
  gitIn(two.worktree.path, 'clone', '-q', repo.top, 'inner')
  gitIn(two.worktree.path, 'init', '-q', 'empty')
  writeFileSync(join(two.worktree.path, 'inner/only here'), 'x')
  await two.end()
  expect(await two.keep('remove')).toMatch(/^a part of it is saved nowhere: .*inner\//)
  expect(existsSync(join(two.worktree.path, 'inner/only here'))).toBe(true)
})

test('commits of a detached HEAD and a merge under way are saved', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  const { tree, end, keep, saved, worktree } = await made(repo.top, {
    keep: { days: 0, bytes: null },
  })
  tree.git('checkout', '-q', '--detach')
  const loose = tree.commit('Loose', { 'loose.txt': 'x' })
  await end()
  await keep('settle')
  expect(repo.git('merge-base', '--is-ancestor', loose, saved)).toBe('')
  expect(existsSync(worktree.path)).toBe(false)
  const other = await made(repo.top)
  repo.commit('Theirs', { 'a.txt': 'theirs' })
  other.tree.commit('Ours', { 'a.txt': 'ours' })
  expect(() => other.tree.git('merge', '-q', 'main')).toThrow(/merge/)
  await other.end()
  await other.keep('settle')
  expect(repo.git('show', `${other.saved}:a.txt`)).toContain('<<<<<<<')
  expect(repo.git('log', '--format=%s', other.saved)).toContain('Theirs')
})

test('an agent that removes .git, or the whole worktree, loses no commit', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  const folder = join(repo.top, '.leasehold/worktrees')
  const one = await made(repo.top, { folder })
  one.tree.write({ 'a.txt': 'mine', 'b.txt': 'new' })
  rmSync(join(one.worktree.path, '.git'))
  await one.end()
  await one.keep('settle')
  expect(filesAt(repo, one.saved)).toMatchObject({ 'a.txt': 'mine', 'b.txt': 'new' })
  expect(repo.git('status', '--porcelain')).toBe('')
  const two = await made(repo.top, { folder })
  const commit = two.tree.commit('Done', { 'c.txt': 'c' })
  rmSync(two.worktree.path, { recursive: true })
  await two.end()
  expect(await two.keep('remove')).toContain('only its branch')
  expect(repo.head(two.worktree.branch)).toBe(commit)
})

test('a name that is no text is saved byte by byte, with a filter that fails too', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  repo.commit('Attributes', { '.gitattributes': '*.bin filter=none\n' })
  const { worktree, end, keep, saved } = await made(repo.top)
  const at = (name: string) =>
    Buffer.concat([Buffer.from(`${worktree.path}/`), Buffer.from(name, 'latin1')])
  writeFileSync(at('caf\xe9'), 'one')
  writeFileSync(at('new\nline\xff.log'), 'two')
  repo.git('config', 'filter.none.clean', 'false')
  repo.git('config', 'filter.none.required', 'true')
  writeFileSync(at('"b\xe9\n.bin'), 'three', { mode: 0o755 })
  await end()
  await keep('settle')
  const files = repo.git('ls-tree', '-r', saved)
  for (const name of ['"caf\\351"', '"new\\nline\\377.log"', '"\\"b\\351\\n.bin"']) {
    expect(files).toContain(name)
  }
  expect(files).toMatch(/^100755 blob \w+\t"\\"b/m)
  expect(await keep('remove')).toBeUndefined()
})

test('what an agent took back, set aside or cut off is saved while git knows of it', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  const one = await made(repo.top)
  const dropped = one.tree.commit('Dropped', { 'b.txt': 'b' })
  one.tree.git('reset', '-q', '--hard', 'HEAD^')
  const kept = one.tree.commit('Kept', { 'c.txt': 'c' })
  repo.git('update-ref', '-d', `refs/heads/${one.worktree.branch}`)
  await one.end()
  await one.keep('settle')
  for (const commit of [dropped, kept]) {
    expect(repo.git('merge-base', '--is-ancestor', commit, one.saved)).toBe('')
  }
  expect(await one.keep('remove')).toBeUndefined()

  const two = await made(repo.top)
  two.tree.commit('Mine', { 'a.txt': 'mine' })
  repo.commit('Theirs', { 'a.txt': 'theirs', 'd.txt': 'd' })
  two.tree.write({ '.gitignore': 'not committed' })
  expect(() => two.tree.git('rebase', '--autostash', 'main')).toThrow(/Command failed/)
  await two.end()
  await two.keep('settle')
  const all = repo.git('rev-list', two.saved).split('\n')
  expect(all.map((each) => repo.git('show', `${each}:.gitignore`))).toContain('not committed')
})

test('a worktree outlives its repository, and can be cleared away then', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  const { tree, worktree, end, keep, row } = await made(repo.top)
  tree.write({ 'a.txt': 'mine' })
  rmSync(repo.top, { recursive: true })
  await end()
  await keep('settle')
  const why = `its repository ${worktree.repository} is gone`
  expect(await row()).toMatchObject({ state: 'left', kept_because: why })
  expect(await keep('remove')).toBe(why)
  expect(readFileSync(join(worktree.path, 'a.txt'), 'utf8')).toBe('mine')
  rmSync(worktree.path, { recursive: true })
  expect(await keep('remove')).toBeUndefined()
  expect(await row()).toBeUndefined()
})

test('names that another store left in the repository are not used again', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  const folder = join(dirname(repo.top), 'trees')
  const { id } = await trees.verbs.add('The last number', trees.caller)
  repo.git('branch', `leasehold/${Number(id) + 1}-1`)
  const { worktree, end, keep } = await made(repo.top, { folder })
  expect(worktree.branch).toMatch(/-1-2$/)
  await end()
  await keep('settle')
  await keep('remove')
  expect(Object.keys(repo.refs('refs/heads'))).toHaveLength(2)
})

test('a project in a folder begins there; a base that is not there is refused', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'), { 'packages/wéb/x': '1' })
  const { cwd, worktree } = await made(join(repo.top, 'packages/wéb'))
  expect(cwd).toBe(join(worktree.path, 'packages/wéb'))
  const refused = await expectRefusal(made(repo.top, { base: 'no-such' }), 'invalid')
  expect(refused.message).toBe('There is no branch or commit no-such to begin at')
})

test('hooks are not run, and a husky folder is as it was', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'), { '.husky/pre-commit': 'exit 1\n' })
  repo.git('config', 'core.hooksPath', '.husky')
  for (const name of ['post-checkout', 'pre-commit', 'reference-transaction']) {
    const script = `#!/bin/sh\necho "$0" >> "${repo.top}/ran"; exit 1\n`
    writeFileSync(join(repo.top, '.husky', name), script, { mode: 0o755 })
  }
  repo.git('-c', 'core.hooksPath=/dev/null', 'add', '--all')
  repo.git('-c', 'core.hooksPath=/dev/null', 'commit', '-qm', 'Hooks')
  const { tree, end, keep, saved } = await made(repo.top)
  tree.write({ 'a.txt': 'x' })
  await end()
  await keep('settle')
  expect(repo.git('show', `${saved}:a.txt`)).toBe('x')
  expect(existsSync(join(repo.top, 'ran'))).toBe(false)
})

test('a sparse checkout stays sparse, and a shallow clone works', async () => {
  const folder = temporaryFolder()
  const repo = gitRepo(join(folder, 'repo'), { 'in/a': '1', 'out/b': '2' })
  repo.commit('Second', { 'in/a': '3' })
  gitIn(folder, 'clone', '-q', '--depth', '1', `file://${repo.top}`, 'shallow')
  const shallow = new GitRepo(join(folder, 'shallow'))
  shallow.git('sparse-checkout', 'set', 'in')
  const { tree, worktree, end, keep, saved } = await made(shallow.top)
  expect(readdirSync(worktree.path).toSorted()).toEqual(['.git', '.gitignore', 'in'])
  tree.write({ 'in/new': 'x', 'out/other': 'y' })
  await end()
  await keep('settle')
  expect(filesAt(shallow, saved)).toMatchObject({ 'in/new': 'x', 'out/other': 'y', 'out/b': '2' })
})

test('names that no disk takes, and lost objects, keep nothing from being saved', async () => {
  const files = { 'a.txt': 'one\n', 'lost.txt': 'lost\n', 'out/b': '2' }
  const repo = gitRepo(join(temporaryFolder(), 'repo'), files)
  const lost = repo.git('rev-parse', 'HEAD:lost.txt')
  const { tree, end, keep, saved, worktree, row } = await made(repo.top)
  const name = `${'n'.repeat(300)}.txt`
  tree.git('update-index', '--add', '--cacheinfo', `100644,${lost},${name}`)
  tree.git('update-index', '--skip-worktree', name, 'out/b')
  tree.git('commit', '--quiet', '--message', 'A name')
  rmSync(join(worktree.path, 'out'), { recursive: true })
  tree.write({ out: 'where a folder was', 'b.txt': 'more' })
  rmSync(join(repo.top, '.git/objects', lost.slice(0, 2), lost.slice(2)))
  await end()
  await keep('settle')
  for (const path of ['out', 'b.txt']) {
    expect(repo.git('show', `${saved}:${path}`)).toBe(
      readFileSync(join(worktree.path, path), 'utf8'),
    )
  }
  expect(await row()).toMatchObject({
    state: 'left',
    kept_because: expect.stringContaining('lost'),
  })
})

test('pointers of LFS are plain files, and a filter that fails loses nothing', async () => {
  const pointer = 'version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n'
  const repo = gitRepo(join(temporaryFolder(), 'repo'), { 'big.bin': pointer })
  repo.commit('Attributes', { '.gitattributes': '*.bin filter=lfs\n' })
  const { tree, end, keep, saved, worktree } = await made(repo.top)
  expect(readFileSync(join(worktree.path, 'big.bin'), 'utf8')).toBe(pointer)
  repo.git('config', 'filter.lfs.clean', 'false')
  repo.git('config', 'filter.lfs.required', 'true')
  tree.write({ 'big.bin': 'real bytes', 'b.txt': 'more' })
  await end()
  await keep('settle')
  expect(filesAt(repo, saved)).toMatchObject({ 'big.bin': 'real bytes', 'b.txt': 'more' })
})

test('submodules: not filled in by us; once they have files the worktree is kept', async () => {
  const folder = temporaryFolder()
  const lib = gitRepo(join(folder, 'lib'), { 'lib.txt': '1' })
  const repo = gitRepo(join(folder, 'repo'))
  const allow = ['-c', 'protocol.file.allow=always']
  repo.git(...allow, 'submodule', '--quiet', 'add', lib.top, 'vendor/lib')
  repo.commit('Submodule')
  const empty = await made(repo.top)
  await empty.end()
  expect(await empty.keep('remove')).toBeUndefined()
  const { tree, end, keep, worktree } = await made(repo.top)
  tree.git(...allow, 'submodule', '--quiet', 'update', '--init')
  writeFileSync(join(worktree.path, 'vendor/lib/lib.txt'), 'changed')
  await end()
  expect(await keep('remove')).toBe('a part of it is saved nowhere: vendor/lib/')
  expect(readFileSync(join(worktree.path, 'vendor/lib/lib.txt'), 'utf8')).toBe('changed')
})

test('what a person locked, or a run still has, is not removed', async () => {
  const repo = gitRepo(join(temporaryFolder(), 'repo'))
  const { worktree, end, keep } = await made(repo.top)
  await expectRefusal(keep('remove'), 'held')
  await end()
  repo.git('worktree', 'lock', '--reason', 'I look at it', worktree.path)
  expect(await keep('remove')).toBe('somebody has locked it: I look at it')
  repo.git('worktree', 'unlock', worktree.path)
  mkdirSync(join(dirname(repo.top), 'elsewhere'))
  repo.git('worktree', 'move', worktree.path, join(dirname(repo.top), 'elsewhere'))
  expect(await keep('remove')).toContain('it was moved to')
})
