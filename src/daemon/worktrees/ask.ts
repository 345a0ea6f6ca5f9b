import type { SeenWorktree } from '../../core/queue/worktree.ts'
import { git } from '../../machine/git.ts'
import type { Place } from '../../stores/open.ts'
import { readConfig } from '../config/config.ts'
import { placeIn } from '../dispatch/start_runner.ts'
import { rulesIn } from '../dispatch/tree_care.ts'
import { capture } from './capture.ts'
import { type KeeperSaid, runKeeper } from './keeper.ts'

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
