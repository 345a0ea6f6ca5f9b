import type { SeenWorktree } from '../../core/queue/worktree.ts'
import { Refusal } from '../../core/refusal.ts'
import { git } from '../../machine/git.ts'
import type { Place } from '../../stores/open.ts'
import { type Config, readConfig } from '../config/config.ts'
import { placeIn, startProgram } from '../program.ts'
import { capture } from './capture.ts'
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

/** Lets a keeper do its work: a process, so that it can be stopped with what it started. */
export async function runKeeper(spec: KeeperSpec, env: NodeJS.ProcessEnv): Promise<KeeperSaid> {
  const child = startProgram({ name: 'keeper', spec, env, isMarked: true }, 'pipe')
  let said = ''
  child.stdout?.on('data', (chunk: Buffer) => (said += String(chunk)))
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

/** How projects have their worktrees saved and kept. */
export function rulesIn({ projects }: Config): KeeperSpec['rules'] {
  const ruled = Object.entries(projects).flatMap(([name, { worktrees }]) =>
    worktrees ? [[name, { keep: worktrees.keep, salvage: worktrees.salvage }] as const] : [],
  )
  return Object.fromEntries(ruled)
}

/** What a worktree has changed since its branch began, as text; nobody is kept from working. */
export async function diffOf(tree: SeenWorktree): Promise<string> {
  const found = await capture(tree, { ignored: [], bytes_max: 0 })
  const now = found?.tree ?? tree.salvage?.commit
  const apart = found && found.apart.length > 0 ? `not in this diff: ${found.apart.join(', ')}` : ''
  if (tree.base === null || now === undefined) return apart
  const diff = await git(tree.repository, [
    'diff',
    '--no-ext-diff',
    '--no-textconv',
    '--no-color',
    tree.base,
    now,
  ])
  return [diff, apart].filter((each) => each !== '').join('\n')
}

interface Where {
  place: Place
  folder: string
  env: NodeJS.ProcessEnv
}

/** Has a keeper save or remove one worktree of this host. */
export function keepOne(
  { id, host, repository }: SeenWorktree,
  want: 'salvage' | 'remove',
  { place, folder, env }: Where,
): Promise<KeeperSaid> {
  const rules = rulesIn(readConfig(folder, env))
  return runKeeper({ place: placeIn(place), host, repository, rules, want, id }, env)
}
