import type { Worktree } from '../../core/schema/worktree.ts'
import type { Landing } from '../../core/schema/landing.ts'
import { commitOf, git, gitList, type GitOptions, gitSays, statusOf } from '../../machine/git.ts'
import type { LandConfig } from '../config/schema.ts'
import { gitAt, locationOf } from '../worktrees/tree.ts'
import { FAR, fetchBranch, flat } from './term.ts'

/** A landing whose commit is known; `top` is what the target would be with it. */
export interface Landable {
  landing: Landing
  commit: string
  top?: string
}

/** The commit that is to be landed, or why there is none. */
export type Source = { commit: string } | { reason: string; paths?: string[] }

interface SourceAsk {
  landing: Landing
  /** The last one of its task. */
  worktree: Worktree | undefined
  /** The task was worked on in a worktree, of which nothing is left. */
  isGone: boolean
  /** The project's own folder. */
  folder: string
  remote: string | null
}

/** One that says how its branches are landed. */
export interface LandedProject {
  name: string
  /** Its own folder. */
  path: string
  land: LandConfig
  /** Whether each of its runs has a worktree of its own. */
  hasWorktrees: boolean
}

const PATHS_MAX = 20

/**
 * What a landing is about. An agent that says "done" may be wrong in many ways: it left changes
 * uncommitted, committed nothing, or worked on another branch. Then there is nothing to land.
 */
export async function findSource(ask: SourceAsk): Promise<Source> {
  const { landing, worktree, isGone, folder } = ask
  if (landing.branch !== null) return ofBranch(ask, landing.branch)
  if (worktree) return ofWorktree(ask, worktree)
  if (landing.target === null && !isGone) return ofFolder(folder)
  const what = isGone ? 'its worktree is gone' : 'it has no branch of its own'
  return { reason: `${what}: leasehold land ${landing.task_id} --branch BRANCH` }
}

async function ofBranch({ landing, folder, remote }: SourceAsk, branch: string): Promise<Source> {
  const here = await commitOf(folder, `refs/heads/${branch}`)
  const there = remote === null ? undefined : await fetched(folder, remote, branch)
  const commit = await newest(folder, here ?? there, there ?? here)
  if (!commit) {
    if (here && there) return { reason: `branch ${branch} is another one here than at ${remote}` }
    return { reason: `there is no branch ${branch}` }
  }
  if (landing.commit !== null && landing.commit !== commit) {
    return { reason: `branch ${branch} has moved since to ${commit.slice(0, 12)}` }
  }
  return { commit }
}

/** What a branch of a remote is now; undefined where it has none, and has said so. */
async function fetched(folder: string, remote: string, branch: string) {
  const known = await gitList(folder, ['ls-remote', remote, `refs/heads/${branch}`], FAR)
  if (known.length === 0) return undefined
  const to = `refs/leasehold/branch/${flat(remote)}/${flat(branch)}`
  await fetchBranch(folder, remote, branch, to)
  return commitOf(folder, to)
}

/** Of two states of a branch the one that has the other in it. */
async function newest(folder: string, a?: string, b?: string): Promise<string | undefined> {
  if (a === b || a === undefined || b === undefined) return a
  const isIn = (old: string, now: string) =>
    gitSays(folder, ['merge-base', '--is-ancestor', old, now])
  if (await isIn(a, b)) return b
  return (await isIn(b, a)) ? a : undefined
}

async function ofWorktree(ask: SourceAsk, worktree: Worktree): Promise<Source> {
  const { branch, base } = worktree
  const location = locationOf(worktree)
  const at = location === undefined ? undefined : gitAt(worktree, location)
  const unfinished = location === undefined ? undefined : await left(location, at)
  if (unfinished) return unfinished
  const now = location === undefined ? branch : await branchAt(location, at)
  // It is where its branch is worked on: what a remote has of it is no newer.
  const source = await ofBranch({ ...ask, remote: null }, branch)
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
  const paths = (await statusOf(path, at)).map((each) => each.path)
  if (paths.length === 0) return undefined
  const some = paths.slice(0, PATHS_MAX)
  const more = paths.length > some.length ? ` and ${paths.length - some.length} more` : ''
  return { reason: `changes were left uncommitted: ${some.join(', ')}${more}`, paths: some }
}
