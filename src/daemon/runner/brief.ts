import { quoted } from '../../core/quote.ts'
import type { Made } from '../worktrees/make.ts'
import type { RunSpec } from './spec.ts'

/**
 * What an agent reads behind its prompt, because it can ask nobody: what it has already, where it
 * works, and what becomes of its work.
 */
export function runBrief(spec: RunSpec, made: Made | undefined): string {
  const { task_id, run_id } = spec
  const lines = [
    `Leasehold has started you on task ${task_id} (run ${run_id}). It is yours already: claim no ` +
      'other task. Nobody is there to answer a question.',
    ...(made ? placeLines(spec, made) : []),
    'When you are done, end with a summary of what you did. If the task cannot be done: ' +
      `leasehold task status ${task_id} failed (or the tool update_task_status).`,
  ]
  return `\n\n---\n${lines.join('\n')}\n`
}

function placeLines(
  { worktree: asked, check, commits }: RunSpec,
  { worktree, earlier, conflicts }: Made,
): string[] {
  const { branch } = worktree
  const onto = asked?.onto ?? null
  const lands = onto === null ? '' : ` Then it is landed onto ${onto}.`
  const proved =
    check === null ? '' : ` It has to pass first: ${check.map((each) => quoted(each)).join(' ')}.`
  const left = commits
    ? ' What you leave uncommitted is committed for you, with your summary as its message.'
    : ' What you leave uncommitted is not landed.'
  return [
    `You are in a git worktree of your own, on the branch ${branch}: stay on it, and commit your ` +
      `work (git add FILE…, then git commit).${left}${proved}${lands}`,
    ...(earlier
      ? [
          `An earlier run of this task (${earlier}) has worked here: see git status and git log ` +
            'before you go on.',
        ]
      : []),
    ...(conflicts.length > 0
      ? [
          `${onto} was merged into your branch, and is in conflict with it in ` +
            `${conflicts.map((each) => quoted(each)).join(', ')}: settle that first.`,
        ]
      : []),
  ]
}
