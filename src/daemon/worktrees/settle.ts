import type { Worktree } from '../../core/schema/worktree.ts'
import { existsSync } from 'node:fs'
import { planted } from '../../core/planted.ts'
import { step } from '../../machine/test_build.ts'
import type { Entered } from './entered.ts'
import { clear, removeWorktree, repositoryGone } from './remove.ts'
import { salvage } from './salvage.ts'
import { clearLocks, gonePath, isOurs, locationOf, type SalvageRules, whoWorks } from './tree.ts'

/**
 * Brings a worktree whose run is over to rest: what was half made is cleared away, what was half
 * removed is removed or put back, and of any other what is not committed is saved. Undefined when
 * nothing of it is left.
 */
export async function settleTree(
  entered: Entered,
  tree: Worktree,
  rules: SalvageRules,
): Promise<Worktree | undefined> {
  if (!existsSync(tree.repository)) return withoutRepository(entered, tree)
  if (!isOurs(tree)) {
    await entered.gone(tree.id)
    return undefined
  }
  if (tree.state === 'making') return settleHalf(entered, tree, rules)
  if (tree.state === 'removing') {
    // Moved there, its files were looked at and may go; else they have to be looked at again.
    const isLookedAt = existsSync(gonePath(tree.path)) && !existsSync(tree.path)
    if (isLookedAt) await clear(entered, tree)
    const why = isLookedAt ? undefined : await removeWorktree(entered, tree, rules)
    return why === undefined ? undefined : { ...tree, state: 'left', kept_because: why }
  }
  if (tree.state === 'left') return tree
  return leaveTree(entered, tree, rules)
}

/**
 * Half made, as far as its row knows; but a backup may have taken the place of the store since, and
 * an agent may have worked in it for long. What is there decides.
 */
async function settleHalf(
  entered: Entered,
  tree: Worktree,
  rules: SalvageRules,
): Promise<Worktree | undefined> {
  const left = await leaveTree(entered, tree, rules)
  if (left.salvage) return left
  const why = await removeWorktree(entered, left, rules)
  return why === undefined ? undefined : { ...left, kept_because: why }
}

/** Somebody has removed the repository: nobody can tell any more what its worktrees changed. */
async function withoutRepository(entered: Entered, tree: Worktree): Promise<Worktree | undefined> {
  if (locationOf(tree) === undefined) {
    await entered.gone(tree.id)
    return undefined
  }
  const left_at = tree.left_at ?? new Date().toISOString()
  const kept_because = repositoryGone(tree)
  const left: Worktree = { ...tree, state: 'left', left_at, kept_because }
  if (tree.kept_because !== kept_because) await entered.record(left)
  return left
}

/** A run is done with its worktree, and nothing of the run is left. */
export async function leaveTree(
  entered: Entered,
  tree: Worktree,
  rules: SalvageRules,
  commits = false,
): Promise<Worktree> {
  // Of a git that is at work the lock is its own; saving goes on beside it.
  if (!whoWorks(tree.path)) clearLocks(tree)
  step('worktree:salvaging')
  const saved = planted('R54') ? tree : await salvage(tree, rules, commits)
  step('worktree:salvaged')
  const left: Worktree = {
    ...saved,
    state: 'left',
    left_at: tree.left_at ?? new Date().toISOString(),
  }
  await entered.record(left)
  return left
}
