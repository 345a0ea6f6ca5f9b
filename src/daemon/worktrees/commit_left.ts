import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import { shortLine } from '../../core/quote.ts'
import type { Worktree } from '../../core/schema/worktree.ts'
import {
  commitOf,
  FILES_MS,
  git,
  gitList,
  type GitOptions,
  statusOf,
  tryGit,
} from '../../machine/git.ts'
import { gitAt } from './tree.ts'

const SUBJECT_MAX = 72

/** Who did what is committed, and what was said of it. */
export interface RunWords {
  task_id: string
  agent: string
  title: string
  /** The last words of the agent. */
  summary: string
}

/**
 * Commits what a run left in its worktree onto its branch, for an agent that may not write there
 * (Codex's sandbox) or has forgotten to. Leaves it as it is where another branch is checked out,
 * or a conflict was not settled: landing then says so.
 */
export async function commitLeft(worktree: Worktree, said: RunWords): Promise<void> {
  const { path, branch } = worktree
  const at: GitOptions = { ...gitAt(worktree, path), timeout_ms: FILES_MS }
  const on = await tryGit(path, ['symbolic-ref', '--short', '--quiet', 'HEAD'], at)
  if (on.out.trim() !== branch) return
  if ((await unsettledIn(path, at)).length > 0) return
  const isMerging = (await commitOf(path, 'MERGE_HEAD', at)) !== undefined
  const left = await statusOf(path, at)
  if (left.length === 0 && !isMerging) return
  await git(path, ['add', '--all'], at)
  const author = await authorIn(path, at)
  const args = ['commit', '--quiet', '--no-verify', '--cleanup=whitespace', '--file=-', ...author]
  await git(path, args, { ...at, input: messageOf(said) })
}

/** Files of a merge that still have the marks of a conflict. */
async function unsettledIn(path: string, at: GitOptions): Promise<string[]> {
  const unmerged = await gitList(path, ['diff', '--name-only', '--diff-filter=U', '-z'], at)
  return unmerged.filter((name) => {
    const text = attempt(() => readFileSync(join(path, name), 'utf8'), '')
    return /^<{7} |^>{7} /m.test(text)
  })
}

/** The person whose repository it is; none where git knows of none. */
async function authorIn(path: string, at: GitOptions): Promise<string[]> {
  const [name, email] = await Promise.all(
    ['user.name', 'user.email'].map(async (key) => (await tryGit(path, ['config', key], at)).out),
  )
  return name && email ? [`--author=${name.trim()} <${email.trim()}>`] : []
}

function messageOf({ task_id, agent, title, summary }: RunWords): string {
  const subject = shortLine(title, SUBJECT_MAX) || `Task ${task_id}`
  const trailers = `Leasehold-Agent: ${agent}\nLeasehold-Task: ${task_id}`
  return [subject, summary.trim(), trailers].filter((each) => each !== '').join('\n\n')
}

/**
 * Merges what `onto` is now into the branch of a worktree whose work came back, so that its agent
 * can settle what is in conflict, also one that may not write to git itself. Returns the paths in
 * conflict; a worktree with anything uncommitted is left as it is.
 */
export async function mergeTarget(worktree: Worktree, onto: string): Promise<string[]> {
  const { path } = worktree
  const at: GitOptions = { ...gitAt(worktree, path), timeout_ms: FILES_MS }
  const target = await commitOf(path, `refs/heads/${onto}`, at)
  if (target === undefined) return []
  const left = await statusOf(path, at)
  if (left.length > 0) return unsettledIn(path, at)
  const message = `Merge ${onto} into ${worktree.branch}`
  await tryGit(path, ['merge', '--quiet', '--no-edit', '-m', message, target], at)
  return unsettledIn(path, at)
}
