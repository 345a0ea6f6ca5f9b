import { isDeepStrictEqual } from 'node:util'
import { expect, test } from 'vitest'
import { dispatching, script } from '../support/dispatching.ts'
import { gitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'

const COMMIT = 'git -c user.name=x -c user.email=x@x commit -q --no-verify'

test('what a run has changed so far is told, and with whom that may conflict', async () => {
  const at = dispatching()
  const repo = gitRepo(at.place.path('repo'))
  const body = `case $LEASEHOLD_TASK in
    a) mkdir -p src; echo 1 > src/new.ts; echo two > a.txt; ${COMMIT} -am Two ;;
    b) mkdir -p gen/odd gen/even other; for n in $(seq 250); do : > gen/odd/$n; done
       : > gen/even/1; echo three > a.txt ;;
    esac; begin; until_there go; finish`
  const project = { agent: 'sh', path: repo.top, worktrees: {} }
  const agents = { sh: script(body) }
  at.configure({ agents, projects: { web: project }, runs: { ttl_seconds: 6 } })
  await at.serve()
  await at.add('a', 'ada')
  await at.add('b', 'bob')
  await at.seen('start', 2)
  const shown = (id: string) => at.place.ok(['worktree', 'show', id])
  /** A look may come while the run still writes. */
  const tells = (id: string, changed: string[]) =>
    until(`worktree ${id} tells what has changed`, async () => {
      const tree = await shown(id)
      return isDeepStrictEqual(tree.changed, changed) ? tree : undefined
    })
  await tells('a.1', ['a.txt', 'src/new.ts'])
  // Too many paths to be told one by one: their folders are.
  const { overlaps, state } = await tells('b.1', ['a.txt', 'gen/even/', 'gen/odd/'])
  expect(state).toBe('ready')
  expect(overlaps).toEqual([{ task_id: 'a', status: 'in_progress', paths: ['a.txt'] }])
  await at.add('c', 'cy', { touches: ['src/*.ts', 'gen/odd/7.txt'] })
  const { sentence } = await at.daemon.ok('task.explain', { id: 'c' })
  expect(sentence).toContain('may conflict with task a: both change src/new.ts')
  expect(sentence).toContain('may conflict with task b: both change gen/odd/7.txt')
  at.write('go')
  for (const id of ['a', 'b', 'c']) await at.become(id, 'done')
  expect((await shown('b.1')).overlaps).toEqual([])
})
