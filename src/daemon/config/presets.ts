import { hintOf } from '../../core/hint.ts'
import { COMMANDS, GEMINI_TOOLS, GIT, OWN_TOOLS } from '../../agents/own_tools.ts'
import { placeOf } from './schema.ts'

/** How an agent is started for a run, and how long it may take. */
export interface AgentConfig {
  /** The program and its arguments, as they are: no shell ever reads them. */
  command: string[]
  /** Which way the prompt reaches it. */
  prompt: 'stdin' | 'file' | 'argument'
  /** Variables it gets besides the allow-list: a value, or true to pass ours through. */
  env: Record<string, string | true>
  /** Whether it reads behind the prompt which task it has, where it works and what is landed. */
  brief: boolean
  /** Whether what it leaves uncommitted in its worktree is committed for it. */
  commit: boolean
  time_limit_seconds: number | null
  silence_seconds: number | null
}

/** Stands for the path of the prompt's file inside a command. */
export const PROMPT_FILE = '{prompt_file}'

/** What an agent is unless it says otherwise. */
const DEFAULTS = {
  prompt: 'stdin',
  env: {},
  brief: false,
  commit: false,
  time_limit_seconds: null,
  silence_seconds: null,
} as const satisfies Omit<AgentConfig, 'command'>

/** Programs with a model in them: they read what we tell them, and may forget to commit. */
const CODING = { ...DEFAULTS, brief: true, commit: true }

const passing = (names: string): Record<string, true> =>
  Object.fromEntries(names.split(/\s+/).map((name) => [name, true]))

/**
 * Agents that need no entry in the file. Nobody is there to answer them, so they may edit files of
 * their project without asking; more is for their own settings, or for the command in the file.
 */
const KNOWN: Record<string, AgentConfig> = {
  claude: {
    ...CODING,
    command: [
      ...['claude', '-p', '--output-format', 'text', '--permission-mode', 'acceptEdits'],
      ...['--allowedTools', [...OWN_TOOLS, ...GIT.map((each) => `Bash(${each}:*)`)].join(',')],
    ],
    env: passing(`ANTHROPIC_API_KEY ANTHROPIC_AUTH_TOKEN ANTHROPIC_BASE_URL ANTHROPIC_MODEL
      CLAUDE_CODE_OAUTH_TOKEN CLAUDE_CONFIG_DIR`),
  },
  codex: {
    ...CODING,
    // reason: the name of Codex's sandbox
    command: ['codex', 'exec', '--sandbox', 'workspace-write', '-'],
    env: passing('CODEX_ACCESS_TOKEN CODEX_API_KEY CODEX_HOME OPENAI_API_KEY OPENAI_BASE_URL'),
  },
  gemini: {
    ...CODING,
    command: [
      ...['gemini', '--approval-mode', 'auto_edit', '--allowed-tools'],
      [...GEMINI_TOOLS, ...GIT.map((each) => `run_shell_command(${each})`)].join(','),
    ],
    env: {
      ...passing(`GEMINI_API_KEY GEMINI_MODEL GOOGLE_API_KEY GOOGLE_GEMINI_BASE_URL
        GOOGLE_GENAI_USE_VERTEXAI GOOGLE_CLOUD_PROJECT GOOGLE_CLOUD_LOCATION
        GOOGLE_APPLICATION_CREDENTIALS`),
      // reason: the name of Gemini's variable
      GEMINI_CLI_TRUST_WORKSPACE: true,
    },
  },
  // It permits edits and commands unless its own settings say otherwise.
  opencode: {
    ...CODING,
    command: ['opencode', 'run'],
    env: passing(`ANTHROPIC_API_KEY OPENAI_API_KEY GEMINI_API_KEY OPENCODE_API_KEY
      OPENCODE_CONFIG OPENCODE_CONFIG_DIR OPENROUTER_API_KEY`),
  },
  copilot: {
    ...CODING,
    command: [
      ...['copilot', '--no-auto-update', '--allow-tool', 'write', '--allow-tool', 'leasehold'],
      ...[...COMMANDS, ...GIT].flatMap((each) => ['--allow-tool', `shell(${each}:*)`]),
    ],
    env: passing(`COPILOT_GITHUB_TOKEN GH_TOKEN GITHUB_TOKEN COPILOT_MODEL COPILOT_HOME
      COPILOT_PROVIDER_BASE_URL COPILOT_PROVIDER_API_KEY COPILOT_PROVIDER_TYPE COPILOT_OFFLINE`),
  },
  // The prompt is the script: for trials, and only where the file names it.
  shell: { ...DEFAULTS, command: ['/bin/sh', '-s'] },
}
export const PRESETS: ReadonlyMap<string, AgentConfig> = new Map(Object.entries(KNOWN))

/** The agent that an entry of the file makes; one with a preset's name changes that. */
export function agentOf(name: string, entry: object): AgentConfig {
  return { ...DEFAULTS, command: [], ...PRESETS.get(name), ...entry }
}

const entriesOf = (value: unknown): [string, unknown][] =>
  typeof value === 'object' && value !== null ? Object.entries(value) : []

/** What one part of the file says of another: looked up in the raw file, as others may be wrong. */
export function agentProblems(raw: unknown): string[] {
  const top = new Map(entriesOf(raw))
  const agents = entriesOf(top.get('agents')).filter(([, entry]) => entry instanceof Object)
  const known = [...new Set([...PRESETS.keys(), ...agents.map(([name]) => name)])]
  const wrong = agents.flatMap(([name, entry]) => {
    const { command, prompt } = agentOf(name, entry as object)
    const place = placeOf(['agents', name, 'command'])
    if (!PRESETS.has(name) && !Object.hasOwn(entry as object, 'command')) {
      return [`${place} is missing`]
    }
    const placed = entriesOf(command).some(([, each]) => String(each).includes(PROMPT_FILE))
    return placed && prompt !== 'file' ? [`${place}: ${PROMPT_FILE} needs "prompt": "file"`] : []
  })
  for (const [name, project] of entriesOf(top.get('projects'))) {
    const agent = new Map(entriesOf(project)).get('agent')
    if (typeof agent !== 'string' || known.includes(agent)) continue
    const place = placeOf(['projects', name, 'agent'])
    wrong.push(`${place}: no agent ${JSON.stringify(agent)}; ${hintOf(agent, known)}`)
  }
  return wrong
}
