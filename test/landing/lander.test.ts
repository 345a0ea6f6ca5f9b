import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { until } from '../support/processes.ts'
import { gitIn, GitRepo } from '../support/git_repo.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { ada, LandingScene, type Said } from './scene.ts'

const begin = (said: Said = {}) => new LandingScene(said).begin(said)

describe('a lander', () => {
  test.each(['rebase', 'merge'] as const)(
    'lands a branch by %s, checkout and all',
    async (method) => {
      const scene = await begin({ method })
      const commit = scene.branch('one', { 'one.txt': '1' })
      scene.repo.commit('Meanwhile', { 'b.txt': 'b' })
      await scene.lander()
      const ended = await scene.ended(await scene.ask({ id: 'one' }))
      expect(ended).toMatchObject({ status: 'landed', base: scene.repo.head(':/Meanwhile') })
      expect(scene.repo.head()).toBe(ended.candidate)
      expect(scene.files()).toEqual(['.gitignore', 'a.txt', 'b.txt', 'one.txt'])
      expect(readFileSync(join(scene.top, 'one.txt'), 'utf8')).toBe('1')
      expect(scene.repo.git('status', '--porcelain')).toBe('')
      expect(scene.repo.head('one')).toBe(commit)
      const parents = scene.repo.git('log', '-1', '--format=%P').split(' ')
      expect(parents).toHaveLength(method === 'merge' ? 2 : 1)
      expect(scene.repo.git('log', '-1', '--format=%an', 'one')).toBe('Ada')
    },
  )

  test('gives a conflict back with the paths, and changes nothing', async () => {
    const scene = await begin()
    scene.branch('two', { 'a.txt': 'two\n' })
    scene.repo.commit('Meanwhile', { 'a.txt': 'three\n' })
    const before = scene.repo.refs('refs/heads')
    await scene.lander()
    const ended = await scene.ended(await scene.ask({ id: 'two' }))
    expect(ended).toMatchObject({ status: 'returned', paths: ['a.txt'] })
    expect(ended.reason).toBe('it conflicts with main in a.txt')
    expect(scene.repo.refs('refs/heads')).toEqual(before)
    expect(scene.repo.git('status', '--porcelain')).toBe('')
  })

  test('lands a branch that has merged its target and settled the conflict there', async () => {
    const scene = await begin()
    const { repo } = scene
    scene.branch('two', { 'a.txt': 'two\n' })
    repo.commit('Meanwhile', { 'a.txt': 'three\n' })
    repo.git('switch', '--quiet', 'two')
    expect(() => repo.git('merge', '--quiet', 'main')).toThrow(/Command failed/)
    repo.commit('Both', { 'a.txt': 'two and three\n' })
    repo.git('switch', '--quiet', 'main')
    repo.commit('Later', { 'b.txt': 'b' })
    await scene.lander()
    expect(await scene.ended(await scene.ask({ id: 'two' }))).toMatchObject({ status: 'landed' })
    expect(repo.git('show', 'main:a.txt')).toBe('two and three')
    expect(scene.files()).toContain('b.txt')
  })

  test('gives a red one back with what its check said', async () => {
    const scene = await begin()
    scene.branch('bad', { red: '' })
    await scene.lander()
    const ended = await scene.ended(await scene.ask({ id: 'bad' }))
    expect(ended).toMatchObject({ status: 'returned', output: 'checking\n' })
    expect(ended.reason).toBe('its check failed (exit 1)')
    expect(scene.files()).not.toContain('red')
  })

  test('gives back what is there already, is not there, or has moved since', async () => {
    const scene = await begin()
    const commit = scene.branch('moved', { 'm.txt': '1' })
    scene.branch('moved', { 'm.txt': '2' })
    await scene.lander()
    const reasons: (string | null)[] = []
    for (const ask of [{ id: 'main' }, { id: 'none' }, { id: 'moved', commit }]) {
      const { status, reason } = await scene.ended(await scene.ask(ask))
      expect(status).toBe('returned')
      reasons.push(reason)
    }
    expect(reasons).toEqual([
      'main has all of it already',
      'there is no branch none',
      `branch moved has moved since to ${scene.repo.head('moved').slice(0, 12)}`,
    ])
  })

  test('checks several together, and finds the ones that are red', async () => {
    const scene = await begin({ together: 8 })
    const log = join(temporaryFolder(), 'checks')
    const check = ['/bin/sh', '-c', `echo x >> ${log}; test ! -e red && test ! -e bad`]
    const config = join(scene.top, '.leasehold', 'config.json')
    const said = JSON.parse(readFileSync(config, 'utf8'))
    said.projects.web.land.check = check
    writeFileSync(config, JSON.stringify(said))
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h']
    for (const name of names) {
      scene.branch(name, name === 'e' ? { red: '' } : { [`${name}.new`]: name })
    }
    const asked = await Promise.all(names.map((id) => scene.ask({ id })))
    await scene.lander()
    const ended = await Promise.all(asked.map((each) => scene.ended(each)))
    const landed = ended.filter(({ status }) => status === 'landed')
    expect(ended[4]).toMatchObject({ status: 'returned' })
    expect(landed).toHaveLength(7)
    const subjects = scene.repo.git('log', '--reverse', '--format=%s').split('\n')
    expect(subjects).toEqual(['Begin', ...names.filter((name) => name !== 'e')])
    const checks = readFileSync(log, 'utf8').length / 2
    expect(checks).toBeLessThan(8)
  })

  test('waits for a checkout with changes in the way, says so, and goes on', async () => {
    const scene = await begin()
    scene.branch('one', { 'a.txt': 'landed\n' })
    writeFileSync(join(scene.top, 'a.txt'), 'mine\n')
    await scene.lander()
    const asked = await scene.ask({ id: 'one' })
    await until('it says why', async () => (await scene.landing(asked.id)).reason)
    const { status, reason } = await scene.landing(asked.id)
    expect(status).toBe('waiting')
    expect(reason).toContain('a.txt')
    expect(readFileSync(join(scene.top, 'a.txt'), 'utf8')).toBe('mine\n')
    writeFileSync(join(scene.top, 'a.txt'), 'one\n')
    expect(await scene.ended(asked)).toMatchObject({ status: 'landed' })
    expect(readFileSync(join(scene.top, 'a.txt'), 'utf8')).toBe('landed\n')
  })

  test('leaves changes alone that are not in the way', async () => {
    const scene = await begin()
    scene.branch('one', { 'b.txt': 'landed\n' })
    writeFileSync(join(scene.top, 'a.txt'), 'mine\n')
    await scene.lander()
    expect(await scene.ended(await scene.ask({ id: 'one' }))).toMatchObject({ status: 'landed' })
    expect(scene.repo.git('status', '--porcelain')).toBe(' M a.txt')
  })

  test('lands onto a branch of a remote, and never over what others pushed', async () => {
    const scene = await begin({ remote: 'origin' })
    const origin = scene.origin()
    scene.branch('one', { 'one.txt': '1' })
    const other = join(temporaryFolder(), 'other')
    gitIn('/', 'clone', '--quiet', origin, other)
    const theirs = new GitRepo(other).commit('Theirs', { 'theirs.txt': 't' })
    gitIn(other, 'push', '--quiet', 'origin', 'main')
    const lander = await scene.lander()
    const ended = await scene.ended(await scene.ask({ id: 'one' }))
    expect(ended).toMatchObject({ status: 'landed', base: theirs })
    expect(gitIn(origin, 'rev-parse', 'main')).toBe(ended.candidate)
    await lander.stop()
    scene.branch('two', { 'two.txt': '2' })
    await scene.lander()
    const next = await scene.ended(await scene.ask({ id: 'two' }))
    expect(next).toMatchObject({ status: 'landed', base: ended.candidate })
    expect(gitIn(origin, 'log', '--format=%s', 'main').split('\n')).toEqual([
      'two',
      'one',
      'Theirs',
      'Begin',
    ])
  })

  test('stops a check with its lander, and leaves no tree behind', async () => {
    const scene = await begin({ check: ['/bin/sh', '-c', 'echo $$ > pid; exec sleep 600'] })
    scene.branch('one', { 'one.txt': '1' })
    const lander = await scene.lander()
    const asked = await scene.ask({ id: 'one' })
    const trees = join(scene.top, '.leasehold', 'landers')
    const pidFile = await until('it checks', () => {
      const [hash] = readdirSync(trees)
      const [tree] = readdirSync(join(trees, hash!))
      const file = join(trees, hash!, tree ?? '', 'pid')
      return existsSync(file) && readFileSync(file, 'utf8') !== '' && file
    })
    const pid = Number(readFileSync(pidFile, 'utf8'))
    await lander.stop()
    expect(existsSync(`/proc/${pid}`)).toBe(false)
    expect(await scene.landing(asked.id)).toMatchObject({ status: 'waiting', fence: null })
    expect(scene.repo.git('worktree', 'list').split('\n')).toHaveLength(1)
  })
})

describe('a task that has to be proved', () => {
  test('is done when its branch has landed, and names the commit', async () => {
    const scene = await begin({ auto: false })
    await scene.verbs.add('x', ada, { id: '42', project: 'web' })
    const { lease } = await scene.verbs.claim('42', ada)
    scene.branch('fix/42', { 'fix.txt': 'x' })
    await scene.lander()
    const asked = await scene.ask({ id: '42', fence: lease.fence, branch: 'fix/42' })
    const { candidate } = await scene.ended(asked)
    const { status, metadata } = await scene.verbs.task('42')
    expect(status).toBe('done')
    expect(metadata).toMatchObject({ proof: { commit: candidate, onto: 'main' } })
    expect(scene.repo.head('main')).toBe(candidate)
  })

  test('comes back when its agent has no branch', async () => {
    const scene = await begin()
    await scene.verbs.add('x', ada, { id: '42', project: 'web' })
    const { lease } = await scene.verbs.claim('42', ada)
    await scene.lander()
    await scene.verbs.move('42', 'done', ada, lease.fence)
    const back = await until('it is back', async () => {
      const task = await scene.verbs.task('42')
      return task.status === 'todo' && task
    })
    expect(back.metadata['returned']).toContain('no branch of its own')
  })
})
