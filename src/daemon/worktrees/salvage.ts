import type { Salvage } from '../../core/queue/rows.ts'
import type { Worktree } from '../../core/schema/worktree.ts'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import { commitOf, git, gitList, landedRef, statusOf, tryGit } from '../../machine/git.ts'
import { saveUnder } from '../../machine/git_save.ts'
import { capture, type Captured } from './capture.ts'
import {
  adminOf,
  branchRef,
  gitAt,
  headOf,
  locationOf,
  type SalvageRules,
  salvageRef,
} from './tree.ts'

const LEFT_OUT_MAX = 100
const NOTED_MAX = 1000
/** Of one worktree: everybody who looks for overlaps reads them. */
const PATHS_MAX = 200
/** Others wait for the end of a look. */
const LOOK_MS = 30_000

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
  const { staged, merging } = found ?? {}
  const known = await savedAs(tree, { tree: files, staged, merging }, [head, ...loose])
  if (known !== undefined) return { ref, commit: known, at: tree.salvage?.at ?? at, left_out }
  const kept = { tree: files, staged, head, others: [merging, ...loose] }
  const message = `Salvage of run ${run_id}`
  const commit = await saveUnder(repository, ref, { ...kept, message }, before)
  return { ref, commit, at, left_out }
}

/**
 * What was saved before and has all of this: the files, what was staged, the commits. Others may
 * save under the same name, runs of another store for example: then what was saved is below that.
 */
export async function savedAs(
  { repository, run_id, salvage: last }: Worktree,
  found: Pick<Captured, 'tree' | 'staged' | 'merging'>,
  commits: (string | undefined)[] = [],
): Promise<string | undefined> {
  const refs = [...new Set([last?.ref ?? salvageRef(run_id), salvageRef(run_id)])]
  const tips = await Promise.all(refs.map((ref) => commitOf(repository, ref)))
  const isThere = last && (await leadsTo(repository, tips, last.commit))
  for (const saved of new Set([...tips, isThere ? last.commit : undefined])) {
    if (saved && (await holds(repository, saved, found, commits))) return saved
  }
  return undefined
}

async function leadsTo(repository: string, from: (string | undefined)[], commit: string) {
  for (const each of from) {
    if (each === undefined) continue
    const { code } = await tryGit(repository, ['merge-base', '--is-ancestor', commit, each])
    if (code === 0) return true
  }
  return false
}

async function holds(
  repository: string,
  saved: string,
  { tree, staged, merging }: Pick<Captured, 'tree' | 'staged' | 'merging'>,
  commits: (string | undefined)[],
): Promise<boolean> {
  const treeOf = (commit: string) => git(repository, ['rev-parse', `${commit}^{tree}`])
  if ((await treeOf(saved)) !== tree) return false
  if (staged !== undefined) {
    const parents = (await git(repository, ['log', '-1', '--format=%P', saved])).split(' ')
    const trees = await Promise.all(parents.filter((each) => each !== '').map(treeOf))
    if (!trees.includes(staged)) return false
  }
  for (const commit of [merging, ...commits]) {
    if (commit !== undefined && !(await leadsTo(repository, [saved], commit))) return false
  }
  return true
}

/** Paths in which a commit or tree differs from where the branch began. */
async function changedIn(tree: Worktree, now: string | undefined): Promise<string[]> {
  if (tree.base === null || now === undefined) return []
  return bounded(await differing(tree, tree.base, now))
}

/** The same for what its run has committed and written so far; the run is not kept from working. */
export async function changedSoFar(tree: Worktree): Promise<string[]> {
  const location = locationOf(tree)
  if (tree.base === null || location === undefined) return tree.changed
  const at = { ...gitAt(tree, location), timeout_ms: LOOK_MS }
  const written = await statusOf(location, at, ['--untracked-files=all'])
  const committed = await differing(tree, tree.base, 'HEAD', at)
  return bounded([...new Set([...committed, ...written.map(({ path }) => path)])].toSorted())
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
