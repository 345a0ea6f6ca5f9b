import { readFileSync } from 'node:fs'
import { dirname, join, resolve } from 'node:path'
import { projectFolder } from '../../machine/place.ts'
import { Refusal } from '../../core/refusal.ts'
import { type Retention, retentionOf } from '../../core/retention.ts'
import { textFault } from '../../core/text.ts'
import { homeFolder } from '../../machine/login.ts'
import { CONFIG_FILE } from '../../stores/open.ts'
import { approvedFor, isTrusted, withApproved } from './approval.ts'
import type { WorktreeRules } from '../worktrees/tree.ts'
import { checkFile, type FileConfig, type LandConfig, SLOTS_MAX } from './schema.ts'
import { type AgentConfig, agentOf, agentProblems, PRESETS } from './presets.ts'

export type { AgentConfig } from './presets.ts'

/** All settings, with every default filled in. Its tables inherit nothing: any name is safe. */
export interface Config extends Omit<FileConfig, 'projects' | 'agents' | 'retention'> {
  /** `path` is absolute. `agents` are those that a task of the project may ask for by name. */
  projects: Record<
    string,
    {
      path: string
      limit?: number | null | undefined
      agent: string
      agents: string[]
      land?: LandConfig | undefined
      worktrees: WorktreeRules | null
      /** Those of `resources` that each of its runs is lent a value of. */
      resources: string[]
    }
  >
  retention: Retention
  /** Presets included. */
  agents: Record<string, AgentConfig>
  /**
   * How projects land, by name. What a person approved stays in force until the next approval:
   * else an edit of the file would be enough to have work counted as done unproved.
   */
  landing: Record<string, LandConfig>
  /** What has no effect, because nobody approved it. */
  waiting: string[]
}

/**
 * The settings of the state folder `folder`: what `config.json` there says, and `env` above it. A
 * missing file says nothing. Refuses with `invalid`, naming all that is wrong.
 */
export function readConfig(folder: string, env: NodeJS.ProcessEnv): Config {
  const all = readSaid(folder, env)
  const approved = isTrusted(env) ? undefined : approvedFor(folder, env)
  const { said, waiting } = approved ? withApproved(all, approved) : { said: all, waiting: [] }
  const landing = landingOf({ ...approved?.projects, ...said.projects })
  const config = { ...configOf(said, resolve(folder), () => homeFolder(env)), landing, waiting }
  if (env['LEASEHOLD_EMBEDDINGS'] === 'off') config.memory.embeddings.provider = 'off'
  return config
}

/**
 * What the file says, approved or not, checked; and how many slots the environment says, which is
 * above it. Refuses as `readConfig` does.
 */
export function readSaid(folder: string, env: NodeJS.ProcessEnv): FileConfig {
  const file = join(resolve(folder), CONFIG_FILE)
  const raw = readJson(file)
  const { said, problems } = checkFile(raw)
  const slots = env['LEASEHOLD_SLOTS_MAX'] || undefined
  if (slots !== undefined && !(/^\d{1,9}$/.test(slots) && Number(slots) <= SLOTS_MAX)) {
    problems.push(
      `the environment variable LEASEHOLD_SLOTS_MAX must be a whole number from 0 to ${SLOTS_MAX}`,
    )
  }
  problems.push(...agentProblems(raw), ...memoryProblems(said, env), ...lentProblems(said))
  if (!said || problems.length > 0) throw broken(file, problems)
  if (slots !== undefined) said.slots.max = Number(slots)
  return said
}

/** Names of projects become folders, and what is lent has to be there. */
function lentProblems(said: FileConfig | undefined): string[] {
  const problems: string[] = []
  for (const [name, { resources, worktrees }] of Object.entries(said?.projects ?? {})) {
    for (const each of resources) {
      if (said?.resources[each] !== undefined) continue
      problems.push(`projects.${name}.resources: there is no resource ${each}`)
    }
    if (worktrees && worktrees.folder === undefined && /^\.|\//.test(name)) {
      problems.push(`projects.${name}.worktrees.folder is missing: its name cannot be a folder`)
    }
  }
  return problems
}

function memoryProblems(said: FileConfig | undefined, env: NodeJS.ProcessEnv): string[] {
  const problems: string[] = []
  const { provider, url, model } = said?.memory.embeddings ?? {}
  if (provider === 'openai' && (url === undefined || model === undefined)) {
    problems.push('memory.embeddings needs url and model for the provider "openai"')
  }
  if (!['off', '', undefined].includes(env['LEASEHOLD_EMBEDDINGS'])) {
    problems.push('the environment variable LEASEHOLD_EMBEDDINGS can only say off')
  }
  return problems
}

/** Names of projects and users come from callers: one like `constructor` must find nothing. */
function table<T>(entries: [string, T][]): Record<string, T> {
  return Object.assign(Object.create(null) as object, Object.fromEntries(entries))
}

const landingOf = (projects: Record<string, { land?: LandConfig | undefined }>) =>
  table(Object.entries(projects).flatMap(([name, { land }]) => (land ? [[name, land]] : [])))

type Filled = Omit<Config, 'waiting' | 'landing'>

function configOf(said: FileConfig, state: string, home: () => string): Filled {
  const base = dirname(state)
  const inFile = Object.keys(said.agents)
  const names = [...new Set([...PRESETS.keys(), ...inFile])]
  const projects = Object.entries(said.projects).map(
    ([name, project]): [string, Config['projects'][string]] => {
      const path = projectFolder(base, project.path, home)
      const worktrees = project.worktrees && {
        ...project.worktrees,
        folder: projectFolder(
          base,
          project.worktrees.folder ?? join(state, 'worktrees', name),
          home,
        ),
      }
      const agents = [...new Set([...inFile, project.agent])]
      return [name, { ...project, path, agents, worktrees }]
    },
  )
  return {
    ...said,
    retention: retentionOf(said.retention),
    projects: table(projects),
    agents: table(names.map((name) => [name, agentOf(name, said.agents[name] ?? {})])),
    users: table(Object.entries(said.users)),
    groups: table(Object.entries(said.groups)),
  }
}

function broken(file: string, problems: string[]): Refusal {
  const numbered = problems.map((each, i) => `(${i + 1}) ${each}`).join(' ')
  const what = problems.length === 1 ? problems[0]! : `${problems.length} problems: ${numbered}`
  return new Refusal('invalid', `${file}: ${what}`, {
    next: 'Correct it; a running daemon reads it again by itself. See docs/config.md.',
    details: { file, problems },
  })
}

/** A missing file is an empty object. */
function readJson(file: string): unknown {
  const text = readText(file)
  let hasProto = false
  let problem: string
  try {
    const raw: unknown = JSON.parse(text, (key, value: unknown) => {
      hasProto ||= key === '__proto__'
      return value
    })
    // It would be dropped on the way without a word.
    const fault = hasProto ? { path: '__proto__:', message: 'no such key' } : textFault(raw)
    if (!fault) return raw
    problem = `${fault.path} ${fault.message}`
  } catch {
    problem = `not JSON at ${breakOf(text)}`
  }
  throw broken(file, [problem])
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8').replace(/^\uFEFF/, '')
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return '{}'
    throw broken(file, [`cannot be read (${code})`])
  }
}

// oxlint-disable-next-line no-control-regex -- JSON does not allow them in a string
const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[\da-fA-F]{4}))*"/.source
const SCALAR = `${STRING}|-?(?:0|[1-9]\\d*)(?:\\.\\d+)?(?:[eE][+-]?\\d+)?|true|false|null`

/** Where `text` stops being JSON: `JSON.parse` of Node 20 does not always say. */
function breakOf(text: string): string {
  let at = 0
  const take = (pattern: string): boolean => {
    const match = new RegExp(`[ \\t\\r\\n]*(?:${pattern})`, 'y')
    match.lastIndex = at
    if (!match.test(text)) return false
    at = match.lastIndex
    return true
  }
  const list = (end: string, item: () => boolean): boolean => {
    if (take(end)) return true
    do if (!item()) return false
    while (take(','))
    return take(end)
  }
  const value = (depth: number): boolean => {
    if (depth > 100) return false
    if (take('\\{')) return list('\\}', () => take(STRING) && take(':') && value(depth + 1))
    return take('\\[') ? list('\\]', () => value(depth + 1)) : take(SCALAR)
  }
  value(0)
  take('')
  const lines = text.slice(0, at).split(/\r\n|\n|\r/)
  const found = at === text.length ? 'the file ends too soon' : `found ${JSON.stringify(text[at])}`
  return `line ${lines.length}, column ${lines.at(-1)!.length + 1}: ${found}`
}
