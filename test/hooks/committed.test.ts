import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { expectDenied, expectSilent, repository } from './agents.ts'

/** `a` has edited two files, and has them. */
async function editing() {
  const made = repository()
  const { a, git, repo } = made
  for (const key of ['user.name', 'user.email']) git('config', key, 'ada@example.com')
  for (const name of ['a.ts', 'b.ts']) {
    expectSilent(await a.edit(name))
    writeFileSync(join(repo, name), 'of a\n')
    await a.after('Edit')
  }
  /** As the agent would do it: the hook, the command, the hook. */
  const commit = async (command: string) => {
    expectSilent(await a.bash(command))
    await a.sh(command)
    await a.after('Bash')
  }
  return { ...made, commit }
}

test('a file is free once its holder has committed it, in the middle of its turn', async () => {
  const { a, b, commit } = await editing()
  await commit("git add a.ts && git commit -qm 'Mend a'")
  expectSilent(await b.edit('a.ts'))
  expect(expectDenied(await b.edit('b.ts'))).toContain('b.ts is reserved by claude:aaaaaaaa')
  expect(expectDenied(await a.edit('a.ts'))).toContain('a.ts is reserved by claude:bbbbbbbb')
})

test('a file that was changed again, or that git refused to commit, stays its own', async () => {
  const { b, commit } = await editing()
  await commit('git commit -qm Both -- a.ts b.ts && echo more >> b.ts')
  expectSilent(await b.edit('a.ts'))
  expect(expectDenied(await b.edit('b.ts'))).toContain('b.ts is reserved by claude:aaaaaaaa')
})

test('what was asked for, or another call is at, stays its own', async () => {
  const { a, b, commit } = await editing()
  expect((await a.leasehold('reserve add c.ts')).code).toBe(0)
  expectSilent(await a.edit('c.ts'))
  expectSilent(await a.edit('a.ts', { tool_use_id: 'toolu_02' }))
  await commit('git add -A && git commit -qm All')
  for (const name of ['a.ts', 'c.ts'])
    expect(expectDenied(await b.edit(name))).toContain(`${name} is reserved`)
  expectSilent(await b.edit('b.ts'))
})
