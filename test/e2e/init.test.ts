import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { parse } from 'jsonc-parser'
import { describe, expect, test } from 'vitest'
import { KINDS } from '../../src/agents/kinds.ts'
import { sandbox } from '../support/processes.ts'
import { Checkout } from './checkouts.ts'

const ALL = ['--yes', '--client', KINDS.join(',')]

async function done(checkout: Checkout, ...args: string[]): Promise<void> {
  expect(await checkout.init(args), args.join(' ')).toMatchObject({ code: 0, err: '' })
}

describe('leasehold init', () => {
  test('sets up an empty repository; twice is once; undo leaves nothing behind', async () => {
    const repo = new Checkout(sandbox())
    const before = repo.snapshot()
    await done(repo, ...ALL)
    const once = repo.snapshot()
    expect(Object.keys(once)).toEqual(
      expect.arrayContaining([
        '.claude/settings.json',
        '.claude/skills/leasehold/SKILL.md',
        '.codex/config.toml',
        '.codex/hooks.json',
        '.cursor/hooks.json',
        '.cursor/mcp.json',
        '.gemini/settings.json',
        '.github/hooks/leasehold.json',
        '.gitignore',
        '.mcp.json',
        '.opencode/plugin/leasehold.js',
        '.vscode/mcp.json',
        'AGENTS.md',
        'CLAUDE.md',
        'GEMINI.md',
        'hooks/pre-commit',
        'hooks/pre-push',
        'opencode.json',
      ]),
    )
    expect(once['.leasehold/']).toBe('700')
    expect(once['hooks/pre-commit']).toMatch(/^755 #!\/bin\/sh\n/)
    expect(repo.git('status', '--porcelain')).not.toContain('.leasehold')
    expect(parse(repo.read('.mcp.json'))).toEqual({
      mcpServers: { leasehold: { command: 'leasehold', args: ['mcp'] } },
    })
    await done(repo, '--check')
    const again = await repo.init(['--yes', '--json'])
    expect(again.json).toMatchObject({ written: false, agents: KINDS })
    expect(repo.snapshot()).toEqual(once)

    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toEqual(before)
    expect(repo.git('status', '--porcelain', '--ignored')).toBe('')
  })

  test('names nothing of this machine, and passes where leasehold is not installed', async () => {
    const repo = new Checkout(sandbox())
    await done(repo, ...ALL)
    for (const [name, text] of Object.entries(repo.snapshot())) {
      if (!name.startsWith('.leasehold')) expect(text, name).not.toContain(repo.place.folder)
    }
    const commands = ['.claude/settings.json', '.codex/hooks.json', '.cursor/hooks.json'].flatMap(
      (name) => Array.from(repo.read(name).matchAll(/"command": ("command -v.*"),?$/gm)),
    )
    expect(commands).toHaveLength(25)
    const runs = (command: string) =>
      spawnSync('sh', ['-c', command], {
        cwd: repo.root,
        env: repo.env,
        input: '{}',
        encoding: 'utf8',
      })
    for (const [, quoted] of commands.slice(0, 4)) {
      expect(runs(JSON.parse(quoted!) as string)).toMatchObject({ status: 0, stderr: '' })
    }
    repo.write('a.txt', 'a')
    repo.git('add', '.')
    repo.git('commit', '-m', 'passes')
    repo.install()
    const [, first] = commands[0]!
    expect(runs(JSON.parse(first!) as string).status).toBe(0)
    expect(repo.noted('calls')).toBe('hook claude session-start\n')
  })

  test('what it writes holds two agents and git to it', async () => {
    const repo = new Checkout(sandbox())
    repo.write('a.ts', 'a')
    repo.git('add', 'a.ts')
    repo.git('commit', '-m', 'a')
    await done(repo, '--yes')
    repo.installReal()
    const [a, b] = [repo.claude('aaaa'), repo.claude('bbbb')]
    const edit = { tool_name: 'Edit', tool_input: { file_path: join(repo.root, 'a.ts') } }
    expect(await a.hook('SessionStart', { source: 'startup' })).toMatchObject({ status: 0 })
    expect(await a.hook('PreToolUse', edit)).toEqual({ status: 0, stderr: '' })
    const denied = await b.hook('PreToolUse', edit)
    expect(denied).toMatchObject({ status: 2 })
    expect(denied.stderr).toContain('claude:aaaa')
    repo.write('a.ts', 'b')
    expect(() => repo.git('commit', '-am', 'not mine')).toThrow('claude:aaaa')
    expect(await a.hook('SessionEnd', { reason: 'exit' })).toMatchObject({ status: 0 })
    expect(await b.hook('PreToolUse', edit)).toEqual({ status: 0, stderr: '' })
    for (const { running } of [a, b]) running.child.stdin!.end()
    await Promise.all([a.running.ended, b.running.ended])
    repo.git('commit', '-am', 'free')
  })

  test('--check tells of what was changed since', async () => {
    const repo = new Checkout(sandbox())
    await done(repo, '--yes')
    await done(repo, '--check')
    repo.write('.claude/settings.json', '{}')
    const { code, err } = await repo.init(['--check'])
    expect({ code, err }).toEqual({ code: 5, err: expect.stringContaining('settings.json') })
  })

  test('says what it would do, and writes nothing unless somebody agrees', async () => {
    const repo = new Checkout(sandbox())
    const before = repo.snapshot()
    const { code, out, err } = await repo.init([])
    expect(code).toBe(2)
    expect(out).toMatch(/^AGENTS\.md +create +the working rules/m)
    expect(err).toContain('next: Say --yes')
    expect(await repo.init(['--dry-run'])).toMatchObject({ code: 0, err: '' })
    expect(await repo.init(['--check', '--json'])).toMatchObject({ code: 5, out: '' })
    expect(repo.snapshot()).toEqual(before)
  })

  const claude = {
    permissions: { allow: ['Bash(npm test)'] },
    hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [{ type: 'command', command: 'mine' }] }] },
    model: 'opus',
  }
  test.for([
    ['four spaces and no last line end', JSON.stringify(claude, null, 4)],
    ['tabs', JSON.stringify(claude, null, '\t') + '\n'],
    ['CRLF', (JSON.stringify(claude, null, 2) + '\n').replaceAll('\n', '\r\n')],
    ['comments', JSON.stringify(claude, null, 2).replace('{\n', '{\n  // ours, with care\n')],
  ] as const)('merges into settings with %s, and gives them back', async ([how, text]) => {
    const repo = new Checkout(sandbox())
    repo.write('.claude/settings.json', text, 0o600)
    repo.write('.mcp.json', '{"mcpServers": {"other": {"command": "other"}}}')
    const before = repo.snapshot()
    await done(repo, '--yes')
    const merged = repo.read('.claude/settings.json')
    const value = parse(merged) as typeof claude
    expect(Object.keys(value)).toEqual(['permissions', 'hooks', 'model'])
    expect(value.hooks.PreToolUse[0]).toEqual(claude.hooks.PreToolUse[0])
    expect(value.hooks.PreToolUse[1]!.hooks[0]!.command).toContain('hook claude pre-tool-use')
    expect(Object.keys(value.hooks)).toHaveLength(9)
    expect(Object.keys(parse(repo.read('.mcp.json')).mcpServers)).toEqual(['other', 'leasehold'])
    expect(merged.endsWith('\n')).toBe(text.endsWith('\n'))
    if (how === 'CRLF') expect(merged.replaceAll('\r\n', '')).not.toContain('\n')
    if (how === 'comments') expect(merged).toContain('// ours, with care')
    if (how === 'tabs') expect(merged).not.toMatch(/^ /m)
    expect(repo.snapshot()['.claude/settings.json']).toMatch(/^600 /)
    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toEqual(before)
  })

  test('an existing hook runs after ours, is heard when it fails, and comes back', async () => {
    const repo = new Checkout(sandbox())
    const user = '#!/bin/sh\necho theirs >> log\n[ ! -e fail ]\n'
    repo.write('.git/hooks/pre-commit', user, 0o755)
    repo.write('.git/hooks/pre-push', '#!/usr/bin/env bash\ncat > pushed\n', 0o755)
    repo.write('.gitignore', 'log\nfail\npushed\n')
    repo.git('add', '.')
    repo.git('commit', '-m', 'theirs')
    const { log: _, ...before } = repo.snapshot()
    await done(repo, '--yes')
    repo.install()
    repo.git('commit', '--allow-empty', '-m', 'one')
    expect(repo.noted('calls')).toBe('hook git pre-commit\n')
    expect(repo.read('log')).toBe('theirs\ntheirs\n')
    repo.write('fail', '')
    expect(() => repo.git('commit', '--allow-empty', '-m', 'two')).toThrow('Command failed')
    rmSync(join(repo.root, 'fail'))
    repo.install('pre-commit')
    expect(() => repo.git('commit', '--allow-empty', '-m', 'three')).toThrow('refused')
    expect(repo.read('log')).toBe('theirs\ntheirs\ntheirs\n')

    repo.git('init', '--bare', '../remote.git')
    repo.git('push', '../remote.git', 'main')
    expect(repo.noted('refs')).toMatch(/^refs\/heads\/main \w+ refs\/heads\/main 0+\n$/)
    expect(repo.read('pushed')).toBe(repo.noted('refs'))
    repo.install('pre-push')
    repo.git('checkout', '-b', 'other')
    expect(() => repo.git('push', '../remote.git', 'other')).toThrow('refused')
    for (const name of ['log', 'pushed']) rmSync(join(repo.root, name))
    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toEqual(before)
  })

  test('a hook that is no shell script, a link, or switched off is kept beside ours', async () => {
    const repo = new Checkout(sandbox())
    const node = `#!${process.execPath}\nrequire('fs').appendFileSync('log', 'node\\n')\n`
    repo.write('scripts/check.js', node, 0o755)
    symlinkSync('../../scripts/check.js', join(repo.root, '.git/hooks/pre-commit'))
    repo.write('.git/hooks/pre-push', '#!/bin/sh\nexit 1\n', 0o644)
    const before = repo.snapshot()
    await done(repo, '--yes')
    const once = repo.snapshot()
    await done(repo, '--yes')
    expect(repo.snapshot()).toEqual(once)
    repo.install()
    repo.git('commit', '--allow-empty', '-m', 'one')
    expect(repo.read('log')).toBe('node\n')
    expect(repo.noted('calls')).toBe('hook git pre-commit\n')
    repo.git('init', '--bare', '../remote.git')
    repo.git('push', '../remote.git', 'main')
    rmSync(join(repo.root, 'log'))
    // Without the manifest the markers and the kept hook are enough.
    rmSync(join(repo.root, '.leasehold/init/main.json'))
    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toEqual(before)
  })

  test('with husky, lines between markers in its own files', async () => {
    const repo = new Checkout(sandbox())
    const starter = '#!/bin/sh\nsh -e "$(dirname "$(dirname "$0")")/$(basename "$0")" "$@"\n'
    for (const hook of ['pre-commit', 'pre-push']) repo.write(`.husky/_/${hook}`, starter, 0o755)
    repo.write('.husky/pre-commit', 'echo lint >> log\n[ ! -e fail ]\n')
    repo.write('package.json', '{"devDependencies": {"husky": "9.1.7"}}\n')
    repo.git('config', 'core.hooksPath', '.husky/_')
    const before = repo.snapshot()
    await done(repo, '--yes')
    expect(repo.read('.husky/pre-commit')).toMatch(/^# leasehold:begin\n[^]*# leasehold:end\necho/)
    expect(Object.keys(repo.snapshot())).not.toContain('hooks/pre-commit')
    repo.install()
    repo.git('commit', '--allow-empty', '-m', 'one')
    expect(repo.read('log')).toBe('lint\n')
    expect(repo.noted('calls')).toBe('hook git pre-commit\n')
    repo.write('fail', '')
    expect(() => repo.git('commit', '--allow-empty', '-m', 'two')).toThrow('Command failed')
    for (const name of ['fail', 'log']) rmSync(join(repo.root, name))
    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toEqual(before)
  })

  test('in a worktree the hooks and the state are those of all, the files its own', async () => {
    const place = sandbox()
    const repo = new Checkout(place)
    repo.git('worktree', 'add', '../tree', '-b', 'other')
    const tree = join(place.folder, 'tree')
    const before = [repo.snapshot(), repo.snapshot(tree)]
    const options = { cwd: join(tree) }
    expect(await repo.init(['--yes'], options)).toMatchObject({ code: 0 })
    expect(existsSync(join(tree, 'AGENTS.md'))).toBe(true)
    expect(existsSync(join(tree, '.leasehold'))).toBe(false)
    expect(repo.has('AGENTS.md')).toBe(false)
    expect(repo.has('.leasehold/init')).toBe(true)
    expect(repo.has('.git/hooks/pre-commit')).toBe(true)
    expect(repo.git('status', '--porcelain')).toBe('')
    // What the worktrees share stays until the last of them goes back.
    await done(repo, '--yes')
    expect(await repo.init(['--undo', '--yes'], options)).toMatchObject({ code: 0 })
    expect(repo.snapshot(tree)).toEqual(before[1])
    await done(repo, '--check')
    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toEqual(before[0])
    expect(repo.gitIn(tree, 'status', '--porcelain', '--ignored')).toBe('')
  })

  test('from a folder of a monorepo the whole checkout is set up, and it says so', async () => {
    const repo = new Checkout(sandbox())
    repo.write('packages/web/package.json', '{}')
    const web = join(repo.root, 'packages/web')
    mkdirSync(join(repo.place.home, '.leasehold'))
    const { out, code } = await repo.init(['--yes'], { cwd: web })
    expect(code).toBe(0)
    expect(out).toContain(`The checkout begins at ${repo.root}`)
    expect(out).toMatch(/Until now .*home\/\.leasehold was used here/)
    expect(repo.has('AGENTS.md')).toBe(true)
    expect(existsSync(join(web, 'AGENTS.md'))).toBe(false)
    expect(await repo.init(['--check'], { cwd: web })).toMatchObject({ code: 0 })
  })

  test('without git it sets up what agents read, and says what is missing', async () => {
    const repo = new Checkout(sandbox(), 'plain', false)
    const before = repo.snapshot()
    const { out, code } = await repo.init(['--yes'])
    expect(code).toBe(0)
    expect(out).toContain('no git checkout: no git hooks')
    expect(repo.has('.claude/settings.json')).toBe(true)
    expect(repo.has('.gitignore')).toBe(false)
    await done(repo, '--undo', '--yes')
    expect(repo.snapshot()).toEqual(before)
  })

  test('hooks that git looks for outside of the checkout are left alone', async () => {
    const repo = new Checkout(sandbox())
    mkdirSync(repo.place.path('hooks'))
    rmSync(join(repo.root, '.git/hooks'), { recursive: true })
    symlinkSync('../../hooks', join(repo.root, '.git/hooks'))
    const { out, code } = await repo.init(['--yes'])
    expect(code).toBe(0)
    expect(out).toContain('outside of this checkout: git hooks are yours to add')
    expect(readdirSync(repo.place.path('hooks'))).toEqual([])
    repo.git('config', 'core.hooksPath', '.githooks')
    await done(repo, '--yes')
    expect(repo.has('.githooks/pre-push')).toBe(true)
    repo.write('.git/HEAD', 'broken')
    expect(await repo.init(['--yes', '--json'])).toMatchObject({ code: 4 })
  })

  test('depending on leasehold, a repository starts the one it brings', async () => {
    const repo = new Checkout(sandbox())
    repo.write('package.json', '{"devDependencies": {"leasehold": "0.1.0"}}')
    await done(repo, ...ALL)
    expect(parse(repo.read('.mcp.json')).mcpServers.leasehold).toEqual({
      command: 'npx',
      args: ['--no-install', 'leasehold', 'mcp'],
    })
    repo.write('node_modules/.bin/leasehold', '#!/bin/sh\necho "$*" >> log\n', 0o755)
    repo.git('commit', '--allow-empty', '-m', 'one')
    expect(repo.read('log')).toBe('hook git pre-commit\n')
  })

  test('in CI only what is committed counts', async () => {
    const repo = new Checkout(sandbox())
    await done(repo, '--yes')
    repo.git('add', '.')
    repo.git('commit', '-m', 'set up')
    repo.git('clone', repo.root, '../clone')
    const cwd = join(repo.place.folder, 'clone')
    expect(await repo.init(['--check'], { cwd })).toMatchObject({ code: 5 })
    const ci = { cwd, env: { CI: 'true' } }
    expect(await repo.init(['--check'], ci)).toMatchObject({ code: 0, err: '' })
    // Undo goes back to what was cloned; undo again takes that out too.
    expect(await repo.init(['--yes'], { cwd })).toMatchObject({ code: 0 })
    const undone = await repo.init(['--undo', '--yes'], { cwd })
    expect(undone.out).toMatch(/AGENTS\.md +leave/)
    expect(repo.gitIn(cwd, 'status', '--porcelain', '--ignored')).toBe('')
    expect(existsSync(join(cwd, '.git/hooks/pre-commit'))).toBe(false)
    expect(await repo.init(['--undo', '--yes'], { cwd })).toMatchObject({ code: 0 })
    expect(existsSync(join(cwd, 'AGENTS.md'))).toBe(false)
    repo.gitIn(cwd, 'checkout', '.')
    execFileSync('sed', ['-i', 's/pre-tool-use/post-tool-use/', `${cwd}/.claude/settings.json`])
    const { error } = await repo.init(['--check', '--json'], ci)
    expect(error).toMatchObject({ code: 'conflict' })
    expect(error.details.changes).toMatchObject([{ path: '.claude/settings.json' }])
  })
})
