import { linkSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { BIN, type Sandbox } from '../support/processes.ts'
import {
  AgentProcess,
  Claude,
  expectDenied,
  expectSilent,
  MCP_HELLO,
  repository,
  SESSIONS,
} from './agents.ts'

/** A repository with its state folder inside, and a folder that has none. */
function elsewhere() {
  const { place, repo, git } = repository()
  place.env['LEASEHOLD_DIR'] = undefined
  mkdirSync(join(repo, '.leasehold'), { mode: 0o700 })
  const away = place.path('away')
  mkdirSync(away)
  const a = new Claude(place, away, SESSIONS.a)
  const b = new Claude(place, repo, SESSIONS.b)
  return { place, repo, git, away, a, b }
}

const list = async (place: Sandbox, cwd: string) => {
  const { items } = await place.ok(['reserve', 'list'], { cwd })
  return (items as { path: string; holder: string }[]).map(({ path, holder }) => [path, holder])
}

describe('an agent that was started in another folder', () => {
  test('is guarded by the state folder of what it edits, until its turn ends', async () => {
    const { place, repo, away, a, b } = elsewhere()
    const edit = (file_path: string) => a.before('Edit', { file_path })
    expectSilent(await b.edit('a.ts'))
    expect(expectDenied(await edit('../repo/a.ts'))).toContain(`reserved by ${b.id}`)
    expect(expectDenied(await a.bash(`cd ${repo} && rm a.ts`))).toContain(`reserved by ${b.id}`)
    symlinkSync(join(repo, 'a.ts'), join(away, 'linked.ts'))
    symlinkSync(join(repo, 'src'), join(away, 'linked'))
    expect(expectDenied(await edit(join(away, 'linked.ts')))).toContain(`reserved by ${b.id}`)
    expectSilent(await edit(join(away, 'linked/c.ts')))
    expect(expectDenied(await b.edit('src/c.ts'))).toContain(`reserved by ${a.id}`)
    expect(await list(place, repo)).toContainEqual(['src/c.ts', a.id])
    // From its shell there it is the same agent.
    const added = await a.sh(`cd ${repo} && '${process.execPath}' '${BIN}' --json reserve add b.ts`)
    expect(JSON.parse(added.out).items).toMatchObject([{ path: 'b.ts', holder: a.id }])
    expectSilent(await a.stop())
    expect(await list(place, repo)).toEqual([
      ['a.ts', b.id],
      ['b.ts', a.id],
    ])
    expectSilent(await a.end())
    expect(await list(place, repo)).toEqual([['a.ts', b.id]])
  })

  test('is refused a commit there, and what is nowhere guarded goes on', async () => {
    const { repo, away, a, b } = elsewhere()
    expectSilent(await b.edit('a.ts'))
    writeFileSync(join(repo, 'a.ts'), 'changed\n')
    expect(expectDenied(await a.bash(`git -C ${repo} commit -am x`))).toContain(b.id)
    expectSilent(await a.before('Write', { file_path: join(away, 'notes.md') }))
    expectSilent(await a.stop())
  })

  test('names files of a submodule as everybody does', async () => {
    const { repo, git, a, b } = elsewhere()
    const lib = join(repo, 'lib')
    mkdirSync(join(repo, '.git/modules/lib'), { recursive: true })
    mkdirSync(lib)
    git('init', '-q', '--separate-git-dir', join(repo, '.git/modules/lib'), lib)
    writeFileSync(join(lib, 'x.ts'), '')
    expectSilent(await b.edit('lib/x.ts'))
    const said = await a.before('Edit', { file_path: join(lib, 'x.ts') }, { cwd: lib })
    expect(expectDenied(said)).toContain(`reserved by ${b.id}`)
  })
})

describe('a patch', () => {
  const THREAD = '019a8f00-0000-7000-8000-0000cccccccc'

  test('is read however its lines are padded, and refused where none can be read', async () => {
    const { place, repo, a } = repository()
    expectSilent(await a.edit('a.ts'))
    const codex = new AgentProcess(place, repo)
    const ask = (tool_input: object) =>
      codex.hook('codex', 'PreToolUse', {
        session_id: THREAD,
        cwd: repo,
        tool_name: 'apply_patch',
        tool_input,
      })
    for (const line of [
      '  *** Update File: a.ts',
      '\t*** Update File: a.ts\t',
      '*** Update File:  a.ts  ',
      '*** Update File: a.ts\r',
      '***  Update  File : a.ts',
      '*** update file: a.ts',
      '*** Delete File: a.ts\u0085',
      '\u00A0*** Add File: a.ts\u2003',
      '*** Update File: b.ts\n  *** Move to: a.ts  ',
      '*** Update File: src/../a.ts',
    ]) {
      const { code, err } = await ask({ command: `*** Begin Patch\n${line}\n*** End Patch` })
      expect({ line, code, err }).toMatchObject({ line, code: 2 })
      expect(err, line).toContain(`a.ts is reserved by ${a.id}`)
    }
    // One that no reservation can name leaves the others guarded.
    const odd = { command: '*** Add File: o\u0001dd.ts\n*** Add File: b.ts\n*** Add File: a.ts' }
    expect(await ask(odd)).toMatchObject({ code: 2 })
    const split = await ask({ command: '*** Update File: b.ts\r*** Update File: a.ts' })
    expect(split.code).toBe(2)
    for (const input of [{}, { command: '*** Begin Patch\n*** Change: a.ts\n*** End Patch' }]) {
      const { code, err } = await ask(input)
      expect(code).toBe(2)
      expect(err).toMatch(/names no file that could be looked up.*Next: /)
    }
    expectDenied(await a.before('Write', { content: 'no path' }))
  })
})

describe('a file with two names', () => {
  test('is refused by its other name while an agent has one, and told about else', async () => {
    const { repo, a, b } = repository()
    linkSync(join(repo, 'a.ts'), join(repo, 'src/twin.ts'))
    expect((await a.edit('a.ts')).out).toContain('is a hard link')
    const no = expectDenied(await b.edit('src/twin.ts'))
    expect(no).toMatch(
      /src\/twin\.ts is the same file as a\.ts \(a hard link\), reserved by claude/,
    )
    expectSilent(await a.end())
    const said = await b.edit('src/twin.ts')
    expect(said.code).toBe(0)
    expect(said.out).toContain('src/twin.ts is a hard link')
  })
})

describe('the shell of an agent', () => {
  test('speaks for that agent and those below it, and for nobody else', async () => {
    const { place, a, b } = repository()
    expectSilent(await a.edit('a.ts'))
    expectSilent(await b.edit('b.ts'))
    await place.ok(['lock', 'acquire', 'deploy', '--agent', 'bob'])
    const before = await place.ok(['lock', 'status', 'deploy'])
    const refused = [
      '--agent bob lock release deploy',
      '--force lock release deploy --agent bob',
      '--force lock acquire x',
      'lock force-release deploy',
      `reserve release b.ts --agent ${b.id}`,
      'token create --role admin',
      'queue pause',
      'config approve --yes',
      `run --lock x --agent bob -- true`,
    ]
    for (const args of refused) {
      const { code, err } = await a.leasehold(`--json ${args}`)
      expect({ args, code, err }).toMatchObject({ args, code: 4 })
      expect(JSON.parse(err).error.next, args).toMatch(/your user/)
    }
    const borrowed = await a.leasehold('--json lock release deploy', { LEASEHOLD_AGENT: 'bob' })
    expect(borrowed.code).toBe(4)
    expect(await place.ok(['lock', 'status', 'deploy'])).toMatchObject({
      fence: before.fence,
      lock_holder: 'bob',
    })
    const own = await a.leasehold(`--json lock acquire mine --agent ${a.id}/sub`)
    expect(JSON.parse(own.out)).toMatchObject({ holder: `${a.id}/sub` })
    expect(await a.leasehold('run --lock mine-too -- true')).toMatchObject({ code: 0 })
    // A person's own command is nobody's.
    await place.ok(['lock', 'release', 'deploy', '--agent', 'bob'])
  })

  test('nor does its MCP server', async () => {
    const { place, a } = repository()
    expectSilent(await a.edit('a.ts'))
    await place.ok(['lock', 'acquire', 'deploy', '--agent', 'bob'])
    const call = (id: number, name: string, args: object) => ({
      id,
      method: 'tools/call',
      params: { name, arguments: args },
    })
    const asked = [
      ...MCP_HELLO,
      call(2, 'release_lock', { name: 'deploy', agent_id: 'bob' }),
      call(3, 'acquire_lock', { name: 'own', agent_id: `${a.id}/sub` }),
    ]
    const lines = asked.map((each) => `${JSON.stringify({ jsonrpc: '2.0', ...each })}\n`).join('')
    const answered = `while ! grep -q '"id":2' out || ! grep -q '"id":3' out; do sleep 0.02; done`
    const server = `'${process.execPath}' '${BIN}' mcp`
    const { out } = await a.sh(`{ cat; ${answered}; } | ${server} > out; cat out`, lines)
    expect(out).toMatch(/cannot act as bob/)
    expect(out).toContain(`${a.id}/sub`)
    expect(await place.ok(['lock', 'status', 'deploy'])).toMatchObject({ lock_holder: 'bob' })
  })
})
