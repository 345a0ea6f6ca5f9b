import type { Worktree } from '../../core/schema/worktree.ts'
import { gitList } from '../../machine/git.ts'
import { gitAt, locationOf } from './tree.ts'

/** Of one worktree: everybody who looks for overlaps reads them. */
const PATHS_MAX = 200
/** Others wait for the end of a look. */
const LOOK_MS = 30_000

/** Paths in which a commit or tree differs from where the branch began. */
export async function changedIn(tree: Worktree, now: string | undefined): Promise<string[]> {
  if (tree.base === null || now === undefined) return []
  return bounded(await differing(tree, tree.base, now))
}

/** The same for what its run has committed and written so far; the run is not kept from working. */
export async function changedSoFar(tree: Worktree): Promise<string[]> {
  const location = locationOf(tree)
  if (tree.base === null || location === undefined) return tree.changed
  const at = { ...gitAt(tree, location), timeout_ms: LOOK_MS }
  const asked = ['status', '--porcelain', '-z', '--no-renames', '--untracked-files=all']
  const written = (await gitList(location, asked, at)).map((entry) => entry.slice(3))
  const committed = await differing(tree, tree.base, 'HEAD', at)
  return bounded([...new Set([...committed, ...written])].toSorted())
}

const differing = (tree: Worktree, base: string, now: string, at = {}) =>
  gitList(tree.repository, ['diff-tree', '-r', '-z', '--name-only', base, now], at)

/**
 * Where there are too many paths, the folders that they are in, each with a slash at its end: less
 * exact, but none is left out.
 */
function bounded(paths: string[]): string[] {
  let kept = paths
  const deepest = Math.max(0, ...paths.map((path) => path.split('/').length - 1))
  for (let depth = deepest; depth >= 0 && kept.length > PATHS_MAX; depth -= 1) {
    kept = [...new Set(paths.map((path) => shortened(path, depth)))]
  }
  return kept
}

function shortened(path: string, depth: number): string {
  const names = path.split('/')
  if (names.length <= depth) return path
  return depth === 0 ? './' : `${names.slice(0, depth).join('/')}/`
}
