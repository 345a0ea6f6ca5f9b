import { argument } from '../../../core/quote.ts'
import { Refusal } from '../../../core/refusal.ts'

/** The branch of a run's own worktree: `leasehold/42-1`. */
const OF_RUN = /^leasehold\/(.+)-\d+$/

/**
 * For a `land` that names neither a task nor a branch. What is checked out is proposed, and never
 * landed unasked: a person may have typed the word alone only to see what it does.
 */
export async function nothingToLand(cwd: string): Promise<Refusal> {
  const branch = await branchAt(cwd)
  const task = branch && OF_RUN.exec(branch)?.[1]
  const here =
    branch === undefined
      ? 'Name one: leasehold land 42, or leasehold land feature/login'
      : task
        ? `For the task of this worktree: leasehold land ${argument(task)}`
        : `For the branch that is checked out here: leasehold land ${argument(branch)}`
  const lines = [
    here,
    'What is in review: leasehold task list --status review',
    'See: leasehold land --help',
  ]
  return new Refusal('invalid', 'It is not said what to land: a task, or a branch', {
    next: lines.join('\n        '),
  })
}

async function branchAt(cwd: string): Promise<string | undefined> {
  const { tryGit } = await import('../../../machine/git.ts')
  const asked = tryGit(cwd, ['symbolic-ref', '--quiet', '--short', 'HEAD'])
  const said = await asked.catch(() => undefined)
  return said?.code === 0 ? said.out.trim() : undefined
}
