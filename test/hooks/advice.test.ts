import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { expectDenied, expectSilent, heard, repository } from './agents.ts'

/** What `b` is told when it wants what `a` has just edited. */
async function refused(ask: (made: ReturnType<typeof repository>) => Promise<string>) {
  const made = repository()
  const { a, git, repo } = made
  for (const key of ['user.name', 'user.email']) git('config', key, 'ada@example.com')
  expectSilent(await a.edit('a.ts'))
  for (const name of ['a.ts', 'b.ts']) writeFileSync(join(repo, name), 'changed\n')
  await a.after('Edit')
  return { ...made, said: await ask(made) }
}

describe('what a refusal advises is not refused itself', () => {
  test('commit only your own files', async () => {
    const { b, git, said } = await refused(async (made) => {
      return expectDenied(await made.b.bash('git commit -qam All'))
    })
    expect(said).toContain('Commit only your own files (git commit -m MESSAGE -- FILE…)')
    git('add', '-A')
    const command = 'git commit -qm Mine -- b.ts'
    expectSilent(await b.bash(command))
    expect(await b.sh(command)).toMatchObject({ code: 0 })
    expect(git('show', '--name-only', '--format=')).toBe('b.ts\n')
  })

  test('see whether it is free, ask its holder, in full once and then in a line', async () => {
    const { b, said } = await refused(async (made) => expectDenied(await made.b.edit('a.ts')))
    expect(said).toContain('To see whether it is free: leasehold reserve check a.ts')
    expect(said).toContain('leasehold reserve ask a.ts --reason WHY')
    expect((await b.leasehold('reserve check a.ts')).code).toBe(5)
    expect((await b.leasehold("reserve ask a.ts --reason 'For 42'")).code).toBe(0)
    const again = expectDenied(await b.edit('a.ts'))
    expect(again).toMatch(
      /^Leasehold: a\.ts is reserved by claude:aaaaaaaa until \S+Z\. Next: Other files first/,
    )
    await b.fire('SessionStart', { source: 'compact' })
    expect(expectDenied(await b.edit('a.ts'))).toBe(said)
  })

  test('name only files of your own', async () => {
    const { b, said } = await refused(async (made) => {
      return expectDenied(await made.b.bash('git checkout -- .'))
    })
    expect(said).toContain('Name only files of your own')
    expect((await b.bash('git checkout -- b.ts')).code).toBe(0)
  })

  test('take back what was saved', async () => {
    const { a, b, git } = await refused(async (made) => {
      await made.a.stop()
      return ''
    })
    const said = heard(await b.bash('git restore a.ts'))
    const [, command] = /To take them back: (git restore .*? a\.ts)/.exec(said)!
    git('restore', 'a.ts')
    await b.after('Bash')
    await b.stop()
    expect(heard(await a.bash(command!))).toContain('has discarded changes of yours')
    expect((await a.sh(command!)).code).toBe(0)
    expect(git('status', '--short', 'a.ts')).toBe(' M a.ts\n')
  })
})
