import { execFileSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { needsAim, startAimed } from '../faults/aimed.ts'
import { GitRepo } from '../support/git_repo.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { sandbox, until } from '../support/processes.ts'
import { Crew } from './crew.ts'
import { LandingScene } from './scene.ts'

/** A person in the checkout of `main`, and a branch that waits to be landed there. */
async function meet(files: Record<string, string>, before: (its: GitRepo, top: string) => unknown) {
  const scene = await new LandingScene({ check: ['/bin/true'] }).begin()
  const { repo } = scene
  repo.commit('More', {
    ...{ 'cfg.txt': 'cfg\n', 'b.txt': 'b\n', 'old/x.txt': 'x\n' },
    '.gitignore': '.leasehold/\n.env\ndata/\n',
  })
  scene.branch('one', files)
  before(repo, scene.top)
  const was = repo.head('main')
  await scene.lander()
  const asked = await scene.ask({ id: 'one' })
  const reason = await until(`it says why: ${scene.said.join('; ')}`, async () => {
    const landing = await scene.landing(asked.id)
    expect(landing.status).not.toBe('landed')
    return landing.reason
  })
  expect(repo.head('main')).toBe(was)
  const landed = async () => {
    expect(await scene.ended(asked)).toMatchObject({ status: 'landed', reason: null })
    expect(repo.git('show', 'main:one.txt')).toBe('1')
    expect(readFileSync(join(scene.top, 'one.txt'), 'utf8')).toBe('1')
  }
  return { scene, repo, reason, landed, read: (name: string) => text(join(scene.top, name)) }
}

const text = (path: string) => readFileSync(path, 'utf8')
const ONE = { 'one.txt': '1' }

describe('a landing onto a branch that a person has checked out waits', () => {
  test('while anything is staged, and the next commit takes nothing back', async () => {
    const { repo, reason, landed } = await meet(ONE, (its) => {
      its.write({ 'b.txt': 'mine\n' }).git('add', 'b.txt')
    })
    expect(reason).toMatch(/staged there: b\.txt/)
    repo.git('commit', '--quiet', '--message', 'Mine')
    await landed()
    expect(repo.git('show', 'main:b.txt')).toBe('mine')
    expect(repo.git('status', '--porcelain')).toBe('')
  })

  test('for an ignored file that it would overwrite', async () => {
    const { scene, reason, landed, read } = await meet({ ...ONE, '.env': 'landed' }, (its) => {
      its.write({ '.env': 'secret of mine' })
    })
    expect(reason).toMatch(/\.env/)
    expect(read('.env')).toBe('secret of mine')
    rmSync(join(scene.top, '.env'))
    await landed()
    expect(read('.env')).toBe('landed')
  })

  test('for an ignored folder in the place of a file, and the other way round', async () => {
    const { scene, reason, landed, read } = await meet(
      { ...ONE, data: 'a file', '.env/x': 'x' },
      (its) => its.write({ 'data/rows/1.csv': 'rows', '.env': 'mine' }),
    )
    expect(reason).toMatch(/data/)
    expect(read('data/rows/1.csv')).toBe('rows')
    expect(read('.env')).toBe('mine')
    rmSync(join(scene.top, 'data'), { recursive: true })
    rmSync(join(scene.top, '.env'))
    await landed()
  })

  test.each(['skip-worktree', 'assume-unchanged'])(
    'for a change that is hidden: %s',
    async (way) => {
      const { repo, reason, landed, read } = await meet({ ...ONE, 'cfg.txt': 'new\n' }, (its) => {
        its.git('update-index', `--${way}`, 'cfg.txt')
        its.write({ 'cfg.txt': 'my own\n' })
      })
      expect(reason).toMatch(/cfg\.txt/)
      expect(read('cfg.txt')).toBe('my own\n')
      repo.git('update-index', `--no-${way}`, 'cfg.txt')
      repo.git('checkout', '--quiet', 'cfg.txt')
      await landed()
    },
  )

  test('for a merge that is under way', async () => {
    const { repo, reason, landed } = await meet(ONE, (its) => {
      its.git('branch', 'side', 'main')
      its.git('switch', '--quiet', 'side')
      its.commit('Side', { 'b.txt': 'side\n' })
      its.git('switch', '--quiet', 'main')
      its.git('merge', '--quiet', '--no-ff', '--no-commit', 'side')
    })
    expect(reason).toMatch(/merge is under way/)
    repo.git('commit', '--quiet', '--message', 'Merged')
    await landed()
  })

  test('for a rebase of it that is under way, though HEAD is on no branch then', async () => {
    const { repo, reason, landed } = await meet(ONE, (its) => {
      its.commit('Third', { 'c.txt': 'c\n' })
      const editor = ['-c', 'sequence.editor=sed -i -e 1s/^pick/edit/']
      its.git(...editor, 'rebase', '--quiet', '--interactive', 'HEAD~1')
    })
    expect(reason).toMatch(/a rebase of main is under way/)
    repo.git('rebase', '--continue')
    await landed()
    expect(repo.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
    expect(repo.git('status', '--porcelain')).toBe('')
  })

  test('for the index, while git has it locked', async () => {
    const { scene, reason, landed } = await meet(ONE, (_, top) => {
      writeFileSync(join(top, '.git/index.lock'), '')
    })
    expect(reason).toMatch(/index\.lock/)
    rmSync(join(scene.top, '.git/index.lock'))
    await landed()
  })
})

test('what has not to wait: changes elsewhere, and files that have it already', async () => {
  const scene = await new LandingScene({ check: ['/bin/true'] }).begin()
  const { repo } = scene
  repo.commit('More', {
    'b.txt': 'b\n',
    'gone.txt': 'gone\n',
    '.gitignore': '.leasehold/\n*.log\n',
  })
  repo.git('switch', '--quiet', '--create', 'one')
  repo.git('rm', '--quiet', 'gone.txt')
  repo.commit('One', { 'one.txt': '1', 'a.txt': 'two\n', 'deep/er/x.txt': 'x' })
  repo.git('switch', '--quiet', 'main')
  repo.write({ 'b.txt': 'mine\n', 'my.txt': 'my\n', 'my.log': 'log\n' })
  // As one leaves it that was broken off between the files and the branch.
  repo.write({ 'a.txt': 'two\n', 'deep/er/x.txt': 'x' })
  await scene.lander()
  expect(await scene.ended(await scene.ask({ id: 'one' }))).toMatchObject({ status: 'landed' })
  expect(repo.git('status', '--porcelain')).toBe(' M b.txt\n?? my.txt')
  expect(existsSync(join(scene.top, 'gone.txt'))).toBe(false)
  expect(text(join(scene.top, 'my.log'))).toBe('log\n')
})

/** All of it has followed: whatever is committed there next takes nothing back. */
function expectFollowed(checkout: GitRepo, file: string): void {
  expect(checkout.git('symbolic-ref', 'HEAD')).toBe('refs/heads/main')
  expect(checkout.git('status', '--porcelain')).toBe('')
  expect(checkout.git('ls-files').split('\n')).toContain(file)
}

test('a landing waits for every checkout that has the branch, and all of them follow', async () => {
  const scene = await new LandingScene({ check: ['/bin/true'] }).begin()
  const { repo } = scene
  const twin = new GitRepo(join(temporaryFolder(), 'twin'))
  repo.git('worktree', 'add', '--quiet', '--force', twin.top, 'main')
  twin.write({ 'mine.txt': 'mine' }).git('add', 'mine.txt')
  scene.branch('one', ONE)
  await scene.lander()
  const asked = await scene.ask({ id: 'one' })
  await until('it says why', async () =>
    (await scene.landing(asked.id)).reason?.includes('mine.txt'),
  )
  twin.git('rm', '--quiet', '--cached', 'mine.txt')
  rmSync(join(twin.top, 'mine.txt'))
  expect(await scene.ended(asked)).toMatchObject({ status: 'landed' })
  for (const each of [repo, twin]) expectFollowed(each, 'one.txt')
})

describe('who comes to the branch while it is moved', () => {
  /** A lander that is about to land while its person is somewhere else. */
  async function about(step: string) {
    const crew = new Crew()
    const { repo, top } = crew.scene
    const asked = await crew.work(1)
    repo.git('switch', '--quiet', '--create', 'away')
    const lander = await crew.start({ LEASEHOLD_STOP_AT: step })
    await crew.stopped(lander)
    const landed = async () => {
      expect((await crew.over(asked, 30_000))[0]).toMatchObject({ status: 'landed' })
    }
    return { repo, top, lander, landed }
  }

  test('by a new worktree has what is landed', async () => {
    const { repo, lander, landed } = await about('lander:locked')
    const late = new GitRepo(join(temporaryFolder(), 'late'))
    repo.git('worktree', 'add', '--quiet', late.top, 'main')
    lander.kill('SIGCONT')
    await landed()
    expectFollowed(late, 'f0')
  })

  test.for([
    ['has looked at it already', 128, { call: 'openat', nth: 3, paths: ['.git/refs/heads/main'] }],
    ['has its files already', 0, { call: 'rename', paths: ['.git/index.lock'] }],
  ] as const)(
    'by a switch that %s has what is landed, or is told no',
    async ([, code, at], context) => {
      needsAim(context)
      const { repo, top, lander, landed } = await about('lander:proposed')
      const paths = at.paths.flatMap((path) => [path, join(top, path)])
      const options = { program: ['git'], cwd: top }
      const person = startAimed(sandbox(), ['switch', '--quiet', 'main'], { ...at, paths }, options)
      expect(await person.isThere()).toBe(true)
      const was = repo.head('main')
      lander.kill('SIGCONT')
      await until('it is moved', () => repo.head('main') !== was)
      // reason: longer than a lander waits that does not look whether git is at work
      await new Promise((later) => void setTimeout(later, 150))
      await person.goOn()
      expect(await person.running.ended).toMatchObject({ code })
      await landed()
      if (code !== 0) repo.git('switch', '--quiet', 'main')
      expectFollowed(repo, 'f0')
    },
  )
})

describe('what is in a branch never reaches the state folder', () => {
  test.each([
    ['its configuration', { '.leasehold/config.json': '{}' }],
    ['a new file in it', { '.leasehold/x': 'x' }],
    ['a file in its place', { '.leasehold': 'x' }],
    ['one in a folder below', { 'sub/.Leasehold/config.json': '{}' }],
  ])('%s: it comes back with the reason', async (_, files) => {
    const scene = await new LandingScene({ check: ['/bin/true'] }).begin()
    scene.branch('one', { 'one.txt': '1', ...files })
    const was = scene.repo.head('main')
    const config = text(join(scene.top, '.leasehold/config.json'))
    await scene.lander()
    const ended = await scene.ended(await scene.ask({ id: 'one' }))
    expect(ended).toMatchObject({ status: 'returned', paths: Object.keys(files) })
    expect(ended.reason).toMatch(/state folder/)
    expect(scene.repo.head('main')).toBe(was)
    expect(text(join(scene.top, '.leasehold/config.json'))).toBe(config)
  })
})

/** Each step of a landing between which the lander may be killed while a person works. */
const STEPS = ['lander:locked', 'lander:prepared', 'lander:filled', 'lander:moved'] as const

describe('a lander that is killed with -9', () => {
  test.each(STEPS)('at %s takes nothing back, and leaves nothing locked', async (step) => {
    const crew = new Crew()
    const { repo, top } = crew.scene
    const asked = await crew.work(1)
    const lander = await crew.start({ LEASEHOLD_STOP_AT: step })
    await crew.stopped(lander)
    await crew.kill(lander)
    const locks = () => ['index.lock', 'HEAD.lock', 'refs/heads/main.lock'].filter(isThere)
    const isThere = (name: string) => existsSync(join(top, '.git', name))
    await until(`nothing is locked: ${locks().join()}`, () => locks().length === 0)
    const was = repo.head('main')
    repo.write({ 'a.txt': 'mine\n' }).git('commit', '--quiet', '--all', '--message', 'Mine')
    await crew.start()
    const [ended] = await crew.over(asked, 30_000)
    expect(repo.git('show', 'main:a.txt')).toBe('mine')
    expect(repo.git('ls-tree', '--name-only', 'main')).toContain('f0')
    expect(repo.git('status', '--porcelain')).toBe('')
    expect(repo.git('merge-base', was, 'main')).toBe(was)
    // What the person has committed meanwhile is theirs, with what was landed in it or without.
    expect(['landed', 'returned']).toContain(ended!.status)
  })

  test.each(STEPS.slice(0, 3))(
    'at %s keeps a person from committing, or gives way',
    async (step) => {
      const crew = new Crew()
      const { repo, top } = crew.scene
      const asked = await crew.work(1)
      const lander = await crew.start({ LEASEHOLD_STOP_AT: step })
      await crew.stopped(lander)
      mkdirSync(join(top, 'mine'), { recursive: true })
      writeFileSync(join(top, 'mine/x.txt'), 'x')
      const add = () => execFileSync('git', ['add', 'mine'], { cwd: top, stdio: 'pipe' })
      expect(add).toThrow('index.lock')
      lander.kill('SIGCONT')
      expect((await crew.over(asked, 30_000))[0]).toMatchObject({ status: 'landed' })
      add()
      repo.git('commit', '--quiet', '--message', 'Mine')
      expect(repo.git('ls-tree', '-r', '--name-only', 'main')).toMatch(/f0\nmine\/x\.txt/)
      expect(repo.git('status', '--porcelain')).toBe('')
    },
  )
})
