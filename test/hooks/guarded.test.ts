import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { keptAmong } from '../../src/hooks/kept.ts'
import { readSettings } from '../../src/hooks/settings.ts'
import { effectsOf } from '../../src/hooks/shell/script.ts'
import { isFolder } from '../../src/hooks/targets.ts'
import { AgentProcess, Claude, expectDenied, expectSilent, repository, SESSIONS } from './agents.ts'

/** A repository that `leasehold init` has set up, with two agents, and a file that one has. */
async function setUp() {
  const made = repository()
  const { place, repo } = made
  place.env['LEASEHOLD_DIR'] = undefined
  const said = await place.cli(['init', '--yes', '--client', 'claude'], { cwd: repo })
  expect(said).toMatchObject({ code: 0 })
  const [a, b] = [new Claude(place, repo, SESSIONS.a), new Claude(place, repo, SESSIONS.b)]
  expectSilent(await a.edit('src/c.ts'))
  return { ...made, a, b, state: join(repo, '.leasehold') }
}

describe('a command', () => {
  const repo = mkdtempSync(join(tmpdir(), 'leasehold-kept-'))
  const home = '/home/ada'
  const state = join(repo, '.leasehold')
  for (const each of ['.git', 'src', '.leasehold/init']) {
    mkdirSync(join(repo, each), { recursive: true, mode: 0o700 })
  }
  afterAll(() => rmSync(repo, { recursive: true }))
  writeFileSync(join(state, '.gitignore'), '*\n')
  writeFileSync(join(state, 'leasehold.db'), '')
  const kept = (command: string) => {
    const at = { cwd: repo, home, isFolder, isThere: existsSync }
    return keptAmong(effectsOf(command, at), state, { HOME: home })
  }

  test.each([
    'git clean -fdx',
    'git clean -ffdxq',
    'git clean -xdf -e build',
    'git clean -xdf -e .leasehold -e "!.leasehold"',
    'git clean -fX -e .leasehold',
    'git clean -fdx .',
    "git clean -fdx -- ':/'",
    "git clean -fdx -- '*'",
    'git clean -fdx .leasehold',
    'git -c clean.requireForce=false clean -dx',
    'cd src && git clean -fdx :/',
    'cd src && git clean -fdx ..',
    'git stash --all',
    'rsync -a --delete src/ .',
    'chmod 755 .leasehold',
    'chmod -w .leasehold/leasehold.db',
    'chmod -R 777 .',
    'chown nobody .leasehold',
    'setfacl -m o::rwx .leasehold',
    'chattr +i .leasehold/leasehold.db',
    'mkdir src/.leasehold',
    'rmdir .leasehold/guard',
    'mount --bind /tmp .leasehold',
    'sqlite3 .leasehold/leasehold.db "delete from lease"',
    `python3 -c 'import shutil; shutil.rmtree(".leasehold")'`,
    `node -e 'fs.rmSync(".leasehold", { recursive: true })'`,
    `perl -e 'unlink(".leasehold/leasehold.db")'`,
    'D=.lease; rm -rf ${D}hold',
    'rm -rf "$(echo .leasehold)/leasehold.db"',
  ])('does not take the state folder away: %s', (command) => {
    expect(kept(command)?.text).toContain('is not for agents to change')
  })

  test.each([
    'git clean -fd',
    'git clean -nfdx',
    'git clean -fdx -e .leasehold',
    'git clean -fdx src',
    'git stash -u',
    'chmod +x src/c.ts',
    'chmod 755 .',
    'chmod -R u+w src',
    'mkdir -p src/new',
    'ls -la .leasehold',
    `python3 -c 'print(open(".leasehold/config.json").read())'`,
  ])('may go on: %s', (command) => {
    expect(kept(command)).toBeUndefined()
  })

  test('cleans no state folder that git does not ignore', () => {
    rmSync(join(state, '.gitignore'))
    expect(kept('git clean -fd')?.text).toContain('Clean with it left out')
    expect(kept('git stash -u')).toBeDefined()
    writeFileSync(join(repo, '.gitignore'), '.leasehold/\n')
    expect(kept('git clean -fd')).toBeUndefined()
  })
})

describe('where the state of a checkout that init set up is lost', () => {
  test.each([
    ['with its folder', (state: string) => rmSync(state, { recursive: true })],
    ['with its store', (state: string) => rmAll(state, /^leasehold\.db/)],
    ['to other logins', (state: string) => chmodSync(state, 0o755)],
    [
      'and made anew',
      (state: string) => {
        rmSync(state, { recursive: true })
        mkdirSync(state, { mode: 0o700 })
      },
    ],
  ])('%s, nobody edits in silence', async (_, lose) => {
    const { place, repo, b, state, git } = await setUp()
    lose(state)
    const no = expectDenied(await b.edit('src/c.ts'))
    expect(no).toMatch(/cannot be asked whether this is safe.*refused.*leasehold init/)
    const look = await b.before('Read', { file_path: join(repo, 'a.ts') })
    expect(look.code).toBe(0)
    writeFileSync(join(repo, 'a.ts'), 'changed\n')
    git('add', 'a.ts')
    const commit = await b.hook('git', 'pre-commit', '')
    expect(commit).toMatchObject({ code: 1 })
    // As told: a person sets it up anew. What is lost of a store itself is for `db restore`.
    if (existsSync(join(state, 'witness.leasehold.db'))) return
    await place.cli(['init', '--yes', '--client', 'claude'], { cwd: repo })
    expect((await b.edit('a.ts')).code).toBe(0)
  })

  test('hooks.unreachable decides, as it was last said', async () => {
    const { b, a, state } = await setUp()
    writeFileSync(join(state, 'config.json'), '{"hooks":{"unreachable":"open"}}', { mode: 0o600 })
    expectSilent(await a.edit('a.ts'))
    rmSync(state, { recursive: true })
    const said = await b.edit('a.ts')
    expect(said.code).toBe(0)
    expect(said.err).toMatch(/state folder .* is gone.*goes on unguarded/)
  })

  test('a worktree that stands elsewhere has lost it, too', async () => {
    const { place, git, state } = await setUp()
    git('worktree', 'add', '-q', place.path('tree'))
    const there = new Claude(place, place.path('tree'), SESSIONS.b)
    rmSync(state, { recursive: true })
    expect(expectDenied(await there.edit('a.ts'))).toContain('is gone')
  })

  test('init --undo ends it', async () => {
    const { place, repo, b, state } = await setUp()
    rmSync(state, { recursive: true })
    expect(await place.cli(['init', '--undo', '--yes'], { cwd: repo })).toMatchObject({ code: 0 })
    expectSilent(await b.edit('a.ts'))
  })
})

function rmAll(folder: string, names: RegExp) {
  const found = execFileSync('ls', ['-A', folder], { encoding: 'utf8' }).split('\n')
  for (const name of found.filter((each) => names.test(each))) rmSync(join(folder, name))
}

describe('a setting that lets more pass', () => {
  const standing = { isSetUp: false }
  const modes = { mode: 'off', unreachable: 'open' }

  test('counts in a folder of one’s own', () => {
    const { place } = repository({ hooks: modes })
    expect(readSettings(place.state, {}, standing)).toMatchObject({ ...modes, problems: [] })
  })

  test('is not obeyed in a folder that git tracks', () => {
    const { repo, git } = repository()
    const folder = join(repo, '.leasehold')
    mkdirSync(folder)
    writeFileSync(join(folder, 'config.json'), JSON.stringify({ hooks: modes }))
    git('add', '-f', '.leasehold')
    const { mode, unreachable, problems } = readSettings(folder, {}, { isSetUp: true })
    expect({ mode, unreachable }).toEqual({ mode: 'auto', unreachable: 'closed' })
    expect(problems.join()).toMatch(/git tracks: hooks\.mode, hooks\.unreachable is not obeyed/)
  })

  // reason: only root may give a file to another login
  test.runIf(process.getuid?.() === 0)('nor in one that another login owns', () => {
    const { place } = repository({ hooks: modes })
    for (const path of [join(place.state, 'config.json'), place.state]) {
      chownSync(path, 65_534, 65_534)
      expect(readSettings(place.state, {}, standing)).toMatchObject({ mode: 'auto' })
    }
  })
})

describe('a folder made inside of a guarded checkout', () => {
  const ways = [
    ['git init', (repo: string) => execFileSync('git', ['init', '-q', 'src'], { cwd: repo })],
    ['an empty .git', (repo: string) => mkdirSync(join(repo, 'src/.git'))],
    [
      'a .git file',
      (repo: string) => writeFileSync(join(repo, 'src/.git'), 'gitdir: ../.git/worktrees/x\n'),
    ],
    ['a .leasehold', (repo: string) => mkdirSync(join(repo, 'src/.leasehold'), { mode: 0o700 })],
  ] as const

  test.each(ways)('%s does not switch the guard off below it', async (_, make) => {
    const { repo, place, a, b } = await setUp()
    make(repo)
    expect(expectDenied(await b.edit('src/c.ts'))).toContain(`reserved by ${a.id}`)
    const inside = new Claude(place, join(repo, 'src'), 'cccccccc-1111-4222-8333-444444444444')
    expect(expectDenied(await inside.edit('c.ts'))).toContain(`reserved by ${a.id}`)
    expect(expectDenied(await inside.bash('git commit -m x c.ts || rm c.ts'))).toContain(a.id)
    // And what one reserves there, the other finds.
    await inside.edit('d.ts')
    expect(expectDenied(await a.edit('src/d.ts'))).toContain(`reserved by ${inside.id}`)
  })

  test('is told at once, to the agent and the person', async () => {
    const { a, b, repo } = await setUp()
    const said = await a.bash('git init src')
    expect(said.out).toMatch(/src is a git checkout of its own inside of .*guarded/)
    expect(said.out).toContain('systemMessage')
    execFileSync('git', ['init', '-q', 'src'], { cwd: repo })
    execFileSync('git', ['init', '-q', 'docs'], { cwd: repo })
    expect((await b.edit('docs/x.md')).out).toContain('docs is a git checkout of its own')
    expectSilent(await b.edit('docs/y.md'))
  })

  test('of git’s own making has files of its own: a worktree', async () => {
    const { a, repo, git, place } = await setUp()
    git('worktree', 'add', '-q', 'tree')
    const there = new Claude(place, join(repo, 'tree'), SESSIONS.b)
    expect((await there.edit('src/c.ts')).code).toBe(0)
    expect(expectDenied(await a.edit('tree/src/c.ts'))).toContain(`reserved by ${there.id}`)
  })
})

test('an agent that only looks is told, too, that nobody can be asked', async () => {
  const { place, repo, state } = await setUp()
  rmSync(state, { recursive: true })
  const someone = new AgentProcess(place, repo)
  const input = { session_id: 's', cwd: repo, tool_name: 'Read', tool_input: { file_path: 'a.ts' } }
  expect((await someone.hook('claude', 'PreToolUse', input)).err).toMatch(/is gone.*unguarded/)
})
