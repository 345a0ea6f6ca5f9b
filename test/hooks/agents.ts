import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { BIN, type Running, type Sandbox, sandbox, TEST_CLI, until } from '../support/processes.ts'

/** Runs each line's command in a shell, as agents run their hooks, and says what came of it. */
const PROGRAM = `
const { spawn } = require('node:child_process')
require('node:readline').createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, command, input, env, cwd } = JSON.parse(line)
  const child = spawn('sh', ['-c', command + '; exit $?'], { cwd, env: { ...process.env, ...env } })
  const said = { out: '', err: '' }
  child.stdout.on('data', (text) => (said.out += text))
  child.stderr.on('data', (text) => (said.err += text))
  child.stdin.on('error', () => {})
  child.stdin.end(input)
  child.on('close', (code) => process.stdout.write(JSON.stringify({ id, code, ...said }) + '\\n'))
})`

export interface Said {
  code: number
  out: string
  err: string
}

const quoted = (text: string) => `'${text.replaceAll("'", String.raw`'\''`)}'`
export const LEASEHOLD = `${quoted(process.execPath)} ${quoted(BIN)}`
/** The same with bugs to switch on. */
export const TEST_LEASEHOLD = `${quoted(process.execPath)} ${quoted(TEST_CLI)}`

type Fields = Record<string, unknown>
type Env = Record<string, string>

/** A process that acts like an agent's: it runs commands, and one day it dies. */
export class AgentProcess {
  readonly running: Running
  private asked = 0

  constructor(
    place: Sandbox,
    private readonly cwd: string,
    env: Env = {},
  ) {
    this.running = place.start(['-e', PROGRAM], { program: [process.execPath], env, cwd })
    onTestFinished(() => this.die())
  }

  async sh(command: string, input = '', env: Env = {}): Promise<Said> {
    const id = `<${(this.asked += 1)}>`
    const ask = JSON.stringify({ id, command, input, env, cwd: this.cwd })
    this.running.child.stdin!.write(`${ask}\n`)
    return until(`${command} is done`, () => {
      const line = this.running.out.split('\n').find((each) => each.includes(`"id":"${id}"`))
      return line === undefined ? undefined : (JSON.parse(line) as Said)
    })
  }

  leasehold(args: string, env: Env = {}): Promise<Said> {
    return this.sh(`${LEASEHOLD} ${args}`, '', env)
  }

  hook(agent: string, event: string, input: object | string, env: Env = {}): Promise<Said> {
    const text = typeof input === 'string' ? input : JSON.stringify(input)
    return this.sh(`${LEASEHOLD} hook ${agent} ${event}`, text, env)
  }

  async die(): Promise<void> {
    this.running.kill('SIGKILL')
    await this.running.ended
  }
}

/** Claude Code as its documentation has it, field by field: a scripted one in a real process. */
export class Claude extends AgentProcess {
  readonly id: string
  env: Env = {}

  constructor(
    place: Sandbox,
    private readonly repo: string,
    readonly session: string,
    startedWith: Env = {},
  ) {
    super(place, repo, startedWith)
    this.id = `claude:${session.slice(0, 8)}`
  }

  fire(event: string, more: Fields = {}): Promise<Said> {
    const kebab = event.replaceAll(/(?<!^)([A-Z])/g, '-$1').toLowerCase()
    const input = {
      session_id: this.session,
      prompt_id: '550e8400-e29b-41d4-a716-446655440000',
      transcript_path: `/home/ada/.claude/projects/x/${this.session}.jsonl`,
      cwd: this.repo,
      permission_mode: 'default',
      hook_event_name: event,
      ...more,
    }
    return this.hook('claude', kebab, input, this.env)
  }

  before(tool_name: string, tool_input: Fields, more: Fields = {}): Promise<Said> {
    return this.fire('PreToolUse', { tool_name, tool_input, tool_use_id: 'toolu_01ABC', ...more })
  }

  edit(file: string, more: Fields = {}): Promise<Said> {
    const edit = { old_string: 'a', new_string: 'b', replace_all: false }
    return this.before('Edit', { file_path: join(this.repo, file), ...edit }, more)
  }

  bash(command: string, more: Fields = {}): Promise<Said> {
    const call = { command, description: 'Do it', timeout: 120_000, run_in_background: false }
    return this.before('Bash', call, more)
  }

  /** A tool call is over: what the model hears. */
  async after(tool_name = 'Bash', tool_use_id = 'toolu_01ABC'): Promise<string> {
    const done = { tool_name, tool_input: {}, tool_response: {}, tool_use_id }
    return heard(await this.fire('PostToolUse', done))
  }

  stop(more: Fields = {}): Promise<Said> {
    const rest = { stop_hook_active: false, last_assistant_message: 'Done.', session_crons: [] }
    return this.fire('Stop', { ...rest, background_tasks: [], ...more })
  }

  end(reason = 'other'): Promise<Said> {
    return this.fire('SessionEnd', { reason })
  }

  /** A subagent is the same process, and says who it is in two more fields. */
  static sub(agent_id: string): Fields {
    return { agent_id, agent_type: 'general-purpose' }
  }
}

/** What a hook says to the model. */
export function heard({ out }: Said): string {
  if (out === '') return ''
  const { hookSpecificOutput: said } = JSON.parse(out) as {
    hookSpecificOutput?: { additionalContext?: string }
  }
  return said?.additionalContext ?? ''
}

export function expectSilent(said: Said): void {
  expect(said).toMatchObject({ code: 0, out: '', err: '' })
}

/** Both ways to say no, with the same words; returns them. */
export function expectDenied(said: Said): string {
  expect(said, said.err).toMatchObject({ code: 2 })
  const { hookSpecificOutput } = JSON.parse(said.out) as { hookSpecificOutput: Fields }
  expect(hookSpecificOutput).toEqual({
    hookEventName: 'PreToolUse',
    permissionDecision: 'deny',
    permissionDecisionReason: said.err.trimEnd(),
  })
  return said.err
}

export const SESSIONS = {
  a: 'aaaaaaaa-1111-4222-8333-444444444444',
  b: 'bbbbbbbb-1111-4222-8333-444444444444',
}

export interface Repo {
  place: Sandbox
  repo: string
  git: (...args: string[]) => string
  /** Two agents at work in it. */
  a: Claude
  b: Claude
}

/** A repository with a commit, a state folder, and two agents. */
export function repository(config?: object): Repo {
  const place = sandbox()
  const repo = place.path('repo')
  mkdirSync(join(repo, 'src'), { recursive: true })
  mkdirSync(place.state, { mode: 0o700 })
  if (config) writeFileSync(join(place.state, 'config.json'), JSON.stringify(config))
  const who = ['-c', 'user.name=Ada', '-c', 'user.email=ada@example.com', '-c', 'commit.gpgsign=no']
  const env = { PATH: process.env['PATH'], HOME: place.home, ...place.env }
  const git = (...args: string[]) =>
    execFileSync('git', [...who, ...args], { cwd: repo, env, encoding: 'utf8', stdio: 'pipe' })
  git('init', '-q', '-b', 'main')
  for (const name of ['a.ts', 'b.ts', 'src/c.ts']) writeFileSync(join(repo, name), `${name}\n`)
  git('add', '.')
  git('commit', '-q', '-m', 'Begin')
  const agent = (session: string) => new Claude(place, repo, session)
  return { place, repo, git, a: agent(SESSIONS.a), b: agent(SESSIONS.b) }
}

/** The events of a type that the store of a sandbox has. */
export async function recorded({ state }: Sandbox, wanted: string) {
  const store = openStore(placeOf({ LEASEHOLD_DIR: state }, '/'))
  const events = await store.events(0, 1000)
  await store.close()
  return events.filter(({ type }) => type === wanted)
}

/** How an MCP client of 2025 begins. */
export const MCP_HELLO = [
  {
    id: 1,
    method: 'initialize',
    params: {
      protocolVersion: '2025-06-18',
      capabilities: {},
      clientInfo: { name: 'test', version: '1' },
    },
  },
  { method: 'notifications/initialized' },
]
