import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { BIN } from '../support/processes.ts'
import {
  AgentProcess,
  LEASEHOLD,
  MCP_HELLO,
  type Repo,
  repository,
  type Said,
  TEST_LEASEHOLD,
} from './agents.ts'

/** What the real programs sent: see test/fixtures/conversations. */
interface Recorded {
  shell: Record<string, string>
  subagent_shell: Record<string, string>
  mcp_meta: object
  subagent_mcp_meta: object
  hooks: Record<string, Record<string, unknown>>
}

const recorded = (client: string): Recorded =>
  JSON.parse(
    readFileSync(new URL(`../fixtures/conversations/${client}/identity.json`, import.meta.url), 'utf8'),
  ) as Recorded

const CLIENTS = [
  { kind: 'claude', id: 'claude:b939e5aa', sub: 'adac2acc63f40567b', of: 'claude-code-2.1.325' },
  { kind: 'codex', id: 'codex:c4a7ba53', sub: '36a5a7b9', of: 'codex-0.166.0' },
] as const

type Client = (typeof CLIENTS)[number]

/** A conversation of a client, in a process, as its recorded hooks and environments have it. */
class Conversing {
  readonly from: Recorded

  constructor(
    readonly repo: Repo,
    readonly process: AgentProcess,
    readonly client: Client,
    /** Replaces the conversation's id, to have two. */
    private readonly as: (text: string) => string = (text) => text,
  ) {
    this.from = recorded(client.of)
  }

  private said<T>(value: T): T {
    return JSON.parse(this.as(JSON.stringify(value))) as T
  }

  hook(name: string, event: string, more: Record<string, unknown> = {}): Promise<Said> {
    const input = { ...this.said(this.from.hooks[name]!), cwd: this.repo.repo, ...more }
    return this.process.hook(this.client.kind, event, input)
  }

  /** An edit of the agent, or of its subagent. */
  edit(file: string, isSub = false): Promise<Said> {
    const path = `${this.repo.repo}/${file}`
    const patch = `*** Begin Patch\n*** Update File: ${file}\n@@\n-a\n+b\n*** End Patch\n`
    const claude = { file_path: path, old_string: 'a', new_string: 'b' }
    const tool_input = this.client.kind === 'claude' ? claude : { command: patch }
    const { agent_id } = this.said(this.from.hooks['subagent_PreToolUse_shell']!)
    return this.hook('PreToolUse_edit', 'pre-tool-use', {
      tool_input,
      agent_id: isSub ? agent_id : undefined,
    })
  }

  /** A command in the agent's shell, after the hook that comes before it. */
  async shell(command: string, isSub = false, wrapped = command): Promise<Said> {
    const name = isSub ? 'subagent_PreToolUse_shell' : 'PreToolUse_shell'
    await this.hook(name, 'pre-tool-use', { tool_input: { command } })
    const env = this.said(isSub ? this.from.subagent_shell : this.from.shell)
    return this.process.sh(wrapped, '', env)
  }

  /** A tool of our MCP server, as the client calls it. */
  async tool(tool: string, given: object, isSub = false): Promise<Said> {
    const name = isSub ? 'subagent_PreToolUse_mcp' : 'PreToolUse_mcp'
    await this.hook(name, 'pre-tool-use', { tool_name: `mcp__leasehold__${tool}` })
    const meta = this.said(isSub ? this.from.subagent_mcp_meta : this.from.mcp_meta)
    const params = { name: tool, arguments: given, _meta: meta }
    const call = { id: 2, method: 'tools/call', params }
    const lines = [...MCP_HELLO, call].map((each) => JSON.stringify({ jsonrpc: '2.0', ...each }))
    const answered = `while ! grep -q '"id":2' answers; do sleep 0.02; done`
    const server = `'${process.execPath}' '${BIN}' mcp`
    const all = `rm -f answers; { cat; ${answered}; } | ${server} > answers; cat answers`
    return this.process.sh(all, `${lines.join('\n')}\n`)
  }
}

/** Who holds what is reserved, in the order of the paths. */
async function holders({ place }: Repo): Promise<string[]> {
  const { items } = await place.ok(['reserve', 'list'])
  const found = items as { path: string; holder: string }[]
  return found
    .toSorted((a, b) => (a.path < b.path ? -1 : 1))
    .map(({ path, holder }) => `${path} ${holder}`)
}

const began = async (client: Client) => {
  const repo = repository()
  const one = new Conversing(repo, new AgentProcess(repo.place, repo.repo), client)
  await one.hook('SessionStart', 'session-start')
  return { repo, one }
}

const RESERVE = (path: string) => `${LEASEHOLD} reserve add ${path}`

describe.each(CLIENTS)('one conversation of $kind is one agent', (client) => {
  const { id, sub } = client

  test('through its hook, its shell, our MCP server and git', async () => {
    const { repo, one } = await began(client)
    expect(await one.edit('a.ts')).toMatchObject({ code: 0 })
    expect(await one.shell(RESERVE('b.ts'))).toMatchObject({ code: 0 })
    const { out } = await one.tool('reserve_paths', { paths: ['src/c.ts'] })
    expect(out).toContain('Reserved src/c.ts')
    expect(await holders(repo)).toEqual([`a.ts ${id}`, `b.ts ${id}`, `src/c.ts ${id}`])
    for (const file of ['a.ts', 'b.ts', 'src/c.ts']) {
      expect(await one.edit(file), file).toMatchObject({ code: 0 })
    }
    const check = await one.shell(`${LEASEHOLD} reserve check a.ts b.ts src/c.ts`)
    expect(check, check.out).toMatchObject({ code: 0 })
    await one.shell('echo x >> b.ts; git add b.ts')
    const commit = `${LEASEHOLD} hook git pre-commit`
    expect(await one.shell(commit)).toMatchObject({ code: 0 })
    expect((await repo.b.sh(commit)).err).toContain(`b.ts (reserved by ${id}`)
  })

  test('and so is its subagent, nested under it', async () => {
    const { repo, one } = await began(client)
    await one.hook('SubagentStart', 'subagent-start')
    expect(await one.edit('a.ts', true)).toMatchObject({ code: 0 })
    expect(await one.shell(RESERVE('b.ts'), true)).toMatchObject({ code: 0 })
    const { out } = await one.tool('reserve_paths', { paths: ['src/c.ts'] }, true)
    expect(out).toContain('Reserved src/c.ts')
    const own = `${id}/${sub}`
    expect(await holders(repo)).toEqual([`a.ts ${own}`, `b.ts ${own}`, `src/c.ts ${own}`])
    expect(await one.edit('b.ts', true)).toMatchObject({ code: 0 })
    // Its parent is not it.
    expect(await one.edit('b.ts')).toMatchObject({ code: 2 })
    await one.hook('SubagentStop', 'subagent-stop')
    expect(await holders(repo)).toEqual([])
  })

  test('which cannot say that it is another, nor do what only a person may', async () => {
    const { repo, one } = await began(client)
    const other = '00000000-0000-4000-8000-000000000000'
    const names = ['CODEX_SESSION_ID', 'CODEX_THREAD_ID', 'CLAUDE_CODE_SESSION_ID']
    const forged = names.map((name) => `${name}=${other}`).join(' ')
    await one.shell(`${forged} ${RESERVE('b.ts')}`)
    expect(await holders(repo)).toEqual([`b.ts ${id}`])
    const no = await one.shell(`${LEASEHOLD} lock force-release x`)
    expect(no.err).toContain(`not for ${id} to do`)
  })
})

const codex = CLIENTS[1]
const UNSHARE = 'unshare --pid --fork --mount-proc'

describe('one conversation of codex is one agent', () => {
  test('in a sandbox that has processes of its own', async ({ skip }) => {
    const { repo, one } = await began(codex)
    const able = await one.process.sh(`${UNSHARE} true`)
    // reason: a pid namespace of one's own needs root
    if (able.code !== 0) skip()
    const inside = (command: string) => one.shell(command, false, `${UNSHARE} sh -c '${command}'`)
    const quiet = (text: string) => text.replaceAll("'", '')
    const run = (args: string) => inside(quiet(`${LEASEHOLD} ${args}`))
    await one.edit('a.ts')
    expect(await run('reserve add b.ts')).toMatchObject({ code: 0 })
    expect(await holders(repo)).toEqual([`a.ts ${codex.id}`, `b.ts ${codex.id}`])
    expect(await one.edit('b.ts')).toMatchObject({ code: 0 })
    expect(await run('reserve check a.ts b.ts')).toMatchObject({ code: 0 })
    expect((await run('lock force-release x')).err).toContain(`not for ${codex.id} to do`)
    const forged = 'CODEX_SESSION_ID=x CODEX_THREAD_ID=x'
    await inside(quiet(`${forged} ${LEASEHOLD} reserve add src/c.ts`))
    expect((await holders(repo)).at(-1)).toBe(`src/c.ts ${codex.id}`)
    expect(await run('reserve release')).toMatchObject({ code: 0 })
    expect(await holders(repo)).toEqual([])
  })

  test('of several on one app-server, each by what its calls carry', async () => {
    const { repo, one } = await began(codex)
    const two = new Conversing(repo, one.process, codex, (text) => {
      return text.replaceAll('e0b0c4a7ba53', 'e0b0c4a7ba54')
    })
    await two.hook('SessionStart', 'session-start')
    await one.shell(RESERVE('a.ts'))
    await two.shell(RESERVE('b.ts'))
    await two.tool('reserve_paths', { paths: ['src/c.ts'] })
    const second = 'codex:c4a7ba54'
    const held = [`a.ts ${codex.id}`, `b.ts ${second}`, `src/c.ts ${second}`]
    expect(await holders(repo)).toEqual(held)
    expect(await two.edit('src/c.ts')).toMatchObject({ code: 0 })
    expect(await one.edit('src/c.ts')).toMatchObject({ code: 2 })
    // The end of one leaves the other what it has.
    await one.hook('SessionEnd', 'session-end')
    expect(await holders(repo)).toEqual(held.slice(1))
  })

  test('also where its hooks are not trusted, and so have not run', async () => {
    const repo = repository()
    const one = new Conversing(repo, new AgentProcess(repo.place, repo.repo), codex)
    await one.process.sh(RESERVE('a.ts'), '', one.from.shell)
    await one.process.sh(RESERVE('b.ts'), '', one.from.subagent_shell)
    const plant = { ...one.from.shell, LEASEHOLD_PLANT: 'R51' }
    await one.process.sh(`${TEST_LEASEHOLD} reserve add c.ts`, '', plant)
    expect(await holders(repo)).toEqual([
      `a.ts ${codex.id}`,
      `b.ts ${codex.id}/${codex.sub}`,
      expect.stringMatching(/^c\.ts cli:/),
    ])
  })
})

test('a client that runs inside another is nested under it, through every door', async () => {
  const { repo, one } = await began(CLIENTS[0])
  const outer = one.from.shell
  const inner = new Conversing(repo, new AgentProcess(repo.place, repo.repo, outer), codex)
  await inner.hook('SessionStart', 'session-start')
  await inner.edit('a.ts')
  await inner.shell(RESERVE('b.ts'))
  const own = `${CLIENTS[0].id}/codex-${codex.id.slice(6)}`
  expect(await holders(repo)).toEqual([`a.ts ${own}`, `b.ts ${own}`])
})

/** A program that an agent starts, and that is an agent itself: it runs the hook below itself. */
const INNER = (hook: string) => {
  const start = `spawnSync('sh', ['-c', '${hook}; exit'], { stdio: 'inherit' })`
  return `"${process.execPath}" -e "require('node:child_process').${start}"`
}

test('a run is one agent, and one that the run starts is nested under it', async () => {
  const repo = repository()
  const [claude] = CLIENTS
  const env = { LEASEHOLD_AGENT: 'claude:1.1', LEASEHOLD_RUN: '1.1' }
  const run = new Conversing(repo, new AgentProcess(repo.place, repo.repo, env), claude)
  await run.hook('SessionStart', 'session-start')
  await run.shell(RESERVE('a.ts'))
  await run.tool('reserve_paths', { paths: ['b.ts'] })
  for (const file of ['a.ts', 'b.ts']) expect(await run.edit(file)).toMatchObject({ code: 0 })
  expect(await holders(repo)).toEqual(['a.ts claude:1.1', 'b.ts claude:1.1'])
  const input = { ...run.from.hooks['PreToolUse_edit'], cwd: repo.repo, session_id: 'inner' }
  const file = { tool_input: { file_path: `${repo.repo}/src/c.ts` }, agent_id: undefined }
  const hook = `${LEASEHOLD} hook claude pre-tool-use`.replaceAll("'", '')
  const inner = await run.process.sh(INNER(hook), JSON.stringify({ ...input, ...file }))
  expect(inner).toMatchObject({ code: 0, out: '', err: '' })
  // It has ended, and what it had reserved with it.
  const { items } = await repo.place.ok(['agent', 'list'])
  const ids = items.map((agent: { id: string }) => agent.id)
  expect(ids).toContain('claude:1.1/claude-inner')
})
