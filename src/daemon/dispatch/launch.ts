import type { Task } from '../../core/schema/task.ts'
import { attempt } from '../../core/attempt.ts'
import { Refusal } from '../../core/refusal.ts'
import type { AgentConfig, Config } from '../config/config.ts'
import { PROMPT_FILE } from '../config/presets.ts'

/** How the command of a run is started. */
export interface Launch {
  argv: string[]
  cwd: string
  /** Its whole environment. */
  env: Record<string, string>
  /** What it reads on standard input, or null for none. */
  stdin: string | null
  /** Where the prompt has to be written before it starts, or null. */
  prompt_file: string | null
}

interface LaunchAsk {
  agent: AgentConfig
  cwd: string
  prompt: string
  /** Where the prompt would be written for an agent that reads it from a file. */
  prompt_path: string
  ours: NodeJS.ProcessEnv
  /** LEASEHOLD_TASK and the like; nothing else can set these. */
  leasehold: Record<string, string>
}

/** Linux takes up to 128 KiB for one argument, and other systems less for all of them. */
const ARGUMENT_BYTES_MAX = 100 * 1024

const PATH_DEFAULT = '/usr/bin:/bin'

/**
 * What any program needs to find its files, speak the right language and reach the network. Secrets
 * have no place here: an agent names those it needs.
 */
const ALLOWED = new Set([
  ...['PATH', 'HOME', 'USER', 'LOGNAME', 'SHELL', 'TMPDIR', 'TZ', 'TERM', 'LANG', 'LANGUAGE'],
  ...['SSL_CERT_FILE', 'SSL_CERT_DIR', 'NODE_EXTRA_CA_CERTS'],
  ...['HTTP_PROXY', 'HTTPS_PROXY', 'NO_PROXY', 'http_proxy', 'https_proxy', 'no_proxy'],
])

/**
 * Plans the start of an agent. The prompt is data: it becomes standard input, the content of a
 * file, or one argument behind `--`, and nothing else depends on it. Refuses, for an agent that
 * takes it as an argument, a prompt that cannot be one: `invalid` with NUL, `too_large` when long.
 */
export function planLaunch(ask: LaunchAsk): Launch {
  const { agent, cwd, prompt, prompt_path } = ask
  const plan = { argv: [...agent.command], cwd, env: environmentOf(ask) }
  switch (agent.prompt) {
    case 'stdin':
      return { ...plan, stdin: prompt, prompt_file: null }
    case 'file':
      return {
        ...plan,
        argv: withFile(plan.argv, prompt_path),
        stdin: null,
        prompt_file: prompt_path,
      }
    case 'argument':
      checkArgument(prompt)
      return { ...plan, argv: [...plan.argv, '--', prompt], stdin: null, prompt_file: null }
  }
}

function withFile(command: string[], path: string): string[] {
  if (!command.some((each) => each.includes(PROMPT_FILE))) return [...command, '--', path]
  return command.map((each) => each.replaceAll(PROMPT_FILE, () => path))
}

function checkArgument(prompt: string): void {
  const next = 'Give this agent "prompt": "stdin" (or "file") in config.json.'
  if (prompt.includes('\0')) {
    throw new Refusal('invalid', 'A prompt with a NUL character cannot be an argument', { next })
  }
  const bytes = Buffer.byteLength(prompt)
  if (bytes <= ARGUMENT_BYTES_MAX) return
  throw new Refusal(
    'too_large',
    `The prompt has ${bytes} bytes; as an argument it may have ${ARGUMENT_BYTES_MAX}`,
    { next, details: { bytes, bytes_max: ARGUMENT_BYTES_MAX } },
  )
}

/** What any command of ours gets of our own environment. */
export function allowedOf(ours: NodeJS.ProcessEnv): Record<string, string> {
  const env: Record<string, string> = { PATH: PATH_DEFAULT }
  for (const [name, value] of Object.entries(ours)) {
    if (value && (ALLOWED.has(name) || name.startsWith('LC_'))) env[name] = value
  }
  return env
}

function environmentOf({ agent, ours, leasehold }: LaunchAsk): Record<string, string> {
  const env = allowedOf(ours)
  for (const [name, said] of Object.entries(agent.env)) {
    const value = said === true ? ours[name] : said
    if (value !== undefined && !name.startsWith('LEASEHOLD_')) env[name] = value
  }
  return { ...env, PATH: env['PATH'] || PATH_DEFAULT, ...leasehold }
}

/**
 * What is left of an agent's environment without anything that opens the store at `url`: of the
 * store an agent gets a door and a token, whatever its configuration passes on. `password` is the
 * one that the driver would take where the address has none.
 */
export function withoutStore(
  env: Record<string, string>,
  url: string | undefined,
  password = '',
): Record<string, string> {
  if (url === undefined) return env
  const { password: written } = new URL(url)
  const secrets = new Set([password, written, decoded(written)].filter((each) => each !== ''))
  const opens = (value: string) =>
    secrets.has(value) || value.includes(url) || (written !== '' && value.includes(`:${written}@`))
  return Object.fromEntries(Object.entries(env).filter(([, value]) => !opens(value)))
}

const decoded = (text: string) => attempt(() => decodeURIComponent(text), text)

/** There is one dispatcher per host: the lock that makes it the only one is also its name. */
export const dispatcherOn = (host: string) => `leasehold:dispatcher:${host}`

/** The agent that a task asks for, or that of its project. */
export function agentNameFor(config: Config, task: Task): string {
  return task.queue?.agent_command ?? config.projects[task.project ?? '']?.agent ?? 'agent'
}

/** The project and agent of a task; refuses an agent that the configuration does not allow it. */
export function planOf(config: Config, task: Task): { cwd: string; agent: AgentConfig } {
  const project = config.projects[task.project ?? '']
  const name = agentNameFor(config, task)
  const agent = config.agents[name]
  if (project && agent && project.agents.includes(name)) return { cwd: project.path, agent }
  const allowed = project?.agents.join(', ') ?? 'none'
  throw new Refusal('forbidden', `project ${task.project} has no agent ${name} (it has ${allowed})`)
}
