import { readFileSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { Claude, expectDenied, expectSilent, heard, repository, TEST_LEASEHOLD } from './agents.ts'
import { until } from '../support/processes.ts'

/** `a` has edited a file and its turn is over: nobody has reserved it, and it is not committed. */
async function left(config?: object) {
  const made = repository(config)
  const { a, b, repo } = made
  expectSilent(await a.edit('a.ts'))
  writeFileSync(join(repo, 'a.ts'), 'of a\n')
  await a.after('Edit')
  await a.stop()
  expectSilent(await b.bash('true'))
  const refs = () =>
    made.git('for-each-ref', '--format=%(refname)', 'refs/leasehold').split('\n').filter(Boolean)
  const read = (name: string) => readFileSync(join(repo, name), 'utf8')
  return { ...made, refs, read }
}

test('what a turn left is saved before it is reset away, and both are told', async () => {
  const { a, b, git, refs, repo } = await left()
  writeFileSync(join(repo, 'new.sh'), 'run\n', { mode: 0o755 })
  git('add', 'new.sh')
  writeFileSync(join(repo, 'of-a-person'), 'kept\n')
  const said = heard(await b.bash('git reset --hard && git clean -fd'))
  expect(said).toMatch(/discards uncommitted changes that are not known to be yours \(a\.ts/)
  const [first] = refs()
  const all = refs()
    .map((ref) => git('ls-tree', '-r', '--name-only', ref))
    .join('')
  expect(all).toContain('of-a-person')
  expect(git('show', `${first}:a.ts`) + git('show', `${refs().at(-1)}:a.ts`)).toContain('of a\n')
  expect(all).toContain('new.sh')
  expect(git('status', '--porcelain', 'a.ts')).toBe(' M a.ts\n')
  git('reset', '-q', '--hard')
  const told = heard(await a.bash('true'))
  expect(told).toContain('claude:bbbbbbbb has discarded changes of yours that were not committed')
  expect(told).toMatch(/in a\.ts\. They were saved as refs\/leasehold\/salvage\/discarded-/)
  expectSilent(await a.bash('true'))
  const back = /git restore --source=(\S+) -- a\.ts/.exec(told)!
  git('restore', `--source=${back[1]}`, '--', 'a.ts')
  expect(readFileSync(join(repo, 'a.ts'), 'utf8')).toBe('of a\n')
})

test('its own changes an agent may discard without a word, this turn and the next', async () => {
  const { a, refs } = await left()
  expectSilent(await a.bash('git checkout -- a.ts'))
  expectSilent(await a.bash('git reset --hard'))
  expect(refs()).toEqual([])
})

test.each(['rm a.ts', 'git restore a.ts', 'echo mine > a.ts', 'git stash'])(
  'saved before: %s',
  async (command) => {
    const { b, git, refs } = await left()
    expect(heard(await b.bash(command))).toContain('they were saved first, as refs/leasehold/')
    expect(git('show', `${refs()[0]}:a.ts`)).toBe('of a\n')
  },
)

test('a change of the same size, in the second in which git looked last, is saved', async () => {
  const { b, git, refs, repo } = await left()
  git('checkout', '-q', 'a.ts')
  // As it is on a disk that knows no finer time: git has to look into the file.
  git('config', 'core.trustctime', 'false')
  const moment = new Date('2026-01-01')
  const at = (name: string) => utimesSync(join(repo, name), moment, moment)
  at('a.ts')
  git('update-index', '--refresh')
  at('.git/index')
  writeFileSync(join(repo, 'a.ts'), 'A.TS\n')
  at('a.ts')
  expect(heard(await b.bash('git restore a.ts'))).toContain('they were saved first')
  expect(git('show', `${refs()[0]}:a.ts`)).toBe('A.TS\n')
})

test('an agent that was killed, and a file that is ignored, lose nothing either', async () => {
  const { place, repo, b, git, refs } = await left()
  const c = new Claude(place, repo, 'cccccccc-1111-4222-8333-444444444444')
  expectSilent(await c.edit('b.ts'))
  writeFileSync(join(repo, 'b.ts'), 'of c\n')
  await c.after('Edit')
  await c.die()
  writeFileSync(join(repo, '.git/info/exclude'), '.env\nbuilt/\n')
  writeFileSync(join(repo, '.env'), 'KEY=1\n')
  expect(heard(await b.bash('git reset --hard; git clean -fdx -e .leasehold'))).toContain('saved')
  const saved = refs()
    .map((ref) => git('ls-tree', '-r', '--name-only', ref))
    .join('')
  expect(saved).toContain('.env')
  expect(refs().some((ref) => git('show', `${ref}:b.ts`) === 'of c\n')).toBe(true)
})

test('refused where config says so, and where it cannot be saved', async () => {
  const { b, refs, read } = await left({ hooks: { discard: 'refuse' } })
  expect(expectDenied(await b.bash('git reset --hard'))).toContain('a.ts. Next: Name only files')
  expect(refs()).toEqual([])
  const other = await left()
  writeFileSync(join(other.repo, '.git/refs/leasehold'), 'no folder\n')
  expect(expectDenied(await other.b.bash('git reset --hard'))).toContain('could not be saved')
  expect(read('a.ts')).toBe('of a\n')
})

test('planted: a guard that saves nothing is caught by the ref that is missing', async () => {
  const { b, refs } = await left()
  const input = {
    session_id: b.session,
    tool_name: 'Bash',
    tool_input: { command: 'git reset --hard' },
    hook_event_name: 'PreToolUse',
  }
  const plant = { LEASEHOLD_PLANT: 'R61' }
  await b.sh(`${TEST_LEASEHOLD} hook claude pre-tool-use`, JSON.stringify(input), plant)
  expect(refs()).toEqual([])
})

test('what is committed since is saved for nobody', async () => {
  const { a, b, repo, git, refs } = await left()
  const second = () => Math.floor(Date.now() / 1000)
  const wrote = second()
  await until('git counts on', () => second() > wrote)
  git('commit', '-qam', 'Of a')
  expectSilent(await b.edit('a.ts'))
  writeFileSync(join(repo, 'a.ts'), 'of b\n')
  await b.after('Edit')
  expectSilent(await b.bash('git checkout -- a.ts'))
  expect(refs()).toEqual([])
  expectSilent(await a.bash('true'))
})

test('what another is about to write is not taken back, whoever begins', async () => {
  const { a, b, git, repo } = repository()
  expectSilent(await a.edit('a.ts'))
  expect(expectDenied(await b.bash('git restore .'))).toContain('a.ts (reserved by claude:aaaaaaaa')
  expectSilent(await b.bash('git restore b.ts'))
  writeFileSync(join(repo, 'a.ts'), 'of a\n')
  await b.after('Bash')
  await a.after('Edit')
  git('commit', '-qam', 'Mend a')
  await a.stop()
  expectSilent(await b.bash('git reset --hard'))
  expect(expectDenied(await a.edit('a.ts'))).toContain('claude:bbbbbbbb is having git take back')
  await b.after('Bash')
  expectSilent(await a.edit('a.ts'))
})

test('nobody waits for a command whose agent died', async () => {
  const { a, b } = repository()
  expectSilent(await b.bash('git reset --hard'))
  await b.die()
  expectSilent(await a.edit('a.ts'))
})
