import { expect, test } from 'vitest'
import { dispatching, script } from '../support/dispatching.ts'
import { gitRepo } from '../support/git_repo.ts'
import { until } from '../support/processes.ts'
import type { Json } from '../doors/serving.ts'

/** A project of which nothing is said but how it lands, and an agent as the presets have theirs. */
function landing(body: string, { land = {}, agent = {} }: Json = {}) {
  const at = dispatching()
  const repo = gitRepo(at.place.path('repo'))
  const coding = script(body, { brief: true, commit: true, ...agent })
  const rule = { onto: 'main', auto: true, ...land }
  at.configure({
    agents: { coding },
    projects: { web: { agent: 'coding', path: repo.top, land: rule } },
  })
  return { at, repo }
}

test('what a run leaves uncommitted is committed with its last words, and lands', async () => {
  const { at, repo } = landing('echo two > a.txt; echo new > b.txt; echo "Made it two."')
  await at.serve()
  await at.add('42', 'ada')
  await at.become('42', 'done')
  expect(repo.git('show', 'main:a.txt')).toBe('two')
  expect(repo.git('show', 'main:b.txt')).toBe('new')
  const message = repo.git('log', '-1', '--format=%B', 'main')
  expect(message).toContain('\n\nMade it two.\n\n')
  expect(message).toMatch(/^Leasehold-Agent: .+\nLeasehold-Task: 42$/m)
})

test('nothing is committed for a failed run, nor for one that commits itself', async () => {
  const failing = landing('echo two > a.txt; exit 1')
  await failing.at.serve()
  await failing.at.add('42', 'ada')
  await failing.at.become('42', 'failed')
  expect(failing.repo.git('log', '--format=%s', 'leasehold/42-1')).toBe(
    failing.repo.git('log', '--format=%s', 'main'),
  )
  const own = landing('echo two > a.txt', { agent: { commit: false } })
  await own.at.serve()
  await own.at.add('42', 'ada')
  await own.at.become('42', 'failed')
  const { metadata } = await own.at.task('42')
  expect(metadata.returned).toContain('changes were left uncommitted: a.txt')
})

test('its prompt ends with what it has, where it is, and what becomes of its work', async () => {
  const { at } = landing('cat > "$OUT/prompt"; echo two > a.txt', { land: { check: ['true'] } })
  await at.serve()
  await at.add('42', 'ada')
  await at.become('42', 'done')
  const prompt = at.read('prompt')
  expect(prompt).toContain('Leasehold has started you on task 42 (run 42.1). It is yours already')
  expect(prompt).toContain('on the branch leasehold/42-1: stay on it, and commit')
  expect(prompt).toContain('It has to pass first: "true". Then it is landed onto main.')
})

test('work that came back for a conflict has its target merged, and says where', async () => {
  const { at, repo } = landing(
    `cat > "$OUT/prompt-$LEASEHOLD_RUN"
     if [ "$LEASEHOLD_RUN" = 42.1 ]; then echo two > a.txt; echo made > "$OUT/made"; until_there go
     else grep -q '<<<<<<<' a.txt && echo both > a.txt; fi`,
  )
  await at.serve()
  await at.add('42', 'ada', { retries: 1 })
  await until('the run has written', () => at.read('made') !== '')
  repo.commit('Theirs', { 'a.txt': 'theirs\n' })
  at.write('go')
  await at.become('42', 'done')
  const prompt = at.read('prompt-42.2')
  expect(prompt).toContain(
    'main was merged into your branch, and is in conflict with it in "a.txt"',
  )
  expect(prompt).toContain('An earlier run of this task (42.1) has worked here')
  expect(repo.git('show', 'main:a.txt')).toBe('both')
})

test('a conflict that nobody settled is not committed', async () => {
  const { at, repo } = landing(
    `[ "$LEASEHOLD_RUN" != 42.1 ] && exit
    echo two > a.txt; echo made > "$OUT/made"; until_there go`,
  )
  await at.serve()
  await at.add('42', 'ada', { retries: 1 })
  await until('the run has written', () => at.read('made') !== '')
  repo.commit('Theirs', { 'a.txt': 'theirs\n' })
  at.write('go')
  await at.become('42', 'failed')
  const { metadata } = await at.task('42')
  expect(metadata.returned).toContain('changes were left uncommitted: a.txt')
  expect(repo.git('show', 'main:a.txt')).toBe('theirs')
})
