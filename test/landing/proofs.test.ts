import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { cancelTask } from '../../src/core/queue/cancel.ts'
import { keptAmong } from '../../src/hooks/kept.ts'
import { ownProcess } from '../../src/machine/process.ts'
import { callerOf, expectRefusal, temporaryFolder } from '../support/helpers.ts'
import { gitIn, GitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'
import { Crew } from './crew.ts'
import { LandingScene, type Said } from './scene.ts'

const begin = (said: Said = {}) => new LandingScene(said).begin(said)
const sh = (script: string) => ['/bin/sh', '-c', script]
const admin = { ...callerOf('admin'), admin: true }

/** Changes the config.json of a scene that has no lander yet. */
function configure({ top }: LandingScene, change: (web: Record<string, unknown>) => void): void {
  const file = join(top, '.leasehold', 'config.json')
  const config = JSON.parse(readFileSync(file, 'utf8')) as { projects: { web: object } }
  change(config.projects.web as Record<string, unknown>)
  writeFileSync(file, JSON.stringify(config))
}

describe('a check', () => {
  test.each([
    ['skip-worktree', 'git update-index --skip-worktree a.txt; echo other > a.txt'],
    ['assume-unchanged', 'git update-index --assume-unchanged a.txt; echo other > a.txt'],
    ['a sparse checkout', 'git sparse-checkout set --no-cone /.gitignore'],
    ['a replacement', 'git replace -f HEAD:a.txt $(echo x | git hash-object -w --stdin); rm a.txt'],
  ])('leaves nothing behind that the next would read: %s', async (_, trick) => {
    const log = join(temporaryFolder(), 'log')
    const scene = await begin({ check: sh(`cat a.txt >> ${log}; ${trick}`) })
    scene.branch('one', { 'one.txt': '1' })
    scene.branch('two', { 'two.txt': '2' })
    await scene.lander()
    for (const id of ['one', 'two']) {
      expect(await scene.ended(await scene.ask({ id }))).toMatchObject({ status: 'landed' })
    }
    expect(readFileSync(log, 'utf8')).toBe('one\none\n')
  })

  test('that failed, or could not be started, is asked again', async () => {
    const check = join(temporaryFolder(), 'check')
    const scene = await begin({ check: [check] })
    scene.branch('one', { 'one.txt': '1' })
    await scene.lander()
    const land = async () => scene.ended(await scene.ask({ id: 'one' }))
    expect((await land()).reason).toMatch(/could not be started/)
    writeFileSync(check, '#!/bin/sh\nexit 3\n', { mode: 0o755 })
    expect((await land()).reason).toMatch(/exit 3/)
    writeFileSync(check, '#!/bin/sh\n')
    expect(await land()).toMatchObject({ status: 'landed' })
  })

  test('is not of what the project has, where a run had a worktree that is gone', async () => {
    const scene = new LandingScene()
    configure(scene, (web) => {
      web['worktrees'] = {}
      delete (web['land'] as Record<string, unknown>)['onto']
    })
    await scene.begin({ onto: null })
    await scene.verbs.register('d', { process: ownProcess() })
    await scene.verbs.enqueue({ id: '42' })
    const { run } = (await scene.verbs.dispatch('d', ownProcess()))!
    await scene.verbs.finishRun(run)
    await scene.lander()
    const task = await until('it has come back', async () => {
      const { status, metadata } = await scene.verbs.task('42')
      return status !== 'review' && { status, metadata }
    })
    expect(task.status).toBe('failed')
    expect(task.metadata['returned']).toMatch(/its worktree is gone/)
  })

  test('is in a tree that no agent may write into', async () => {
    const at = join(temporaryFolder(), 'at')
    const scene = await begin({ check: sh(`pwd > ${at}`) })
    scene.branch('one', { 'one.txt': '1' })
    await scene.lander()
    await scene.ended(await scene.ask({ id: 'one' }))
    const path = join(readFileSync(at, 'utf8').trim(), 'a.txt')
    expect(existsSync(path)).toBe(true)
    const written = { writes: [{ path, kind: 'file' as const }], touches: [], discards: [] }
    const kept = keptAmong(written, join(scene.top, '.leasehold'), { HOME: temporaryFolder() })
    expect(kept?.text).toMatch(/is not for agents to change/)
  })
})

describe('a branch of a remote', () => {
  test('is what the remote has now, each time', async () => {
    const scene = await begin({ remote: 'origin' })
    const origin = scene.origin()
    const theirs = new GitRepo(join(temporaryFolder(), 'theirs'))
    gitIn('/', 'clone', '--quiet', origin, theirs.top)
    const push = (name: string) => {
      theirs.git('switch', '--quiet', '-C', 'fix/a')
      theirs.commit(name, { [name]: name })
      theirs.git('push', '--quiet', '--force', 'origin', 'fix/a')
    }
    await scene.lander()
    for (const name of ['one', 'two']) {
      push(name)
      const ended = await scene.ended(await scene.ask({ id: 'fix/a' }))
      expect(ended).toMatchObject({ status: 'landed', commit: theirs.head('fix/a') })
    }
    expect(gitIn(origin, 'ls-tree', '--name-only', 'main')).toMatch(/one\ntwo/)
    expect(Object.keys(scene.repo.refs('refs/heads'))).toEqual(['refs/heads/main'])
    // Where a person has it too, neither is thrown away for the other.
    scene.branch('fix/a', { 'mine.txt': 'mine' }, 'main')
    push('three')
    const ended = await scene.ended(await scene.ask({ id: 'fix/a' }))
    expect(ended.reason).toBe('branch fix/a is another one here than at origin')
  })

  test('may be called by a name that begins as that of one that was there before', async () => {
    const scene = await begin({ remote: 'origin' })
    const origin = scene.origin()
    await scene.lander()
    let before = 'main'
    for (const target of ['release', 'release/1.0', 'release']) {
      gitIn(origin, 'branch', '-m', before, target)
      before = target
      const id = `${scene.repo.git('rev-list', '--all', '--count')}-x`
      scene.branch(id, { [id]: id }, scene.repo.head('main'))
      const ended = await scene.ended(await scene.ask({ id, onto: target }))
      expect(ended).toMatchObject({ status: 'landed', reason: null })
    }
  })
})

test('a target may be called by a name that begins as that of a former one', async () => {
  const scene = await begin()
  const { repo } = scene
  await scene.lander()
  let before = ''
  for (const target of ['release', 'release/1.0']) {
    repo.git('branch', ...(before === '' ? [target, 'main'] : ['-m', before, target]))
    before = target
    const id = `for-${target.length}`
    scene.branch(id, { [id]: id })
    const ended = await scene.ended(await scene.ask({ id, onto: target }))
    expect(ended).toMatchObject({ status: 'landed', reason: null })
  }
})

test('a task whose target is being moved is not said to be cancelled, and is done', async () => {
  const crew = new Crew()
  const { scene } = crew
  const [asked] = await crew.work(1)
  const lander = await crew.start({ LEASEHOLD_STOP_AT: 'lander:moved' })
  await crew.stopped(lander)
  const id = asked!.task_id!
  const cancel = scene.store.write((view) => cancelTask(view, { id }, admin))
  await expectRefusal(cancel, 'illegal_move')
  // Killed there, it leaves the answer to git: nobody can be told before that.
  await crew.kill(lander)
  const again = scene.store.write((view) => cancelTask(view, { id }, admin))
  await expectRefusal(again, 'illegal_move')
  await crew.start()
  expect(await scene.ended(asked!)).toMatchObject({ status: 'landed' })
  expect(await scene.verbs.task(id)).toMatchObject({ status: 'done' })
})
