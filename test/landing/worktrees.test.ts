import { expect, test } from 'vitest'
import { dispatching, script } from '../support/dispatching.ts'
import { gitRepo } from '../support/git_repo.ts'

const COMMIT = 'git -c user.name=x -c user.email=x@x commit -q --no-verify'

/** What each task's agent does in the worktree of its run, and with what it comes back. */
const LIES: Record<string, [script: string, returned: RegExp]> = {
  nothing: ['true', /nothing was committed on leasehold\/nothing-1/],
  red: [`: > red; git add -A; ${COMMIT} -m Red`, /its check failed/],
  dirty: [`echo two > a.txt; ${COMMIT} -am Two; echo three > a.txt`, /uncommitted: a\.txt/],
  other: [`git checkout -q -b mine; echo two > a.txt; ${COMMIT} -am Two`, /it is on mine/],
}

test('runs in worktrees of their own land by themselves, and none that lies is done', async () => {
  const at = dispatching()
  const repo = gitRepo(at.place.path('repo'))
  const cases = Object.entries(LIES).map(([id, [body]]) => `${id}) ${body} ;;`)
  const honest = `*) echo "$LEASEHOLD_TASK" > "$LEASEHOLD_TASK"; git add -A; ${COMMIT} -m Work ;;`
  const body = `case $LEASEHOLD_TASK in ${cases.join('\n')}\n${honest}\nesac`
  const land = { onto: 'main', check: ['/bin/sh', '-c', 'test ! -e red'], auto: true }
  const project = { agent: 'sh', path: repo.top, worktrees: {}, land }
  at.configure({ agents: { sh: script(body) }, projects: { web: project } })
  await at.serve()
  for (const id of [...Object.keys(LIES), 'one', 'two']) await at.add(id, id)
  for (const [id, [, told]] of Object.entries(LIES)) {
    expect((await at.become(id, 'failed')).metadata.returned).toMatch(told)
  }
  const proofs = [
    (await at.become('one', 'done')).metadata,
    (await at.become('two', 'done')).metadata,
  ]
  expect(proofs.map(({ proof }) => proof.commit)).toContain(repo.head('main'))
  expect(repo.git('ls-tree', '--name-only', 'main').split('\n')).toEqual([
    ...['.gitignore', 'a.txt', 'one', 'two'],
  ])
})
