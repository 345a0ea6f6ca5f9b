import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { dispatching, script } from '../support/dispatching.ts'
import { gitRepo } from '../support/git_repo.ts'
import type { Json } from '../doors/serving.ts'
import { until } from '../support/processes.ts'

/** A queue for a repository whose runs have worktrees. */
function working(body: string, { worktrees = {}, ...more }: Json = {}) {
  const at = dispatching()
  const repo = gitRepo(at.place.path('räpo x'))
  const project = { agent: 'sh', path: repo.top, worktrees, ...more.project }
  at.configure({ ...more.config, agents: { sh: script(body) }, projects: { web: project } })
  const ok = (...args: string[]): Promise<Json> => at.place.ok(args)
  /** The worktree of a run that is over, at rest. */
  const left = (id: string): Promise<Json> =>
    until(`worktree ${id} is left`, async () => {
      const { items } = await ok('worktree', 'list')
      return items.find((each: Json) => each.id === id && each.state === 'left' && each.is_over)
    })
  return { at, repo, ok, left }
}

const COMMIT = 'git -c user.name=x -c user.email=x@x commit -q --no-verify'

test('a run has its own worktree; what it did not commit is saved before it goes', async () => {
  const { at, repo, ok, left } = working(
    `begin; pwd > "$OUT/pwd"; git branch --show-current > "$OUT/branch"
     echo two > a.txt; ${COMMIT} -am "Two of $LEASEHOLD_TASK"; [ "$LEASEHOLD_TASK" = 43 ] && exit 0
     echo three > a.txt; mkdir -p 'new ü'; echo new > 'new ü/b'; finish`,
  )
  await at.serve()
  await at.add('42', 'ada')
  await at.become('42', 'done')
  const made = await left('42.1')
  expect(made.branch).toBe('leasehold/42-1')
  expect(made.changed.toSorted()).toEqual(['a.txt', 'new ü/b'])
  expect(at.read('pwd').trim()).toBe(made.path)
  expect(at.read('branch').trim()).toBe('leasehold/42-1')
  expect(readFileSync(join(repo.top, 'a.txt'), 'utf8')).toBe('one\n')
  const saved = 'refs/leasehold/salvage/42.1'
  expect(repo.git('show', `${saved}:a.txt`)).toBe('three')
  expect(repo.git('show', `${saved}:new ü/b`)).toBe('new')
  expect(repo.head(`${saved}^`)).toBe(repo.head('leasehold/42-1'))
  expect((await ok('worktree', 'diff', '42.1')).diff).toContain('three')
  await ok('worktree', 'remove', '42.1')
  expect(existsSync(made.path)).toBe(false)
  expect(Object.keys(repo.refs()).toSorted()).toEqual(['refs/heads/main', saved])
  // Nothing is uncommitted, but only its own branch has its commit: it is kept, and said why.
  await at.add('43', 'ada')
  await at.become('43', 'done')
  const kept = await left('43.1')
  const refused = await at.place.refused(['worktree', 'remove', '43.1'], 'conflict', 5)
  expect(refused['message']).toContain('is kept: only its branch leasehold/43-1 has commit')
  expect(existsSync(join(kept.path, 'a.txt'))).toBe(true)
  repo.git('merge', '-q', 'leasehold/43-1')
  await ok('worktree', 'remove', '43.1')
  expect(Object.keys(repo.refs()).toSorted()).toEqual(['refs/heads/main', saved])
  expect(repo.git('worktree', 'list').split('\n')).toHaveLength(1)
  expect((await ok('worktree', 'list')).items).toEqual([])
})

test('a retry goes on where the former run stopped, whose work is saved', async () => {
  const { at, repo, left } = working(
    `begin; cat a.txt >> "$OUT/seen"; echo "$LEASEHOLD_RUN" >> a.txt; touch .git-less
     [ "$LEASEHOLD_RUN" = 7.2 ] || exit 1`,
    { worktrees: { retry: 'same' } },
  )
  await at.serve()
  await at.add('7', 'ada', { retries: 1 })
  await at.become('7', 'done')
  const { id, run_id, branch } = await left('7.1')
  expect({ id, run_id, branch }).toEqual({ id: '7.1', run_id: '7.2', branch: 'leasehold/7-1' })
  expect(at.read('seen')).toBe('one\none\n7.1\n')
  expect(repo.git('show', 'refs/leasehold/salvage/7.1:a.txt')).toBe('one\n7.1')
  expect(repo.git('show', 'refs/leasehold/salvage/7.2:a.txt')).toBe('one\n7.1\n7.2')
})

test('setup and teardown are part of the run, copies are there, and values are lent', async () => {
  const { at, repo, left } = working(
    `begin; cat .env >> "$OUT/env"; cat made >> "$OUT/env"
     echo "$LEASEHOLD_RESOURCE_PORTS" >> "$OUT/port"
     [ "$LEASEHOLD_TASK" = a ] && until_there go; finish`,
    {
      worktrees: {
        copy: ['.env'],
        setup: [
          '/bin/sh',
          '-c',
          'echo "$1 $LEASEHOLD_RESOURCE_PORTS" > made; [ -z "$FAIL" ]',
          'x',
          'it is "set up"',
        ],
        teardown: ['/bin/sh', '-c', 'echo "down $LEASEHOLD_RESOURCE_PORTS"'],
      },
      project: { resources: ['ports'] },
      config: { resources: { ports: '5100-5100' } },
    },
  )
  repo.commit('Ignore', { '.gitignore': '.leasehold/\n.env\nmade\n' })
  repo.write({ '.env': 'SECRET=1\n' })
  await at.serve()
  await at.add('a', 'ada')
  await at.seen('start', 1)
  await at.add('b', 'bob')
  const explained = await at.daemon.ok('task.explain', { id: 'b' })
  expect(explained.sentence).toContain('ports is lent: 1 of 1')
  expect(explained.reasons[0]).toMatchObject({ code: 'resource_limit' })
  at.write('go')
  await at.become('b', 'done')
  expect(at.read('port')).toBe('5100\n5100\n')
  expect(at.read('env')).toBe('SECRET=1\nit is "set up" 5100\n'.repeat(2))
  expect((await at.daemon.ok('run.output', { id: 'a.1' })).text).toContain('down 5100')
  // A copy that is still the same is not saved; what else git ignores is.
  expect((await left('a.1')).changed).toEqual(['made'])
})

test('what can be saved nowhere is said by every command, and what to do about it', async () => {
  const { at, ok, left } = working('begin; git init -q inner; echo x > inner/x; finish')
  await at.serve()
  await at.add('9', 'ada')
  await at.become('9', 'done')
  const why = 'a part of it is saved nowhere: inner/'
  const tree = await left('9.1')
  expect(tree.kept_because).toBe(why)
  const said = async (verb: string) => (await at.place.cli(['worktree', verb, '9.1'])).out
  expect(await said('diff')).toBe('not in this diff: inner/\n')
  expect(await said('salvage')).toBe(`kept ${tree.path}: ${why}\n`)
  const { message, next } = await at.place.refused(['worktree', 'remove', '9.1'], 'conflict', 5)
  expect(message).toBe(`Worktree 9.1 is kept: ${why}`)
  expect(next).toMatch(/^Try again: leasehold worktree salvage 9\.1\. If nothing can save it, move/)
  rmSync(join(tree.path, 'inner'), { recursive: true })
  await ok('worktree', 'remove', '9.1')
})
