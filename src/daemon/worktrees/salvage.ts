import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import type { Salvage, Worktree } from '../../core/rows.ts'
import { commitOf, git, gitList, landedRef, tryGit } from '../../machine/git.ts'
import { capture, type Captured } from './capture.ts'
import { changedIn } from './changed.ts'
import { adminOf, branchRef, headOf, type SalvageRules, salvageRef } from './tree.ts'

const LEFT_OUT_MAX = 100
const NOTED_MAX = 1000

/**
 * Saves what a run left in its worktree and no commit has, under `refs/leasehold/salvage/<run>`;
 * with `commits`, also commits that only its own branch holds. What was saved there before stays
 * reachable. Answers how the worktree stands then.
 */
export async function salvage(
  tree: Worktree,
  rules: SalvageRules,
  commits = false,
): Promise<Worktree> {
  const found = await capture(tree, rules)
  const head = await headOf(tree)
  const tip = await commitOf(tree.repository, branchRef(tree))
  const loose = await looseOf(tree, commits ? branchRef(tree) : undefined)
  const changed = await changedIn(tree, found?.tree ?? head ?? tip)
  const now = { ...tree, changed, kept_because: found ? whyApart(found) : null }
  if (!found?.isDirty && loose.length === 0) return now
  return { ...now, salvage: await keep(tree, found, head, loose) }
}

/** Why a worktree is kept for good until somebody sees to it: no ref can have all of it. */
export const whyApart = ({ apart }: Captured): string | null =>
  apart.length === 0 ? null : `a part of it is saved nowhere: ${apart.slice(0, 5).join(', ')}`

/**
 * Commits of a worktree to which no ref leads, other than `own`: of a detached HEAD, set aside by a
 * rebase that is under way, or taken back by a reset. The last ones of each line of them.
 */
export async function looseOf(tree: Worktree, own?: string): Promise<string[]> {
  const { repository } = tree
  const known = [await headOf(tree), await commitOf(repository, branchRef(tree)), ...notedIn(tree)]
  const asked = [...new Set(known)].filter((each) => each !== undefined)
  const excluded = own === undefined ? [] : [`--exclude=${own}`]
  const refs = ['--not', ...excluded, '--glob=refs/*']
  const args = ['rev-list', '--parents', '--ignore-missing', '--stdin', ...refs]
  const lines = await gitList(repository, args, { input: `${asked.join('\n')}\n` })
  const below = new Set(lines.flatMap((line) => line.split(' ').slice(1)))
  const loose = new Set(lines.map((line) => line.split(' ')[0]!))
  return asked.filter((each) => loose.has(each) && !below.has(each))
}

/** What git has noted of a worktree beside its refs: where its HEAD has been, what it set aside. */
function notedIn(tree: Worktree): string[] {
  const read = (name: string) => attempt(() => readFileSync(join(adminOf(tree), name), 'utf8'), '')
  const been = read('logs/HEAD').split('\n').slice(-NOTED_MAX)
  const aside = ['rebase-merge/autostash', 'rebase-apply/autostash', 'MERGE_AUTOSTASH'].map(read)
  const said = [
    ...been.map((line) => line.split(' ')[1] ?? ''),
    ...aside.map((text) => text.trim()),
  ]
  return said.filter((each) => /^[0-9a-f]{40,64}$/.test(each) && !/^0+$/.test(each))
}

/** Whether a ref, other than `own`, leads to a commit. */
export async function isHeld(repository: string, commit: string, own?: string): Promise<boolean> {
  // Asked by name: there are as many of these as were landed.
  if ((await commitOf(repository, landedRef(commit))) !== undefined) return true
  const asked = ['for-each-ref', '--format=%(refname)', '--contains', commit]
  return (await gitList(repository, asked)).some((ref) => ref !== own)
}

async function keep(
  tree: Worktree,
  found: Captured | undefined,
  head: string | undefined,
  loose: string[],
): Promise<Salvage> {
  const { repository, run_id } = tree
  const ref = salvageRef(run_id)
  const at = new Date().toISOString()
  const left_out = [...(found?.left_out ?? []), ...(found?.apart ?? [])].slice(0, LEFT_OUT_MAX)
  const before = await commitOf(repository, ref)
  const files = found?.tree ?? (await git(repository, ['rev-parse', `${loose[0]}^{tree}`]))
  if (before !== undefined && (await holds(repository, before, files, [head, ...loose]))) {
    return { ref, commit: before, at: tree.salvage?.at ?? at, left_out }
  }
  const { staged, merging } = found ?? {}
  const stage = staged && (await commitTree(repository, staged, 'What was staged', [head]))
  const parents = [head, stage, merging, ...loose, before]
  const commit = await commitTree(repository, files, `Salvage of run ${run_id}`, parents)
  await git(repository, ['update-ref', ref, commit, before ?? ''])
  return { ref, commit, at, left_out }
}

/** Whether what was saved before has these files and leads to these commits. */
async function holds(
  repository: string,
  saved: string,
  files: string,
  commits: (string | undefined)[],
): Promise<boolean> {
  if ((await git(repository, ['rev-parse', `${saved}^{tree}`])) !== files) return false
  for (const commit of commits) {
    if (commit === undefined) continue
    const { code } = await tryGit(repository, ['merge-base', '--is-ancestor', commit, saved])
    if (code !== 0) return false
  }
  return true
}

function commitTree(
  repository: string,
  tree: string,
  message: string,
  parents: (string | undefined)[],
): Promise<string> {
  const known = [...new Set(parents)].filter((each) => each !== undefined)
  const args = ['commit-tree', tree, '-m', message, ...known.flatMap((each) => ['-p', each])]
  return git(repository, args)
}
