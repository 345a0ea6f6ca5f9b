import { expect, test } from 'vitest'
import { dispatching } from '../support/dispatching.ts'
import { gitRepo } from '../support/git_repo.ts'
import { sandbox } from '../support/processes.ts'

const SAID = 'It is not said what to land: a task, or a branch'

test('"land" alone lands nothing: it proposes what is checked out where it was typed', async () => {
  const place = sandbox()
  const repo = gitRepo(place.path('repo'))
  const next = async (cwd: string) => {
    const { message, next: said } = await place.refused(['land'], 'invalid', 2, { cwd })
    expect(message).toBe(SAID)
    return said as string
  }
  expect(await next(place.folder)).toMatch(/^Name one: leasehold land 42, or leasehold land fea/)
  repo.git('switch', '--quiet', '--create', 'feature/login')
  expect(await next(repo.top)).toMatch(/checked out here: leasehold land feature\/login\n/)
  const tree = place.path('tree')
  repo.git('worktree', 'add', '--quiet', '-b', 'leasehold/web-42-1', tree)
  expect(await next(tree)).toMatch(/task of this worktree: leasehold land web-42\n/)
  repo.git('switch', '--quiet', '--detach')
  expect(await next(repo.top)).toMatch(/^Name one/)

  const { code, err } = await place.cli(['land'], { cwd: tree })
  expect({ code, err }).toEqual({
    code: 2,
    err:
      `error: ${SAID}\n` +
      '  next: For the task of this worktree: leasehold land web-42\n' +
      '        What is in review: leasehold task list --status review\n' +
      '        See: leasehold land --help\n',
  })
})

test('a branch by its flag alone, or the task of a run, is said well enough', async () => {
  const place = sandbox()
  const named = await place.refused(['land', '--branch', 'x', '--project', 'web'], 'invalid', 2)
  expect(named.message).toBe('Project web has no "land" in config.json')
  await place.ok(['task', 'add', 'Mend it', '--id', '42', '--project', 'api'])
  const env = { LEASEHOLD_TASK: '42' }
  const run = await place.refused(['land'], 'invalid', 2, { env })
  expect(run.message).toBe('Project api has no "land" in config.json')
})

test('the help of land and worktree says what turns it on, and which words follow', async () => {
  const place = sandbox()
  const land = (await place.cli(['land', '--help'])).out
  expect(land).toMatch(/"land": \{ "onto": "main", "check": \["npm", "test"\] \}/)
  for (const verb of ['list', 'show', 'cancel']) expect(land).toContain(`leasehold land ${verb}`)
  const worktree = (await place.cli(['worktree', '--help'])).out
  expect(worktree).toContain('"worktrees": true')
  for (const verb of ['list', 'show', 'diff', 'salvage', 'remove']) {
    expect(worktree).toContain(`leasehold worktree ${verb}`)
  }
})

test('without a server, whoever asks for a landing is told that nobody lands it', async () => {
  const all = dispatching()
  const repo = gitRepo(all.place.path('repo'))
  const land = { onto: 'main', check: ['true'] }
  all.configure({ projects: { web: { agent: 'brief', path: repo.top, land } } })
  await all.serve()
  expect((await all.place.cli(['land', 'one'])).out).not.toContain('no server')
  await all.daemon.stop()
  const waits = 'no server is running that could land it (leasehold up)'
  expect((await all.place.cli(['land', 'two'])).out).toContain(`It waits: ${waits}.`)
  expect((await all.place.cli(['land', 'list'])).out).toContain(waits)
})
