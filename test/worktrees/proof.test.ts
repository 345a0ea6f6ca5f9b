import { spawn } from 'node:child_process'
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import type { AskTrees } from '../../src/daemon/worktrees/entered.ts'
import { makeWorktree } from '../../src/daemon/worktrees/make.ts'
import { RunTree } from '../../src/daemon/worktrees/run_tree.ts'
import { RETENTION } from '../../src/core/retention.ts'
import { forgetOld } from '../../src/stores/writer/prune.ts'
import { gitRepo } from '../support/git_repo.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { Trees } from '../support/trees.ts'

/** A store of its own: its tasks begin at 1, as those of any other do. */
function store(): Trees {
  const trees = new Trees()
  onTestFinished(() => trees.store.close())
  return trees
}

const newRepo = () => gitRepo(join(temporaryFolder(), 'repo'))
const text = (folder: string, name: string) => readFileSync(join(folder, name), 'utf8')

/** Says what was asked for, and lets `then` happen before the answer. */
const behind = (ask: AskTrees, state: string, then: () => unknown): AskTrees => {
  let isDone = false
  return async (name, input) => {
    const answer = await ask(name, input)
    const worktree = input['worktree'] as { state: string } | undefined
    if (worktree?.state === state && !isDone) {
      isDone = true
      await then()
    }
    return answer
  }
}

test('what an agent did since a backup is saved, also where its row says half made', async () => {
  const [repo, trees] = [newRepo(), store()]
  const { worktree, tree, end, keep, row, saved } = await trees.made(repo.top)
  const commit = tree.commit('Done', { 'b.txt': 'b' })
  tree.write({ 'a.txt': 'not committed' })
  // As a restored backup has it.
  await trees.store.write((view) => view.put('worktree', { ...worktree, state: 'making' }))
  await end()
  await keep('settle')
  expect(text(worktree.path, 'a.txt')).toBe('not committed')
  expect(repo.head(worktree.branch)).toBe(commit)
  expect(repo.git('show', `${saved}:a.txt`)).toBe('not committed')
  expect(await row()).toMatchObject({ state: 'left', salvage: { ref: saved } })
})

test('one that was half made goes: never filled, half filled, or not even begun', async () => {
  const [repo, trees] = [newRepo(), store()]
  const { making, end } = await trees.claimed(repo.top)
  const dies = behind(trees.ask, 'making', () => Promise.reject(new Error('killed')))
  await expect(makeWorktree(dies, making)).rejects.toThrow('killed')
  await end()
  const common = join(repo.top, '.git')
  await trees.keep(common, making.rules, 'settle', making.run_id)
  for (const name of [[], ['a.txt']]) {
    const one = await trees.made(repo.top)
    // As `worktree add --no-checkout` leaves it, and a checkout that is killed.
    for (const each of ['.gitignore', 'a.txt']) {
      if (!name.includes(each)) rmSync(join(one.worktree.path, each))
    }
    rmSync(join(common, 'worktrees', basename(one.worktree.path), 'index'))
    await trees.store.write((view) => view.put('worktree', { ...one.worktree, state: 'making' }))
    await one.end()
    await one.keep('settle')
    expect(existsSync(one.worktree.path)).toBe(false)
    expect(await one.row()).toBeUndefined()
  }
  expect(Object.keys(repo.refs())).toEqual(['refs/heads/main'])
})

test('of two stores that choose one name, neither touches the worktree of the other', async () => {
  const [repo, one, two] = [newRepo(), store(), store()]
  const folder = join(temporaryFolder(), 'trees')
  // Between the row of the first and what it makes, the second makes its own.
  const [first, other] = [await one.claimed(repo.top, { folder }), {} as { path: string }]
  const racing = behind(one.ask, 'making', async () => {
    const made = await two.made(repo.top, { folder })
    made.tree.write({ 'a.txt': 'at work' })
    Object.assign(other, made.worktree)
  })
  const { worktree } = await makeWorktree(racing, first.making)
  expect(worktree.path).not.toBe(other.path)
  await first.end()
  const { repository, id } = worktree
  await one.keep(repository, first.making.rules, 'remove', id)
  expect(existsSync(worktree.path)).toBe(false)
  expect(text(other.path, 'a.txt')).toBe('at work')
  expect(existsSync(join(repository, 'worktrees', basename(other.path), 'HEAD'))).toBe(true)
  expect(Object.keys(repo.refs('refs/heads'))).toHaveLength(2)
})

test('one killed before it made anything clears nothing of the other store', async () => {
  const [repo, one, two] = [newRepo(), store(), store()]
  const folder = join(temporaryFolder(), 'trees')
  const { making, end } = await one.claimed(repo.top, { folder })
  const dies = behind(one.ask, 'making', () => Promise.reject(new Error('killed')))
  await expect(makeWorktree(dies, making)).rejects.toThrow('killed')
  const other = await two.made(repo.top, { folder })
  other.tree.write({ 'a.txt': 'at work' })
  await end()
  await one.keep(other.worktree.repository, making.rules, 'settle', making.run_id)
  expect(text(other.worktree.path, 'a.txt')).toBe('at work')
  expect(other.tree.git('status', '--porcelain')).toBe(' M a.txt')
  expect(await one.store.read((view) => view.get('worktree', making.run_id))).toBeUndefined()
})

test('what was staged after it was saved keeps a worktree, and so does git at work', async () => {
  const [repo, trees] = [newRepo(), store()]
  const { worktree, tree, end, keep, saved } = await trees.made(repo.top)
  tree.write({ 'a.txt': 'written' })
  await end()
  await keep('settle')
  tree.write({ 'a.txt': 'only staged' }).git('add', 'a.txt')
  tree.write({ 'a.txt': 'written' })
  expect(await keep('remove')).toBe('it has changes that are not committed')
  expect(tree.git('show', ':a.txt')).toBe('only staged')
  await keep('salvage')
  expect(repo.git('show', `${saved}^2:a.txt`)).toBe('only staged')
  const lock = join(repo.top, '.git/worktrees', basename(worktree.path), 'index.lock')
  writeFileSync(lock, '')
  expect(await keep('remove')).toBe(`git is at work in it, or was killed there: ${lock}`)
  rmSync(lock)
  expect(await keep('remove')).toBeUndefined()
})

test('a worktree in which a program is at work is neither removed nor given to a run', async () => {
  const [repo, trees] = [newRepo(), store()]
  const { worktree, end, keep } = await trees.made(repo.top, {}, 'again')
  const child = spawn('sleep', ['60'], { cwd: worktree.path })
  onTestFinished(() => void child.kill())
  await end()
  const why = `a program is at work in it: sleep (pid ${child.pid})`
  expect(await keep('remove')).toBe(why)
  const { run } = await trees.verbs.claim('again', trees.caller)
  const rules = { folder: join(temporaryFolder(), 'trees'), retry: 'same' as const }
  const { making } = await trees.claimed(repo.top, rules)
  const again = { ...making, task_id: 'again', run_id: run.id, fence: run.fence }
  expect((await makeWorktree(trees.ask, again)).worktree.path).not.toBe(worktree.path)
})

test('a task stays while its worktree does; an id used again overwrites no worktree', async () => {
  const [repo, trees] = [newRepo(), store()]
  const one = await trees.made(repo.top, {}, 'used')
  one.tree.commit('Only here', { 'b.txt': 'b' })
  await trees.verbs.move('used', 'done', trees.caller)
  await one.keep('settle')
  const retention = { ...RETENTION, tasks: { days: 0, max: 0 } }
  await forgetOld(trees.store, { retention })
  expect((await trees.verbs.task('used')).status).toBe('done')
  // As older versions forgot it.
  await trees.store.write((view) => {
    view.remove('task', 'used')
    view.remove('run', 'used.1')
  })
  const two = await trees.made(repo.top, { retry: 'new' }, 'used')
  expect(two.worktree.id).toBe('used.2')
  expect(await one.row()).toMatchObject({
    path: one.worktree.path,
    begun_at: one.worktree.begun_at,
  })
})

test('a run that a restored store knows nothing of saves what it did all the same', async () => {
  const [repo, trees] = [newRepo(), store()]
  const { making, end } = await trees.claimed(repo.top)
  const tree = new RunTree(trees.ask, making)
  const cwd = await tree.make()
  writeFileSync(join(cwd, 'a.txt'), 'mine')
  await end()
  await trees.store.write((view) => view.remove('worktree', making.run_id))
  await tree.leave()
  const row = await trees.store.read((view) => view.get('worktree', making.run_id))
  expect(row).toMatchObject({ state: 'left', changed: ['a.txt'] })
  expect(repo.git('show', `refs/leasehold/salvage/${making.run_id}:a.txt`)).toBe('mine')
})
