import { accessSync, constants, existsSync, readFileSync, statSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { AGENTS } from '../../../agents/all.ts'
import { type AgentKind, KINDS } from '../../../agents/kinds.ts'
import type { SetUp } from '../../../agents/record.ts'
import { attempt } from '../../../core/attempt.ts'
import { Refusal } from '../../../core/refusal.ts'
import type { HookEntry } from './hook_settings.ts'

/** A hook that takes longer than this is in nobody's interest; the agents' own limit is minutes. */
const TIMEOUT_SECONDS = 10
const kebab = (event: string) => event.replaceAll(/(?<!^)([A-Z])/g, '-$1').toLowerCase()

/**
 * The hook as a line of shell. It passes where leasehold is not installed, so that people who clone
 * the repository can work without it.
 */
function hookCommand(agent: AgentKind, event: string, bin: string | undefined): string {
  const path = bin === undefined ? '' : `PATH="$PATH:${bin}"; `
  const isEnd = /stop$|^interrupt$/.test(event)
  const pass = AGENTS[agent].jsonAtEnd && isEnd ? '{ echo {}; exit 0; }' : 'exit 0'
  const look = `command -v leasehold >/dev/null 2>&1 || ${pass}`
  return `${path}${look}; exec leasehold hook ${agent} ${event}`
}

export function hookEvents(agent: AgentKind, bin: string | undefined): HookEntry[] {
  const asks = Object.entries(AGENTS[agent].setUp.asks)
  return asks.map(([event, ask]) => {
    const command = hookCommand(agent, kebab(event), bin)
    return Object.assign({ event, command, timeout: TIMEOUT_SECONDS }, ask)
  })
}

/** What a person has to say once for these, as sentences. */
export const onceFor = (agents: AgentKind[]): string[] =>
  agents.flatMap((agent) => {
    const { name, setUp } = AGENTS[agent]
    const { once } = setUp
    return once === undefined ? [] : [`${name}, once in each checkout: ${once}.`]
  })

/** Refuses (`invalid`) a name that is no agent's. */
export function agentsNamed(said: string): AgentKind[] {
  const names = said.split(',').map((name) => name.trim().toLowerCase())
  const unknown = names.find((name) => !KINDS.some((each) => each === name))
  if (unknown !== undefined) {
    throw new Refusal('invalid', `--client does not know ${JSON.stringify(unknown)}`, {
      next: `It names programs: ${KINDS.join(', ')}, with commas between them.`,
    })
  }
  return KINDS.filter((each) => names.includes(each))
}

/** Those whose settings here already ask for our hooks. */
export function agentsSetUp(root: string): AgentKind[] {
  return KINDS.filter((agent) => {
    const path = join(root, AGENTS[agent].setUp.settings.path)
    return existsSync(path) && readFileSync(path, 'utf8').includes(`leasehold hook ${agent} `)
  })
}

type Traces = Pick<SetUp, 'traces' | 'programs'>

interface Found {
  agent: AgentKind
  /** What told us. */
  by: string
}

/** Who is used here: by what lies in the checkout, else by what this machine can start. */
export function findAgents(root: string, env: NodeJS.ProcessEnv): Found[] {
  return KINDS.flatMap((agent) => {
    const by = signOf(AGENTS[agent].setUp, root, env)
    return by === undefined ? [] : [{ agent, by }]
  })
}

function signOf(
  { traces, programs }: Traces,
  root: string,
  env: NodeJS.ProcessEnv,
): string | undefined {
  const trace = traces.find((name) => existsSync(join(root, name)))
  const program = programs.find((name) => isOnPath(name, env))
  return trace ?? (program && `${program} on the PATH`)
}

/** Agents that have no hooks, or none that we know: their traces, and their programs. */
const UNGUARDED: Record<string, Traces> = {
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
