import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { attempt } from '../../../core/attempt.ts'
import { Refusal } from '../../../core/refusal.ts'
import { GEMINI_TOOLS, OWN_TOOLS } from '../../../daemon/config/own_tools.ts'
import { type AgentKind, KINDS as AGENTS } from '../../../machine/conversation.ts'
import type { AllowedTools, HookEntry, HookShape } from './hook_settings.ts'
import type { ServerShape } from './servers.ts'

export { type AgentKind, KINDS as AGENTS } from '../../../machine/conversation.ts'

interface AgentFacts {
  name: string
  /** What in a checkout says that somebody uses this agent here. */
  traces: string[]
  programs: string[]
  /** Where its hooks are kept, and in which shape. */
  settings: string
  /** A plugin is a program of ours that asks, where an agent has no hooks. */
  shape: HookShape | 'plugin'
  /** Where its MCP servers are named. */
  servers: { path: string; shape: ServerShape }[]
  root: Record<string, unknown>
  /** The agent's events, each with ours, and which tools it is about. */
  events: { event: string; ours: string; matcher?: string; timeout?: number }[]
  /** What it may use without asking a person, and where its settings say so. */
  allow?: AllowedTools
}

/** A hook that takes longer than this is in nobody's interest; the agents' own limit is minutes. */
const TIMEOUT_SECONDS = 10
/** Codex gives the hooks of an end no more. */
const CODEX_END_SECONDS = 3

/** The events of Claude Code, which Codex took over. */
const eventsOf = (
  matcher: string | undefined,
  timeout: number,
  ...more: string[]
): AgentFacts['events'] => [
  { event: 'SessionStart', ours: 'session-start' },
  { event: 'PreToolUse', ours: 'pre-tool-use', ...(matcher !== undefined && { matcher }) },
  { event: 'PostToolUse', ours: 'post-tool-use' },
  { event: 'SubagentStart', ours: 'subagent-start' },
  { event: 'SubagentStop', ours: 'subagent-stop' },
  { event: 'Stop', ours: 'stop' },
  ...more.map((event) => ({ event, ours: kebab(event), timeout })),
  { event: 'SessionEnd', ours: 'session-end', timeout },
]

/** Gemini CLI counts in milliseconds. */
const GEMINI_MS = TIMEOUT_SECONDS * 1000
/** Tools of other servers may write; ours need no guard. */
const GEMINI_WRITES = 'write_file|replace|edit|run_shell_command|^mcp_(?!leasehold_)'
const kebab = (event: string) => event.replaceAll(/(?<!^)([A-Z])/g, '-$1').toLowerCase()

/**
 * All tools but those that are known to write no file, which would pay for a hook at every call: a
 * tool that came with the last release may write. Which subagent calls a tool of ours, only the
 * hook is told.
 */
const CLAUDE_READS =
  'Read|NotebookRead|Glob|Grep|LS|LSP|WebFetch|WebSearch|TodoWrite|Task|Agent|Skill|ToolSearch|' +
  'Task[A-Z][a-z]+|BashOutput|KillShell|AskUserQuestion|EnterPlanMode|ExitPlanMode|SendMessage'
const CLAUDE_TOOLS = `^(?!(?:${CLAUDE_READS})$).+$`

const CURSOR_WRITES = 'Write|Edit|MultiEdit|StrReplace|Delete|EditNotebook|ApplyPatch|TabWrite'

export const FACTS: Record<AgentKind, AgentFacts> = {
  claude: {
    name: 'Claude Code',
    traces: ['.claude', 'CLAUDE.md', 'CLAUDE.local.md'],
    programs: ['claude'],
    settings: '.claude/settings.json',
    shape: 'groups',
    servers: [{ path: '.mcp.json', shape: 'mcpServers' }],
    root: {},
    events: eventsOf(CLAUDE_TOOLS, TIMEOUT_SECONDS, 'PostToolUseFailure', 'StopFailure'),
    allow: { at: ['permissions', 'allow'], rules: OWN_TOOLS },
  },
  codex: {
    name: 'Codex',
    traces: ['.codex'],
    programs: ['codex'],
    settings: '.codex/hooks.json',
    shape: 'groups',
    servers: [{ path: '.codex/config.toml', shape: 'toml' }],
    root: {},
    events: eventsOf(
      'Bash|apply_patch|Edit|Write|write_stdin|mcp__.*',
      CODEX_END_SECONDS,
      'Interrupt',
    ),
  },
  cursor: {
    name: 'Cursor',
    traces: ['.cursor', '.cursorrules'],
    programs: ['cursor', 'cursor-agent'],
    settings: '.cursor/hooks.json',
    shape: 'plain',
    servers: [{ path: '.cursor/mcp.json', shape: 'mcpServers' }],
    root: { version: 1 },
    events: [
      { event: 'sessionStart', ours: 'session-start' },
      { event: 'preToolUse', ours: 'pre-tool-use', matcher: CURSOR_WRITES },
      // Older versions have no preToolUse: there the shell is guarded, and edits are at least seen.
      // reason: Cursor's own name for it.
      { event: 'beforeShellExecution', ours: 'before-shell-execution' },
      { event: 'afterFileEdit', ours: 'after-file-edit' },
      { event: 'postToolUse', ours: 'post-tool-use' },
      { event: 'subagentStop', ours: 'subagent-stop' },
      { event: 'stop', ours: 'stop' },
      { event: 'sessionEnd', ours: 'session-end' },
    ],
  },
  gemini: {
    name: 'Gemini CLI',
    traces: ['.gemini', 'GEMINI.md'],
    programs: ['gemini'],
    settings: '.gemini/settings.json',
    shape: 'groups',
    // Trusted, or every tool of ours waits for a person.
    servers: [{ path: '.gemini/settings.json', shape: 'trusted' }],
    root: {},
    events: [
      { event: 'SessionStart', ours: 'session-start', timeout: GEMINI_MS },
      { event: 'BeforeTool', ours: 'before-tool', matcher: GEMINI_WRITES, timeout: GEMINI_MS },
      { event: 'AfterTool', ours: 'after-tool', timeout: GEMINI_MS },
      { event: 'AfterAgent', ours: 'after-agent', timeout: GEMINI_MS },
      { event: 'SessionEnd', ours: 'session-end', timeout: GEMINI_MS },
    ],
    allow: { at: ['tools', 'allowed'], rules: GEMINI_TOOLS },
  },
  opencode: {
    name: 'opencode',
    traces: ['.opencode', 'opencode.json', 'opencode.jsonc'],
    programs: ['opencode'],
    settings: '.opencode/plugin/leasehold.js',
    shape: 'plugin',
    servers: [{ path: 'opencode.json', shape: 'mcp' }],
    root: {},
    events: [],
  },
  copilot: {
    name: 'GitHub Copilot',
    traces: ['.github/hooks', '.github/copilot-instructions.md'],
    programs: ['copilot'],
    settings: '.github/hooks/leasehold.json',
    shape: 'typed',
    servers: [
      { path: '.mcp.json', shape: 'mcpServers' },
      { path: '.vscode/mcp.json', shape: 'servers' },
    ],
    root: { version: 1 },
    events: [
      ...eventsOf(undefined, TIMEOUT_SECONDS),
      { event: 'errorOccurred', ours: 'error-occurred' },
    ],
  },
}

/**
 * The hook as a line of shell. It passes where leasehold is not installed, so that people who clone
 * the repository can work without it.
 */
function hookCommand(agent: string, event: string, bin: string | undefined): string {
  const path = bin === undefined ? '' : `PATH="$PATH:${bin}"; `
  // Codex wants JSON when something stops, also from a hook that has nothing to say.
  const isEnd = /stop$|^interrupt$/.test(event)
  const pass = agent === 'codex' && isEnd ? '{ echo {}; exit 0; }' : 'exit 0'
  const look = `command -v leasehold >/dev/null 2>&1 || ${pass}`
  return `${path}${look}; exec leasehold hook ${agent} ${event}`
}

export function hookEvents(agent: AgentKind, bin: string | undefined): HookEntry[] {
  return FACTS[agent].events.map(({ event, ours, matcher, timeout = TIMEOUT_SECONDS }) => ({
    event,
    command: hookCommand(agent, ours, bin),
    timeout,
    ...(matcher !== undefined && { matcher }),
  }))
}

/** Refuses (`invalid`) a name that is no agent's. */
export function agentsNamed(said: string): AgentKind[] {
  const names = said.split(',').map((name) => name.trim().toLowerCase())
  const unknown = names.find((name) => !AGENTS.some((each) => each === name))
  if (unknown !== undefined) {
    throw new Refusal('invalid', `--agent does not know ${JSON.stringify(unknown)}`, {
      next: `For init it names programs: ${AGENTS.join(', ')}, with commas between them.`,
    })
  }
  return AGENTS.filter((each) => names.includes(each))
}

/** Those whose settings here already ask for our hooks. */
export function agentsSetUp(root: string): AgentKind[] {
  return AGENTS.filter((agent) => {
    const path = join(root, FACTS[agent].settings)
    return existsSync(path) && readFileSync(path, 'utf8').includes(`leasehold hook ${agent} `)
  })
}

interface Found {
  agent: AgentKind
  /** What told us. */
  by: string
}

/** Who is used here: by what lies in the checkout, else by what this machine can start. */
export function findAgents(root: string, env: NodeJS.ProcessEnv): Found[] {
  return AGENTS.flatMap((agent) => {
    const by = signOf(FACTS[agent], root, env)
    return by === undefined ? [] : [{ agent, by }]
  })
}

function signOf(
  { traces, programs }: Pick<AgentFacts, 'traces' | 'programs'>,
  root: string,
  env: NodeJS.ProcessEnv,
): string | undefined {
  const trace = traces.find((name) => existsSync(join(root, name)))
  const program = programs.find((name) => isOnPath(name, env))
  return trace ?? (program && `${program} on the PATH`)
}

/** Those whose hooks follow their documentation: `npm run clients` has not seen the program. */
export const UNSEEN = new Set<AgentKind>(['cursor'])

/** Agents that have no hooks, or none that we know: their traces, and their programs. */
const UNGUARDED: Record<string, Pick<AgentFacts, 'traces' | 'programs'>> = {
  Aider: { traces: ['.aider.conf.yml'], programs: ['aider'] },
  Amp: { traces: ['.amp'], programs: ['amp'] },
  Cline: { traces: ['.clinerules'], programs: ['cline'] },
  Goose: { traces: ['.goosehints'], programs: ['goose'] },
  Kiro: { traces: ['.kiro'], programs: ['kiro-cli'] },
  'Qwen Code': { traces: ['.qwen'], programs: ['qwen'] },
  'Roo Code': { traces: ['.roo', '.roorules'], programs: [] },
  Windsurf: { traces: ['.windsurf', '.windsurfrules'], programs: ['windsurf'] },
}

/** Who is used here and asks nobody before an edit: a person should know. */
export function findUnguarded(root: string, env: NodeJS.ProcessEnv): string[] {
  return Object.entries(UNGUARDED).flatMap(([name, facts]) => {
    const by = signOf(facts, root, env)
    return by === undefined ? [] : [`${name} (${by})`]
  })
}

export function isOnPath(program: string, env: NodeJS.ProcessEnv): boolean {
  return (env['PATH'] ?? '').split(delimiter).some((folder) => {
    if (folder === '') return false
    const path = join(folder, program)
    return attempt(() => {
      accessSync(path, constants.X_OK)
      return statSync(path).isFile()
    }, false)
  })
}
