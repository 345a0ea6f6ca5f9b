import type { Worktree } from '../../core/schema/worktree.ts'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import { planted } from '../../core/planted.ts'
import { systemCode } from '../../machine/errors.ts'
import { commitOf, git, tryGit } from '../../machine/git.ts'
import { step } from '../../machine/test_build.ts'
import { capture } from './capture.ts'
import type { Entered } from './entered.ts'
import { isHeld, looseOf, savedAs, whyApart } from './salvage.ts'
import {
  adminOf,
  branchRef,
  giveUpName,
  gonePath,
  locationOf,
  removingPath,
  type SalvageRules,
  whoWorks,
} from './tree.ts'

/**
 * Removes a worktree and its branch, if nothing would be lost; else says why not, as a sentence.
 * Its files are moved aside first, looked at there, and moved again when they may go: so a program
 * that goes on after a crash knows whether they were looked at.
 */
export async function removeWorktree(
  entered: Entered,
  tree: Worktree,
  rules: SalvageRules,
): Promise<string | undefined> {
  const { path } = tree
  const aside = removingPath(path)
  if (!existsSync(tree.repository)) return repositoryGone(tree)
  await entered.record({ ...tree, state: 'removing' })
  step('worktree:removing')
  // One that was broken off before the files were looked at goes on where they are.
  const isAside = existsSync(aside) || whoWorks(path) !== undefined
  if (!isAside && locationOf(tree) === path) renameSync(path, aside)
  step('worktree:aside')
  const why = await whyKept(tree, rules)
  if (why !== undefined) {
    if (existsSync(aside) && !existsSync(path)) renameSync(aside, path)
    letGitWork(tree)
    await entered.record({ ...tree, state: 'left', kept_because: why })
    return why
  }
  if (existsSync(aside)) renameSync(aside, gonePath(path))
  step('worktree:looked')
  await clear(entered, tree)
  return undefined
}

export const repositoryGone = ({ repository }: Worktree) => `its repository ${repository} is gone`

/** Takes away what is left of a worktree of which nothing can be lost any more. */
export async function clear(entered: Entered, tree: Worktree): Promise<void> {
  const { path, repository } = tree
  await rm(gonePath(path), { recursive: true, force: true })
  step('worktree:cleared')
  // Git's own notes of it, also of one that was half made.
  if (!existsSync(path)) rmSync(adminOf(tree), { recursive: true, force: true })
  const ref = branchRef(tree)
  const tip = await commitOf(repository, ref)
  const isKept = tip !== undefined && (tip === tree.base || (await isHeld(repository, tip, ref)))
  if (isKept || (tip && planted('R54'))) await git(repository, ['update-ref', '-d', ref, tip])
  step('worktree:unnamed')
  giveUpName(tree)
  await entered.gone(tree.id)
}

const lockPath = (tree: Worktree) => join(adminOf(tree), 'index.lock')
const OURS = 'leasehold removes this worktree\n'

/**
 * Takes git's own lock of what is staged: nothing is added between the last look and the end. Says
 * why not, where git has it.
 */
function keepGitOut(tree: Worktree): string | undefined {
  try {
    writeFileSync(lockPath(tree), OURS, { flag: 'wx' })
  } catch (error) {
    // Somebody has removed what git kept of it: there is nothing to add to.
    if (systemCode(error) === 'ENOENT') return undefined
    if (systemCode(error) !== 'EEXIST') throw error
    const isOwn = readFileSync(lockPath(tree), 'utf8') === OURS
    if (!isOwn) return `git is at work in it, or was killed there: ${lockPath(tree)}`
  }
  return undefined
}

function letGitWork(tree: Worktree): void {
  const said = attempt(() => readFileSync(lockPath(tree), 'utf8'), '')
  if (said === OURS) rmSync(lockPath(tree))
}

/** Why a worktree may not go; undefined when all of it is kept elsewhere. */
async function whyKept(tree: Worktree, rules: SalvageRules): Promise<string | undefined> {
  if (planted('R54')) return undefined
  const { repository, path } = tree
  const admin = adminOf(tree)
  const locked = attempt(() => readFileSync(join(admin, 'locked'), 'utf8').trim(), undefined)
  if (locked !== undefined) return `somebody has locked it${locked && `: ${locked}`}`
  const aside = existsSync(removingPath(path)) ? removingPath(path) : undefined
  const place = aside ?? locationOf(tree)
  const busy = place && whoWorks(place)
  if (busy) return busy
  if (place !== aside) return `it was moved to ${place}`
  if (aside && existsSync(path)) return `there is another folder at ${path}`
  const atGit = keepGitOut(tree)
  if (atGit) return atGit
  const own = attempt(() => readdirSync(join(admin, 'refs', 'worktree')), [])
  if (own.length > 0) return `it has refs of its own: ${own.join(', ')}`
  const found = await capture(tree, rules, aside)
  const apart = found && whyApart(found)
  if (apart) return apart
  if (found?.isDirty && !(await savedAs(tree, found)))
    return 'it has changes that are not committed'
  const [loose] = await looseOf(tree, branchRef(tree))
  if (loose === undefined) return undefined
  const { code } = await tryGit(repository, ['merge-base', '--is-ancestor', loose, branchRef(tree)])
  const only = code === 0 ? `only its branch ${tree.branch}` : 'no branch'
  return `${only} has commit ${loose.slice(0, 12)}`
}
