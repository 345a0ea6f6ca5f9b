import type { Worktree } from '../../core/schema/worktree.ts'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join, resolve } from 'node:path'
import { attempt } from '../../core/attempt.ts'
import { realpathOf } from '../../machine/checkout.ts'
import { systemCode } from '../../machine/errors.ts'
import { commitOf, type GitOptions } from '../../machine/git.ts'
import { workingIn } from '../../machine/proc.ts'

/** How a project has its worktrees, from `config.json`. */
export interface WorktreeRules {
  /** The branch that they begin at; null: the one that the main checkout has. */
  base: string | null
  /** Where they are: an absolute path. */
  folder: string
  /** Paths that git ignores and a run needs, copied from the main checkout. */
  copy: string[]
  setup: string[] | null
  teardown: string[] | null
  retry: 'same' | 'new'
  keep: { days: number | null; bytes: number | null }
  salvage: SalvageRules
}

export interface SalvageRules {
  /** Globs of ignored files that are saved; null: those that are not in an ignored folder. */
  ignored: string[] | null
  /** An ignored file that is larger is not saved. */
  bytes_max: number
}

type Placed = Pick<Worktree, 'path' | 'repository'>

/** What git keeps of a worktree, inside of the repository. Both have the same name. */
export const adminOf = ({ path, repository }: Placed) =>
  join(repository, 'worktrees', basename(path))

export const branchRef = ({ branch }: Pick<Worktree, 'branch'>) => `refs/heads/${branch}`

/** While it is looked at for the last time, and when it is proved that nothing of it is missed. */
export const removingPath = (path: string) => `${path}~removing`
export const gonePath = (path: string) => `${path}~gone`

/**
 * Says in the repository itself whose a name is: several stores may have worktrees of it, and a
 * restored one remembers names that were given again since.
 */
const claimPath = ({ path, repository }: Placed) =>
  join(repository, 'leasehold', 'worktrees', basename(path))

const claimOf = ({ id, begun_at, path }: Worktree) => `${id} ${begun_at} ${path}\n`

/** Takes the name of a worktree that was recorded; false where somebody else has it. */
export function claimName(tree: Worktree): boolean {
  mkdirSync(dirname(claimPath(tree)), { recursive: true })
  try {
    writeFileSync(claimPath(tree), claimOf(tree), { flag: 'wx' })
    return true
  } catch (error) {
    if (systemCode(error) === 'EEXIST') return false
    throw error
  }
}

export const isClaimed = (tree: Placed) => existsSync(claimPath(tree))

export const giveUpName = (tree: Worktree) => rmSync(claimPath(tree), { force: true })

/** Whether what is on disk under the names of a row was made for that row. */
export function isOurs(tree: Worktree): boolean {
  try {
    return readFileSync(claimPath(tree), 'utf8') === claimOf(tree)
  } catch (error) {
    if (systemCode(error) !== 'ENOENT') throw error
    // Older versions took no names: but for half made ones, theirs are known by path.
    return tree.state !== 'making'
  }
}

/** Who has a folder of it as its working directory: what it writes next, no look can have seen. */
export function whoWorks(folder: string): string | undefined {
  const [first] = workingIn(folder)
  return first && `a program is at work in it: ${first.name} (pid ${first.pid})`
}

/** Where the files are now: somebody may have moved them, by git. Undefined: nowhere. */
export function locationOf(tree: Placed): string | undefined {
  if (existsSync(tree.path)) return isAnothers(tree) ? undefined : tree.path
  const said = attempt(() => readFileSync(join(adminOf(tree), 'gitdir'), 'utf8').trim(), '')
  const moved = said === '' ? undefined : dirname(said)
  return moved !== undefined && existsSync(moved) ? moved : undefined
}

/** Whether git says of the folder that it is a worktree of something else. */
function isAnothers(tree: Placed): boolean {
  const said = attempt(() => readFileSync(join(tree.path, '.git'), 'utf8').trim(), '')
  if (!said.startsWith('gitdir: ')) return false
  return realpathOf(resolve(tree.path, said.slice(8))) !== realpathOf(adminOf(tree))
}

/**
 * How git is asked about a worktree: never by what it finds around a folder, for an agent may have
 * removed `.git` there, and the next one upward is the main checkout's.
 */
export function gitAt(tree: Placed, location: string, index?: string): GitOptions {
  const admin = adminOf(tree)
  return {
    env: {
      GIT_DIR: existsSync(join(admin, 'HEAD')) ? admin : tree.repository,
      GIT_WORK_TREE: location,
      ...(index !== undefined && { GIT_INDEX_FILE: index }),
    },
  }
}

/** What is checked out, also where the files are gone; undefined where there is no commit. */
export function headOf(tree: Worktree): Promise<string | undefined> {
  const at = gitAt(tree, tree.repository)
  const isWhole = at.env?.['GIT_DIR'] !== tree.repository
  return commitOf(tree.repository, isWhole ? 'HEAD' : branchRef(tree), at)
}

/**
 * Removes locks of git that a killed command left: of this worktree, its branch and the ref that
 * only we write. Asked under the repository's lock, when nothing of its run is left.
 */
export function clearLocks(tree: Worktree): void {
  const admin = adminOf(tree)
  const names = attempt(() => readdirSync(admin), [])
  for (const name of names) {
    if (/\.lock$|^leasehold-index/.test(name)) rmSync(join(admin, name), { force: true })
  }
  for (const ref of [branchRef(tree), salvageRef(tree.run_id)]) {
    rmSync(join(tree.repository, `${ref}.lock`), { force: true })
  }
}

export const salvageRef = (run_id: string) => `refs/leasehold/salvage/${run_id}`
