import type { MakeAsk } from '../worktrees/make.ts'

/** All that a runner has to know about its run. It comes as JSON on standard input. */
export interface RunSpec {
  run_id: string
  task_id: string
  fence: number
  agent: string
  lock: string
  user: string | null
  project: string | null
  title: string
  ttl_ms: number
  grace_ms: number
  /** Where `meta.json` and the output go: an absolute path. */
  folder: string
  argv: string[]
  cwd: string
  /** The whole environment of the command. */
  env: Record<string, string>
  /** What the command reads on standard input; null: nothing. */
  stdin: string | null
  /** Where `prompt` has to be written before the command begins; null: nowhere. */
  prompt_file: string | null
  prompt: string
  time_limit_ms: number | null
  silence_ms: number | null
  log_bytes_max: number
  /** `LEASEHOLD_DIR` and the like, by which the runner itself finds the daemon or the store. */
  place: Record<string, string>
  /** The worktree that it gets first; null: it begins in `cwd`. */
  worktree: MakeAsk | null
  /** Its agent reads behind the prompt what it has and where it works. */
  brief: boolean
  /** What a run that ended well left uncommitted is committed for it. */
  commits: boolean
  /** What has to pass before its work is landed. */
  check: string[] | null
}

type Kind = 'text' | 'flag' | 'number' | 'texts' | 'record' | 'object'

const FIELDS: Record<keyof RunSpec, Kind | `${Kind}?`> = {
  run_id: 'text',
  task_id: 'text',
  fence: 'number',
  agent: 'text',
  lock: 'text',
  user: 'text?',
  project: 'text?',
  title: 'text',
  ttl_ms: 'number',
  grace_ms: 'number',
  folder: 'text',
  argv: 'texts',
  cwd: 'text',
  env: 'record',
  stdin: 'text?',
  prompt_file: 'text?',
  prompt: 'text',
  time_limit_ms: 'number?',
  silence_ms: 'number?',
  log_bytes_max: 'number',
  place: 'record',
  worktree: 'object?',
  brief: 'flag?',
  commits: 'flag?',
  check: 'texts?',
}

const isText = (value: unknown) => typeof value === 'string'
const isRecord = (value: unknown) => value instanceof Object && !Array.isArray(value)

const IS: Record<Kind, (value: unknown) => boolean> = {
  text: isText,
  flag: (value) => typeof value === 'boolean',
  number: Number.isFinite,
  texts: (value) => Array.isArray(value) && value.every(isText),
  object: isRecord,
  record: (value) => isRecord(value) && Object.values(value as object).every(isText),
}

/**
 * Reads a spec; undefined for anything but a whole one. A dispatcher that dies while it writes
 * leaves half a spec, of which nothing may be started.
 */
export function parseSpec(text: string): RunSpec | undefined {
  let spec: Record<string, unknown>
  try {
    spec = JSON.parse(text) as Record<string, unknown>
  } catch {
    return undefined
  }
  if (!isRecord(spec)) return undefined
  for (const [name, kind] of Object.entries(FIELDS)) {
    const value = spec[name]
    // A dispatcher of a former version leaves out what it does not know.
    if ((value ?? null) === null && kind.endsWith('?')) continue
    if (!IS[kind.replace('?', '') as Kind](value)) return undefined
  }
  return spec as unknown as RunSpec
}
