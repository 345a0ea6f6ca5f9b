import { once } from 'node:events'
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { settingKey } from '../../src/core/queue/host_settings.ts'
import { applySettings } from '../../src/core/queue/settings.ts'
import { gitIn } from '../support/git_repo.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { until } from '../support/processes.ts'
import { LandingScene, type Said } from './scene.ts'

const PASSES = { check: ['/bin/true'] }
const begin = (said: Said = {}) => new LandingScene({ ...PASSES, ...said }).begin(said)

/** A filter as a person may have set it up for the login: those of the repository are not run. */
function filter(kind: string, command: string): void {
  const [before, home] = [process.env['HOME'], temporaryFolder()]
  process.env['HOME'] = home
  onTestFinished(() => void (process.env['HOME'] = before))
  const set = (key: string, value: string) =>
    gitIn(home, 'config', '--file', '.gitconfig', `filter.${kind}.${key}`, value)
  set('smudge', command)
  set('clean', 'cat')
  set('required', 'true')
}

/** Branches that git cannot put on top of `main`, each in its own way. */
const BAD: Record<string, (scene: LandingScene) => void> = {
  'a name that no file can have': (scene) => {
    scene.branch('bad', { [`${'n'.repeat(300)}.txt`]: 'x' })
  },
  'a filter that fails': (scene) => {
    filter('no', '/bin/false')
    scene.branch('bad', { '.gitattributes': '*.bin filter=no\n', 'x.bin': 'x' })
  },
  'an object that is missing': (scene) => {
    scene.branch('bad', { 'lost.txt': 'lost and never found\n' })
    const id = scene.repo.git('rev-parse', 'bad:lost.txt')
    rmSync(join(scene.top, '.git/objects', id.slice(0, 2), id.slice(2)))
  },
  'a commit that is missing': (scene) => {
    const first = scene.branch('bad', { 'x.txt': 'x\n' })
    scene.branch('bad', { 'y.txt': 'y\n' }, 'bad')
    rmSync(join(scene.top, '.git/objects', first.slice(0, 2), first.slice(2)))
  },
}

describe('a branch that git cannot stack comes back, and the next is landed', () => {
  test.each(Object.entries(BAD))('%s', async (_, make) => {
    const scene = await begin()
    make(scene)
    for (const id of ['before', 'behind']) scene.branch(id, { [id]: id })
    const asked = []
    for (const id of ['before', 'bad', 'behind']) asked.push(await scene.ask({ id }))
    await scene.lander()
    const [before, bad, behind] = [...asked]
    expect(await scene.ended(bad!)).toMatchObject({ status: 'returned' })
    expect((await scene.landing(bad!.id)).reason).toMatch(/^(git|error|fatal)/)
    expect(await scene.ended(before!)).toMatchObject({ status: 'landed' })
    expect(await scene.ended(behind!)).toMatchObject({ status: 'landed' })
  })

  test('an orphan, where it is to be merged', async () => {
    const scene = await begin({ method: 'merge' })
    const { repo } = scene
    repo.git('branch', 'bad', repo.git('commit-tree', 'main^{tree}', '-m', 'Orphan'))
    scene.branch('behind', { behind: 'behind' })
    const bad = await scene.ask({ id: 'bad' })
    const behind = await scene.ask({ id: 'behind' })
    await scene.lander()
    expect(await scene.ended(bad)).toMatchObject({ status: 'returned' })
    expect((await scene.landing(bad.id)).reason).toMatch(/unrelated histories/)
    expect(await scene.ended(behind)).toMatchObject({ status: 'landed' })
  })

  test('one whose filter hangs: nobody behind it waits longer than a check may take', async () => {
    const scene = await begin({ check_seconds: 2 })
    const pids = join(temporaryFolder(), 'pids')
    filter('hang', `echo $$ >> ${pids}; sleep 600`)
    scene.branch('bad', { '.gitattributes': '*.bin filter=hang\n', 'x.bin': 'x' })
    scene.branch('behind', { behind: 'behind' })
    const bad = await scene.ask({ id: 'bad' })
    const behind = await scene.ask({ id: 'behind' })
    await scene.lander()
    expect(await scene.ended(bad)).toMatchObject({ status: 'returned' })
    expect((await scene.landing(bad.id)).reason).toMatch(/took more than 2 s/)
    expect(await scene.ended(behind)).toMatchObject({ status: 'landed' })
    for (const pid of readFileSync(pids, 'utf8').trim().split('\n')) {
      expect(existsSync(`/proc/${pid}`), `filter ${pid} is gone`).toBe(false)
    }
  })
})

test('settings of the repository do not steer the lander', async () => {
  const scene = await begin({ method: 'merge' })
  const { repo } = scene
  const set = { 'merge.verifySignatures': 'true', 'merge.ff': 'only', 'merge.autoStash': 'true' }
  for (const [name, value] of Object.entries(set)) repo.git('config', name, value)
  for (const name of ['rerere.enabled', 'rerere.autoUpdate']) repo.git('config', name, 'true')
  scene.branch('one', { one: '1' })
  const hook = join(scene.top, '.git/hooks/reference-transaction')
  writeFileSync(hook, '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  await scene.lander()
  expect(await scene.ended(await scene.ask({ id: 'one' }))).toMatchObject({ status: 'landed' })
})

/** Something that accepts and never says a word, as `git://` has it. */
async function silence(): Promise<string> {
  const sockets = new Set<{ destroy(): void }>()
  const server = createServer((socket) => void sockets.add(socket)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy()
    server.close()
  })
  return `git://127.0.0.1:${(server.address() as AddressInfo).port}/x`
}

describe('a remote that accepts and never answers', () => {
  test('holds up no other target, is said, and keeps no lander from ending', async () => {
    const scene = await begin({ remote: 'origin' })
    scene.repo.git('remote', 'add', 'origin', await silence())
    const config = join(scene.top, '.leasehold', 'config.json')
    const { projects } = JSON.parse(readFileSync(config, 'utf8'))
    projects.near = { ...projects.web, land: { onto: 'near', check: PASSES.check } }
    writeFileSync(config, JSON.stringify({ projects }))
    await scene.store.write((view) => {
      const key = (field: string) => settingKey('projects', 'near', 'land', field)
      applySettings(view, 'near', { [key('onto')]: 'near', [key('checks')]: true })
    })
    scene.repo.git('branch', 'near')
    scene.branch('one', { one: '1' })
    scene.branch('two', { two: '2' })
    const far = await scene.ask({ id: 'one' })
    const near = await scene.ask({ id: 'two', project: 'near', onto: 'near' })
    const lander = await scene.lander()
    expect(await scene.ended(near)).toMatchObject({ status: 'landed' })
    await until('it says what it waits for', async () => {
      return /^git fetch origin .*takes long/.test((await scene.landing(far.id)).reason ?? '')
    })
    const began = performance.now()
    await lander.stop()
    expect(performance.now() - began).toBeLessThan(10_000)
    expect(hanging(scene.top)).toEqual([])
  })
})

/** Git commands that run in a folder. */
function hanging(top: string): string[] {
  return readdirSync('/proc').flatMap((pid) => {
    try {
      const said = readFileSync(`/proc/${pid}/cmdline`, 'utf8')
      const isGit = /^\d+$/.test(pid) && said.startsWith('git\0')
      return isGit && said.includes(top) ? [said] : []
    } catch {
      return []
    }
  })
}
