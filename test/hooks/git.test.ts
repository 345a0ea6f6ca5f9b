import { spawnSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BIN } from '../support/processes.ts'
import { Claude, expectSilent, type Repo, recorded, repository } from './agents.ts'

/** Puts our hooks into the repository, as `init` does. */
function install({ repo }: Repo): void {
  for (const event of ['pre-commit', 'pre-push']) {
    const file = join(repo, '.git/hooks', event)
    const text = `#!/bin/sh\nexec '${process.execPath}' '${BIN}' hook git ${event} "$@"\n`
    writeFileSync(file, text, { mode: 0o755 })
  }
}

const WHO = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', '-c', 'commit.gpgsign=no']

function git({ place }: Repo, cwd: string, args: string[], env: Record<string, string> = {}) {
  const all = { ...place.env, ...env }
  const { status, stderr } = spawnSync('git', [...WHO, ...args], {
    cwd,
    env: all,
    encoding: 'utf8',
  })
  return { code: status, err: stderr }
}

describe('git', () => {
  test('commits nothing that another agent has reserved', async () => {
    const made = repository()
    const { repo, a, b } = made
    install(made)
    expectSilent(await a.edit('a.ts'))
    writeFileSync(join(repo, 'a.ts'), 'changed\n')
    writeFileSync(join(repo, 'b.ts'), 'changed\n')
    const person = (args: string[], env = {}) => git(made, repo, args, env)
    const no = person(['commit', '-qam', 'All of it'])
    expect(no.code).toBe(1)
    expect(no.err).toMatch(/this commit contains a\.ts \(reserved by claude:aaaaaaaa until/)
    expect(no.err).toMatch(/next: Commit only your own files \(git commit -m MESSAGE -- FILE…\)/)
    // Both names of a move are in a commit.
    person(['mv', 'src/c.ts', 'src/d.ts'])
    expectSilent(await a.edit('src/c.ts'))
    expect(person(['commit', '-qm', 'Moved']).err).toContain('src/c.ts (reserved by')
    person(['mv', 'src/d.ts', 'src/c.ts'])
    expect(person(['commit', '-qm', 'Only b', 'b.ts'])).toEqual({ code: 0, err: '' })
    // The agent itself may, from its own shell, and so may what it started.
    const own = await a.sh(`git ${WHO.join(' ')} commit -qam Mine`)
    expect(own).toMatchObject({ code: 0, err: '' })
    writeFileSync(join(repo, 'a.ts'), 'again\n')
    // An agent's own word for it does not count, in the shell that it runs.
    expectSilent(await b.edit('b.ts'))
    for (const word of ['LEASEHOLD_BYPASS=please', 'LEASEHOLD_HOOKS=off']) {
      const tried = await b.sh(`${word} git ${WHO.join(' ')} commit -qam Theirs`)
      expect(tried.code).toBe(1)
      expect(tried.err).toContain('a.ts (reserved by')
    }
    const past = person(['commit', '-qam', 'Hot'], { LEASEHOLD_BYPASS: 'hotfix' })
    expect(past.code).toBe(0)
    expect(past.err).toContain('bypassed (LEASEHOLD_BYPASS: hotfix); it is on record')
    const kept = await recorded(made.place, 'hook.bypassed')
    expect(kept.map(({ data }) => data)).toMatchObject([{ paths: ['a.ts'], reason: 'hotfix' }])
  })

  test('a subagent’s files may be committed by its family', async () => {
    const made = repository()
    install(made)
    const { repo, a } = made
    expectSilent(await a.edit('a.ts', Claude.sub('one')))
    writeFileSync(join(repo, 'a.ts'), 'changed\n')
    expect(git(made, repo, ['commit', '-qam', 'x']).code).toBe(1)
    expect(git(made, repo, ['commit', '-qam', 'x'], { LEASEHOLD_AGENT: a.id }).code).toBe(0)
  })

  test('commits nothing under a lease that is over', async () => {
    const made = repository()
    install(made)
    const { repo, place } = made
    const { fence } = await place.ok(['--agent', 'ada', 'lock', 'acquire', 'task:7'])
    const under = { LEASEHOLD_AGENT: 'ada', LEASEHOLD_TASK: '7', LEASEHOLD_FENCE: String(fence) }
    const commit = () => git(made, repo, ['commit', '-q', '--allow-empty', '-m', 'x'], under)
    expect(commit()).toEqual({ code: 0, err: '' })
    await place.ok(['--force', 'lock', 'force-release', 'task:7'])
    await place.ok(['--agent', 'bob', 'lock', 'acquire', 'task:7'])
    const no = commit()
    expect(no.code).toBe(1)
    expect(no.err).toMatch(
      /your lease on task:7 \(fence \d+\) is over: bob holds it now\n {2}next:/,
    )
  })

  test('pushes nothing that another agent has reserved by now', async () => {
    const made = repository()
    const { repo, place, a } = made
    const far = place.path('far.git')
    mkdirSync(far)
    git(made, far, ['init', '-q', '--bare'])
    git(made, repo, ['remote', 'add', 'origin', far])
    install(made)
    const push = (env = {}) => git(made, repo, ['push', '-q', 'origin', 'main'], env)
    expectSilent(await a.edit('a.ts'))
    // What was there before there was anybody to wait for it is not looked at.
    expect(push().code).toBe(0)
    writeFileSync(join(repo, 'b.ts'), 'changed\n')
    expect(git(made, repo, ['commit', '-qam', 'b']).code).toBe(0)
    expect(push().code).toBe(0)
    writeFileSync(join(repo, 'a.ts'), 'changed\n')
    expect(git(made, repo, ['commit', '-q', '--no-verify', '-am', 'a']).code).toBe(0)
    const no = push()
    expect(no.code).toBe(1)
    expect(no.err).toMatch(/this push contains changes to a\.ts \(reserved by claude:aaaaaaaa/)
    expect(push({ LEASEHOLD_AGENT: a.id }).code).toBe(0)
  })

  test('in a worktree the paths are its own', async () => {
    const made = repository()
    const { repo, place, a, b } = made
    install(made)
    const tree = place.path('tree')
    git(made, repo, ['worktree', 'add', '-q', tree, '-b', 'side'])
    expectSilent(await a.edit('a.ts'))
    // An edit in another checkout is another file; it is said that the two have to be merged.
    const said = await b.before('Write', { file_path: join(tree, 'a.ts'), content: 'x' })
    expect(said).toMatchObject({ code: 0, err: '' })
    expect(said.out).toContain('in another checkout of this repository')
    writeFileSync(join(tree, 'a.ts'), 'changed\n')
    const no = git(made, tree, ['commit', '-qam', 'x'])
    expect(no.err).toMatch(/a\.ts \(reserved by claude:bbbbbbbb/)
    expect(git(made, tree, ['commit', '-qam', 'x'], { LEASEHOLD_AGENT: b.id }).code).toBe(0)
  })
})
