import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isHeld } from '../../src/daemon/worktrees/salvage.ts'
import { gitIn, GitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'
import { Crew } from './crew.ts'
import { LandingScene, type Said } from './scene.ts'

const begin = (said: Said = {}) => new LandingScene(said).begin(said)

/** Why a landing waits, as soon as it says so. */
const reasonOf = (scene: LandingScene, { id }: { id: string }) =>
  until(`landing ${id} says why`, async () => (await scene.landing(id)).reason)

describe('what is in the way of a lander', () => {
  test('holds up one target and no other, and is said', async () => {
    const scene = await begin()
    scene.branch('one', { 'one.txt': '1' })
    scene.branch('two', { 'two.txt': '2' })
    const lost = await scene.ask({ id: 'one', onto: 'no-such' })
    const other = await scene.ask({ id: 'two' })
    await scene.lander()
    expect(await scene.ended(other)).toMatchObject({ status: 'landed' })
    expect(await reasonOf(scene, lost)).toBe('There is no branch no-such to land onto')
    expect(Object.keys(scene.repo.refs('refs/leasehold/lander'))).toHaveLength(1)
    scene.repo.git('branch', 'no-such', 'main')
    expect(await scene.ended(lost)).toMatchObject({ status: 'landed', reason: null })
  })

  test('is said where git will not move the target, and is not tried without rest', async () => {
    const scene = await begin()
    scene.branch('one', { 'one.txt': '1' })
    const lock = join(scene.top, '.git/refs/heads/main.lock')
    writeFileSync(lock, '')
    await scene.lander()
    const asked = await scene.ask({ id: 'one' })
    expect(await reasonOf(scene, asked)).toMatch(/^git update-ref failed .*main\.lock/)
    rmSync(lock)
    expect(await scene.ended(asked)).toMatchObject({ status: 'landed' })
  })

  test('may be a remote that refuses: it is said in its words, and nothing is pushed', async () => {
    const scene = await begin({ remote: 'origin' })
    const origin = scene.origin()
    const hook = join(origin, 'hooks/update')
    const protects = '#!/bin/sh\n[ $1 != refs/heads/main ] || { echo main is protected; exit 1; }\n'
    writeFileSync(hook, protects, { mode: 0o755 })
    scene.branch('one', { 'one.txt': '1' })
    await scene.lander()
    const asked = await scene.ask({ id: 'one' })
    expect(await reasonOf(scene, asked)).toMatch(/^git push failed .*main is protected/)
    expect(gitIn(origin, 'rev-parse', 'main')).toBe(scene.repo.head('main'))
    rmSync(hook)
    const ended = await scene.ended(asked)
    expect(ended).toMatchObject({ status: 'landed' })
    expect(gitIn(origin, 'rev-parse', 'main')).toBe(ended.candidate)
  })

  test('may be the index of a checkout: it is landed when that is free, and once', async () => {
    const crew = new Crew()
    const { scene } = crew
    const [asked] = await crew.work(1)
    // As git has it while a person commits.
    const lock = join(scene.top, '.git/index.lock')
    writeFileSync(lock, '')
    await crew.start()
    expect(await reasonOf(scene, asked!)).toMatch(/index\.lock/)
    expect(await scene.landing(asked!.id)).toMatchObject({ status: 'waiting' })
    rmSync(lock)
    expect(await scene.ended(asked!)).toMatchObject({ status: 'landed', reason: null })
    await crew.judge([await scene.landing(asked!.id)])
  })

  test('may be a repository without a commit: it is said, and looked at again', async () => {
    const scene = await begin()
    const inner = join(scene.top, 'inner')
    gitIn('/', 'init', '--quiet', '--initial-branch', 'main', inner)
    const config = join(scene.top, '.leasehold', 'config.json')
    writeFileSync(config, readFileSync(config, 'utf8').replace('"path":"."', '"path":"inner"'))
    await scene.lander()
    const first = await scene.ask({ id: 'one' })
    expect(await reasonOf(scene, first)).toContain('inner has no commit yet')
    const repo = new GitRepo(inner)
    repo.commit('Begin', { 'a.txt': 'a' })
    repo.git('switch', '--quiet', '--create', 'one')
    repo.commit('One', { 'one.txt': '1' })
    repo.git('switch', '--quiet', 'main')
    await scene.ask({ id: 'two' })
    expect(await scene.ended(first)).toMatchObject({ status: 'landed', reason: null })
    expect(scene.said).toHaveLength(1)
  })

  test('is no check that removes its own .git: nothing around its tree is touched', async () => {
    const scene = await begin({ check: ['/bin/sh', '-c', 'rm -rf .git'] })
    scene.branch('one', { 'one.txt': '1' })
    scene.branch('two', { 'two.txt': '2' })
    scene.repo.write({ 'a.txt': 'not committed\n' })
    await scene.lander()
    for (const id of ['one', 'two']) {
      expect(await scene.ended(await scene.ask({ id }))).toMatchObject({ status: 'landed' })
    }
    expect(readFileSync(join(scene.top, 'a.txt'), 'utf8')).toBe('not committed\n')
    expect(scene.repo.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect(scene.repo.git('status', '--porcelain')).toBe(' M a.txt')
  })

  test('is no check that leaves the index of its tree locked', async () => {
    const leave = 'touch "$(git rev-parse --git-dir)/index.lock"'
    const scene = await begin({ check: ['/bin/sh', '-c', leave] })
    scene.branch('one', { 'one.txt': '1' })
    scene.branch('two', { 'two.txt': '2' })
    await scene.lander()
    for (const id of ['one', 'two']) {
      expect(await scene.ended(await scene.ask({ id }))).toMatchObject({ status: 'landed' })
    }
  })

  test('is no fence that another store has left in the repository', async () => {
    const scene = await begin()
    const { repo } = scene
    const land = async (id: string) => {
      scene.branch(id, { [id]: id })
      const lander = await scene.lander()
      const ended = await scene.ended(await scene.ask({ id }))
      await lander.stop()
      return ended
    }
    expect(await land('one')).toMatchObject({ status: 'landed' })
    const blob = repo.write({ '.git/fence': '999999999\n' }).git('hash-object', '-w', '.git/fence')
    const [ref] = Object.keys(repo.refs('refs/leasehold/lander'))
    repo.git('update-ref', ref!, blob)
    expect(await land('two')).toMatchObject({ status: 'landed' })
  })
})

test('a commit that the target has as another one is kept by a ref of its own', async () => {
  const scene = await begin()
  const { repo } = scene
  const old = scene.branch('one', { 'one.txt': '1' })
  repo.commit('Meanwhile', { 'b.txt': 'b' })
  await scene.lander()
  const ended = await scene.ended(await scene.ask({ id: 'one' }))
  expect(ended.candidate).not.toBe(old)
  const same = scene.branch('two', { 'two.txt': '2' })
  expect(await scene.ended(await scene.ask({ id: 'two' }))).toMatchObject({ candidate: same })
  expect(repo.refs('refs/leasehold/landed')).toEqual({ [`refs/leasehold/landed/${old}`]: old })
  expect(await isHeld(join(scene.top, '.git'), old, 'refs/heads/one')).toBe(true)
})
