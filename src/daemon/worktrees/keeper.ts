import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Refusal } from '../../core/refusal.ts'
import { MARK, newMark } from '../../machine/group.ts'
import type { WorktreeRules } from './tree.ts'

/** What a keeper is to do in one repository. It comes as JSON on standard input. */
export interface KeeperSpec {
  place: Record<string, string>
  /** Which host this is. */
  host: string
  repository: string
  /** By project; what is not named is saved by the defaults, and kept. */
  rules: Record<string, Pick<WorktreeRules, 'keep' | 'salvage'>>
  /** Bring all to rest and remove what is kept no longer; or save, or remove, one. */
  want: 'settle' | 'salvage' | 'remove'
  id: string | null
}

/** How it went: for `remove`, why the worktree is still there. */
export interface KeeperSaid {
  why: string | null
  refused: { code: string; message: string; next: string } | null
}

/** What a program of ours needs from the environment to run git as this login does. */
const NAMES = ['PATH', 'HOME', 'TMPDIR', 'LANG', 'LEASEHOLD_STOP_AT', 'LEASEHOLD_PLANT']

export const programEnvironment = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(NAMES.flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])))

/**
 * Lets a keeper do its work: a process that leads a group of its own, so that what it has started
 * can be stopped if it is killed. It ends its work even when this process dies.
 */
export async function runKeeper(spec: KeeperSpec, env: NodeJS.ProcessEnv): Promise<KeeperSaid> {
  const program = fileURLToPath(new URL('keeper.cjs', import.meta.url))
  const child = spawn(process.execPath, [program], {
    detached: true,
    env: { ...programEnvironment(env), [MARK]: newMark() },
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  child.stdin.on('error', () => undefined)
  child.stdin.end(JSON.stringify(spec))
  let said = ''
  child.stdout.on('data', (chunk: Buffer) => (said += String(chunk)))
  await new Promise<void>((ended) => {
    child.once('error', () => ended())
    child.once('close', () => ended())
  })
  try {
    return JSON.parse(said) as KeeperSaid
  } catch {
    throw new Refusal('unavailable', 'The keeper of worktrees did not come to an end')
  }
}
