import type { Landing } from '../../core/landing/rows.ts'
import type { Worktree } from '../../core/rows.ts'
import { commitOf, git, gitList, type GitOptions, gitSays, tryGit } from '../../machine/git.ts'
import { gitAt, locationOf } from '../worktrees/tree.ts'

/** The commit that is to be landed, or why there is none. */
export type Source = { commit: string } | { reason: string; paths?: string[] }

interface SourceAsk {
  landing: Landing
  /** The last one of its task. */
  worktree: Worktree | undefined
  /** The project's own folder. */
  folder: string
  remote: string | null
}

const PATHS_MAX = 20

/**
 * What a landing is about. An agent that says "done" may be wrong in many ways: it left changes
 * uncommitted, committed nothing, or worked on another branch. Then there is nothing to land.
 */
export async function findSource(ask: SourceAsk): Promise<Source> {
  const { landing, worktree, folder } = ask
  if (landing.branch !== null) return ofBranch(ask, landing.branch)
  if (worktree) return ofWorktree(ask, worktree)
  if (landing.target === null) return ofFolder(folder)
  return {
    reason: `it has no branch of its own: leasehold land ${landing.task_id} --branch BRANCH`,
  }
}

async function ofBranch({ landing, folder, remote }: SourceAsk, branch: string): Promise<Source> {
  const at = `refs/heads/${branch}`
  if (remote !== null && !(await commitOf(folder, at))) {
    await tryGit(folder, ['fetch', '--quiet', remote, `${at}:${at}`])
  }
  const commit = await commitOf(folder, at)
  if (!commit) return { reason: `there is no branch ${branch}` }
  if (landing.commit !== null && landing.commit !== commit) {
    return { reason: `branch ${branch} has moved since to ${commit.slice(0, 12)}` }
  }
  return { commit }
}

async function ofWorktree(ask: SourceAsk, worktree: Worktree): Promise<Source> {
  const { branch, base } = worktree
  const location = locationOf(worktree)
  const at = location === undefined ? undefined : gitAt(worktree, location)
  const unfinished = location === undefined ? undefined : await left(location, at)
  if (unfinished) return unfinished
  const now = location === undefined ? branch : await branchAt(location, at)
  const source = await ofBranch(ask, branch)
  if ('commit' in source && source.commit === base) {
    return { reason: `nothing was committed on ${branch}${elsewhere(now, branch)}` }
  }
  if (now === branch) return source
  return { reason: `its worktree is not on its branch ${branch}${elsewhere(now, branch)}` }
}

/** What is checked out in a worktree; empty where that is no branch. */
async function branchAt(location: string, at?: GitOptions): Promise<string> {
  const isOn = await gitSays(location, ['symbolic-ref', '--quiet', 'HEAD'], at)
  return isOn ? git(location, ['symbolic-ref', '--short', 'HEAD'], at) : ''
}

const elsewhere = (now: string, branch: string) =>
  now === branch ? '' : `: it is on ${now === '' ? 'no branch' : now}`

async function ofFolder(folder: string): Promise<Source> {
  const unfinished = await left(folder)
  if (unfinished) return unfinished
  const commit = await commitOf(folder, 'HEAD')
  return commit ? { commit } : { reason: `${folder} has no commit` }
}

/** What is not committed, ignored files aside. */
async function left(path: string, at?: GitOptions) {
  const entries = await gitList(path, ['status', '--porcelain', '-z', '--no-renames'], at)
  const paths = entries.map((entry) => entry.slice(3))
  if (paths.length === 0) return undefined
  const some = paths.slice(0, PATHS_MAX)
  const more = paths.length > some.length ? ` and ${paths.length - some.length} more` : ''
  return { reason: `changes were left uncommitted: ${some.join(', ')}${more}`, paths: some }
}
