import type { Worktree } from '../../core/schema/worktree.ts'
import { cpSync, existsSync, mkdirSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { commitOf, FILES_MS, git, type Repository, repositoryAt } from '../../machine/git.ts'
import { step } from '../../machine/test_build.ts'
import { type AskTrees, type Entered, inRepository } from './entered.ts'
import { mergeTarget } from './commit_left.ts'
import { settleTree } from './settle.ts'
import {
  adminOf,
  branchRef,
  claimName,
  gitAt,
  gonePath,
  isClaimed,
  removingPath,
  whoWorks,
  type WorktreeRules,
} from './tree.ts'

export interface MakeAsk {
  run_id: string
  task_id: string
  fence: number
  project: string
  /** Which host this is. */
  host: string
  /** The folder of the project, in a checkout. */
  folder: string
  rules: WorktreeRules
  /** The branch that its work is landed onto. */
  onto?: string | null
}

/** The worktree of a run, and where in it the command begins. */
export interface Made {
  worktree: Worktree
  cwd: string
  /** The run whose work is there already; null in a new one. */
  earlier: string | null
  /** Where its branch and its target, merged into it, are in conflict. */
  conflicts: string[]
}

/**
 * Makes a worktree for a run, or takes the one that an earlier run of the task has left. Refuses in
 * words where that cannot be done: no repository, a bare one, no commit, no such base.
 */
export async function makeWorktree(ask: AskTrees, making: MakeAsk): Promise<Made> {
  const { task_id, fence } = making
  const repository = await repositoryAt(making.folder)
  const ready = await inRepository(
    ask,
    { host: making.host, repository: repository.common },
    async (entered) => {
      const left = making.rules.retry === 'same' ? await leftBehind(entered, making) : undefined
      const made = left ? taken(left, making) : await begin(entered, making, repository)
      if (!left) await add(made, repository)
      copyIgnored(repository.top, made.path, making.rules.copy)
      step('worktree:copied')
      const worktree: Worktree = { ...made, state: 'ready', left_at: null, kept_because: null }
      await entered.record(worktree)
      const conflicts = left && making.onto ? await mergeTarget(worktree, making.onto) : []
      return { worktree, earlier: left?.run_id ?? null, conflicts }
    },
    { task_id, fence },
  )
  return { ...ready, cwd: join(ready.worktree.path, repository.inside) }
}

/** What an earlier run of the same task left, saved first if that was not done yet. */
async function leftBehind(entered: Entered, { task_id, project, rules }: MakeAsk) {
  const mine = entered.items.filter(
    (each) => each.task_id === task_id && each.project === project && each.is_over,
  )
  const last = mine.at(-1)
  const settled = last && (await settleTree(entered, last, rules.salvage))
  const isFree = settled?.state === 'left' && existsSync(settled.path) && !whoWorks(settled.path)
  return isFree ? settled : undefined
}

const taken = (left: Worktree, { run_id, fence }: MakeAsk): Worktree => ({ ...left, run_id, fence })

/** Records what is about to be made, under names that nothing has yet. */
async function begin(entered: Entered, making: MakeAsk, repository: Repository): Promise<Worktree> {
  const { run_id, task_id, fence, project, host, rules } = making
  const base = await commitOf(repository.top, rules.base ?? 'HEAD')
  if (base === undefined) {
    throw new Refusal('invalid', `There is no branch or commit ${rules.base} to begin at`, {
      next: `Correct projects.${project}.worktrees.base in config.json.`,
    })
  }
  const whose = { task_id, run_id, fence, project, host, repository: repository.common, base }
  const none = { salvage: null, changed: [], kept_because: null, left_at: null }
  for (let id = run_id; ;) {
    const name = await freeName(rules.folder, repository.common, run_id)
    const begun_at = new Date().toISOString()
    const worktree: Worktree = { id, ...whose, ...name, ...none, state: 'making', begun_at }
    try {
      await entered.record(worktree)
    } catch (error) {
      if (!isRefusal(error, 'conflict')) throw error
      // A restored store, say, gives numbers of runs again that a worktree has already.
      id = id.replace(/\d+$/, (attempt) => String(Number(attempt) + 1))
      continue
    }
    step('worktree:begun')
    // Another store may have been faster since we looked.
    if (!claimName(worktree)) continue
    step('worktree:claimed')
    return worktree
  }
}

/** `42-1`, or `42-1-2` and so on where another store left that name in this repository. */
async function freeName(folder: string, repository: string, run_id: string) {
  const name = run_id.replace(/\.(\d+)$/, '-$1')
  for (let n = 1; ; n += 1) {
    const tried = n === 1 ? name : `${name}-${n}`
    const place = { path: join(folder, tried), repository, branch: `leasehold/${tried}` }
    const paths = [place.path, adminOf(place), removingPath(place.path), gonePath(place.path)]
    if (isClaimed(place) || paths.some((each) => existsSync(each))) continue
    if ((await commitOf(repository, branchRef(place))) === undefined) return place
  }
}

async function add(made: Worktree, { top }: Repository): Promise<void> {
  mkdirSync(dirname(made.path), { recursive: true, mode: 0o700 })
  const named = ['--no-track', '-b', made.branch, '--', made.path, made.base!]
  await git(top, ['worktree', 'add', '--quiet', '--no-checkout', ...named])
  step('worktree:added')
  // As a step of its own: what is sparse in the main checkout stays so.
  const at = { ...gitAt(made, made.path), timeout_ms: FILES_MS }
  await git(made.path, ['reset', '--quiet', '--hard'], at)
  step('worktree:filled')
}

/** What is there already stays: it may be tracked, or an agent's own by now. */
function copyIgnored(top: string, path: string, copied: string[]): void {
  for (const name of copied) {
    const from = join(top, name)
    if (!existsSync(from)) continue
    cpSync(from, join(path, name), { recursive: true, force: false, verbatimSymlinks: true })
  }
}
