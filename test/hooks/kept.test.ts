import { existsSync, linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { describe, expect, test } from 'vitest'
import { keptAmong } from '../../src/hooks/kept.ts'
import { secretRead } from '../../src/hooks/secret.ts'
import {
  AgentProcess,
  Claude,
  expectDenied,
  expectSilent,
  repository,
  SESSIONS,
  TEST_LEASEHOLD,
} from './agents.ts'

/** A repository whose state folder is where `init` puts it, and two more with theirs. */
function checkouts() {
  const made = repository()
  const { place, repo } = made
  place.env['LEASEHOLD_DIR'] = undefined
  for (const folder of [repo, place.path('other')]) {
    mkdirSync(join(folder, '.leasehold'), { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, '.leasehold/config.json'), '{}', { mode: 0o600 })
  }
  const agent = new Claude(place, repo, SESSIONS.a)
  return { ...made, agent, other: place.path('other') }
}

const WHY = /is not for agents to change.*Next: .*leasehold config approve/

test('what names programs that git starts is not edited', async () => {
  const { place, repo, agent, git } = checkouts()
  git('worktree', 'add', '-q', place.path('tree'))
  symlinkSync('.git/config', join(repo, 'alias'))
  const said = await agent.before('Write', { file_path: 'alias', content: '[core]' })
  expect(expectDenied(said)).toMatch(/names programs that git starts/)
  const env = { HOME: place.home }
  const kept = (path: string) =>
    keptAmong(
      { writes: [{ path: resolve(repo, path), kind: 'file' }], touches: [], discards: [] },
      '/none',
      env,
    )
  for (const path of [
    ...['.git/config', '.git/config.worktree', '.git/info/attributes', '.git/hooks/post-commit'],
    ...['.git/modules/lib/config', '.git/worktrees/tree/config.worktree', '.GIT/config'],
    ...[join(place.home, '.gitconfig'), join(place.home, '.config/git/attributes')],
  ]) {
    expect(kept(path)?.text, path).toMatch(/names programs that git starts/)
  }
  for (const path of ['.git/COMMIT_EDITMSG', '.git/info/exclude', 'config', '.husky/pre-commit']) {
    expect(kept(path), path).toBeUndefined()
  }
})

test('the secret of the server is not read, by whichever tool or command', async () => {
  const { repo, agent } = checkouts()
  const state = join(repo, '.leasehold')
  for (const name of ['admin.token', 'server.json']) {
    writeFileSync(join(state, name), 'secret', { mode: 0o600 })
  }
  symlinkSync('.leasehold/admin.token', join(repo, 'notes.txt'))
  const secret = join(state, 'admin.token')
  const WHY_NOT = 'is not for agents to read'
  expect(expectDenied(await agent.before('Read', { file_path: secret }))).toContain(WHY_NOT)
  const command = 'LEASEHOLD_TOKEN=$(cat .leasehold/admin.token) leasehold lock force-release x'
  expect(expectDenied(await agent.before('Bash', { command }))).toContain(WHY_NOT)
  const read = (tool_input: object) => secretRead({ cwd: repo }, { tool_input })
  for (const given of [
    { path: '.leasehold/admin.token' },
    { paths: ['a.ts', secret] },
    { files: [{ path: ` ${secret} ` }] },
  ]) {
    expect(read(given)?.text, JSON.stringify(given)).toContain(WHY_NOT)
  }
  expect(read({ file_path: 'docs/admin.token', content: `see ${secret}s` })).toBeUndefined()
  const run = (line: string) => secretRead({ cwd: repo, command: line }, {})
  for (const line of [
    `cat ${secret}`,
    'cat "$LEASEHOLD_DIR/admin.token"',
    'cd .leasehold && cat admin.token',
    'cat .leasehold/adm*',
    'cat notes.txt',
    'cp -r .leasehold /tmp/x',
    'find . -name admin.token -exec cat {} +',
    'cat --exclude .leasehold/admin.token',
    'curl -H "authorization: Bearer $(cat .leasehold/admin.token)" localhost:4747/v1/session/link',
  ]) {
    expect(run(line)?.text, line).toContain(WHY_NOT)
  }
  for (const line of [
    ...['grep -rn admin.token src', 'ls .leasehold', 'git commit -m "admin.token"'],
    ...['tar czf all.tgz --exclude .leasehold .', "rsync -a --exclude='.leasehold' . /tmp/x"],
  ]) {
    expect(run(line), line).toBeUndefined()
  }
})

describe('the state folder', () => {
  test('is not edited by any way that leads there', async () => {
    const { place, repo, agent, other, git } = checkouts()
    symlinkSync('.leasehold', join(repo, 'alias'))
    symlinkSync('.leasehold/alerts.json', join(repo, 'src/not-yet'))
    linkSync(join(repo, '.leasehold/config.json'), join(repo, 'twin.json'))
    git('worktree', 'add', '-q', place.path('tree'))
    const approved = join(place.home, '.local/state/leasehold/approved/x.json')
    mkdirSync(dirname(approved), { recursive: true })
    writeFileSync(approved, '{}')
    linkSync(approved, join(repo, 'src/approved.json'))
    for (const file_path of [
      join(repo, '.leasehold/config.json'),
      '.leasehold/config.json',
      'src/../.leasehold/new.json',
      ` ${join(repo, '.leasehold/config.json')} `,
      join(repo, 'alias/config.json'),
      join(repo, 'src/not-yet'),
      join(repo, 'twin.json'),
      join(repo, '.Leasehold/config.json'),
      join(repo, '.lease\u200Bhold/config.json'),
      join(other, '.leasehold/config.json'),
      join(place.path('tree'), '.leasehold/config.json'),
      '~/.leasehold/config.json',
      '~/.local/state/leasehold/approved/new.json',
      approved,
      join(repo, 'src/approved.json'),
    ]) {
      const said = await agent.before('Write', { file_path, content: '{}' })
      expect(expectDenied(said), file_path).toMatch(WHY)
    }
    const notebook = { notebook_path: join(repo, '.leasehold/config.json'), new_source: '{}' }
    expect(expectDenied(await agent.before('NotebookEdit', notebook))).toMatch(WHY)
    const edits = [{ file_path: 'a.ts' }, { file_path: join(repo, 'alias/x') }]
    expect(expectDenied(await agent.before('MultiEdit', { edits }))).toMatch(WHY)
  })

  test('is not written, moved, linked or taken away by a command', async () => {
    const { repo, agent } = checkouts()
    for (const command of [
      'echo {} > .leasehold/config.json',
      'cd src && tee ../.leasehold/config.json < x',
      "sed -i 's/a/b/' .lease*/config.json",
      'cp src/c.ts .leasehold/',
      'mv .leasehold /tmp/away',
      'ln -s .leasehold x && echo {} > x/config.json',
      'ln .leasehold/config.json mine.json && echo {} > mine.json',
      'ln -s ../.leasehold/config.json src/x',
      'cp -l .leasehold/config.json mine.json',
      'rm -rf .leasehold',
      `rm -rf ${repo}`,
      'cd .. && mv repo elsewhere',
    ]) {
      expect(expectDenied(await agent.bash(command)), command).toMatch(WHY)
    }
    for (const command of [
      'cat .leasehold/config.json',
      'cp .leasehold/config.json /tmp/copy.json',
      'cp -r src/. .',
      'rm -rf src',
      'ln -s src/c.ts c.ts',
    ]) {
      expectSilent(await agent.bash(command))
    }
    // What is only named alike is not kept.
    const file_path = join(repo, 'notes/.leasehold-sync.json')
    expectSilent(await agent.before('Write', { file_path, content: '{}' }))
  })

  test('is kept from Codex and Cursor too, also where others are only warned', async () => {
    const { place, repo } = checkouts()
    const config = join(repo, '.leasehold/config.json')
    writeFileSync(config, JSON.stringify({ hooks: { mode: 'warn' } }))
    const someone = new AgentProcess(place, repo)
    const patch = { command: `*** Begin Patch\n*** Update File: ${config}\n*** End Patch` }
    const codex = { session_id: 's', cwd: repo, tool_name: 'apply_patch', tool_input: patch }
    const denied = await someone.hook('codex', 'PreToolUse', codex)
    expect(denied.code).toBe(2)
    expect(denied.err).toMatch(WHY)
    const cursor = { conversation_id: 'c', workspace_roots: [repo], tool_name: 'Write' }
    const write = { ...cursor, tool_input: { file_path: config } }
    const { out } = await someone.hook('cursor', 'preToolUse', write)
    expect(JSON.parse(out)).toMatchObject({ permission: 'deny' })
    expect(JSON.parse(out).agent_message).toMatch(WHY)
    const shell = { ...cursor, command: 'rm .leasehold/config.json', cwd: repo }
    expect((await someone.hook('cursor', 'beforeShellExecution', shell)).out).toMatch(/"deny"/)
    // After the fact it can only be said.
    const edited = { ...cursor, file_path: config, edits: [] }
    expect((await someone.hook('cursor', 'afterFileEdit', edited)).err).toMatch(WHY)
  })

  test('of any name is known by LEASEHOLD_DIR, and by what its server left there', async () => {
    const { place, repo, a } = repository()
    expect(expectDenied(await a.before('Write', { file_path: join(place.state, 'x') }))).toMatch(
      WHY,
    )
    const served = place.path('elsewhere')
    mkdirSync(join(served, 'runs'), { recursive: true })
    for (const name of ['admin.token', 'server.json']) writeFileSync(join(served, name), 'x')
    expect(
      expectDenied(await a.before('Write', { file_path: join(served, 'runs/meta.json') })),
    ).toMatch(WHY)
    expectSilent(await a.before('Write', { file_path: join(repo, 'a.ts'), content: 'x' }))
  })

  test('can be changed where a person says why, and that is put on record', async () => {
    const { agent } = checkouts()
    agent.env = { LEASEHOLD_BYPASS: 'setting up' }
    const said = await agent.before('Write', { file_path: '.leasehold/config.json' })
    expect(said.code).toBe(0)
    expect(said.err).toContain('bypassed (LEASEHOLD_BYPASS: setting up); it is on record')
  })

  test('is not committed, but may be taken out', async () => {
    const { place, repo, git } = checkouts()
    const hook = join(repo, '.git/hooks/pre-commit')
    const { BIN } = await import('../support/processes.ts')
    const text = `#!/bin/sh\nexec '${process.execPath}' '${BIN}' hook git pre-commit "$@"\n`
    writeFileSync(hook, text, { mode: 0o755 })
    git('add', '-f', '.leasehold/config.json')
    const commit = () => git('commit', '-q', '-m', 'All of it')
    place.env['LEASEHOLD_DIR'] = undefined
    expect(commit).toThrow(/contains \.leasehold\/config\.json, which is in a state folder/)
    git('commit', '-q', '--no-verify', '-m', 'Past it')
    git('rm', '-q', '--cached', '.leasehold/config.json')
    commit()
    expect(existsSync(join(repo, '.leasehold/config.json'))).toBe(true)
  })
})

test('planted: a hook that lets edits of the state folder pass is caught', async () => {
  const { repo, agent } = checkouts()
  const tool_input = { file_path: join(repo, '.leasehold/config.json'), content: '{}' }
  const hook_event_name = 'PreToolUse'
  const who = { session_id: agent.session, cwd: repo, hook_event_name }
  const input = { ...who, tool_name: 'Write', tool_input }
  const hook = (plant: object) =>
    agent.sh(`${TEST_LEASEHOLD} hook claude pre-tool-use`, JSON.stringify(input), { ...plant })
  expectDenied(await hook({}))
  expectSilent(await hook({ LEASEHOLD_PLANT: 'R50' }))
})
