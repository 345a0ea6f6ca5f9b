import { attempt } from '../../core/attempt.ts'
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

/** Those that a dispatcher of every version says. */
const ALWAYS: readonly (keyof RunSpec)[] = [
  ...(['run_id', 'task_id', 'fence', 'agent', 'lock', 'title', 'ttl_ms', 'grace_ms'] as const),
  ...(['folder', 'argv', 'cwd', 'env', 'prompt', 'log_bytes_max', 'place'] as const),
]

/**
 * Reads a spec; undefined for anything but a whole one. A dispatcher that dies while it writes
 * leaves half a spec, of which nothing may be started.
 */
export function parseSpec(text: string): RunSpec | undefined {
  const spec = attempt(() => JSON.parse(text) as Partial<RunSpec> | null, null)
  return ALWAYS.every((name) => spec?.[name] !== undefined) ? (spec as RunSpec) : undefined
}
