import type { Landing, LandingRule } from '../schema/landing.ts'
import type { Task } from '../schema/task.ts'
import { admits, type Caller } from '../caller.ts'
import { word } from '../quote.ts'
import { Refusal } from '../refusal.ts'
import { moveTask } from '../tasks/move.ts'
import { getTask } from '../tasks/task.ts'
import type { View } from '../view.ts'
import { addLanding, getLanding } from './ask.ts'
import { ruleFor } from './rule.ts'

export interface Land {
  /** A task, or a branch. */
  id: string
  project?: string | undefined
  onto?: string | undefined
  branch?: string | undefined
  commit?: string | undefined
  priority?: number | undefined
  fence?: number | undefined
}

/**
 * Puts a task's branch, or any branch, in line for its target. A task in progress goes to review
 * by this, so its holder says it. Refuses what has no way to be landed.
 */
export function land(view: View, ask: Land, caller: Caller): Landing {
  const found = view.get('task', ask.id)
  const branch = ask.branch ?? (found ? undefined : ask.id)
  const rule = ruleOf(view, found?.project ?? ask.project, ask.id, found !== undefined)
  if (found && found.status === 'in_progress') {
    const { id, fence } = ask
    moveTask(view, { id, to: 'review', fence, ttl_ms: 0, process: null }, caller)
  }
  const task = found && getTask(view, found.id)
  if (task && task.status !== 'review') throw notInReview(task)
  const { commit, priority, onto = rule.onto } = ask
  const { project } = rule
  return addLanding(view, { project, task, target: onto, branch, commit, priority }, caller)
}

function ruleOf(
  view: View,
  project: string | undefined | null,
  id: string,
  isTask: boolean,
): LandingRule {
  const rules = project ? [ruleFor(view, project)] : [...view.scan('landing_rules', '')]
  const [rule] = rules
  if (rule && rules.length === 1) return rule
  const message = project
    ? `Project ${word(project)} has no "land" in config.json`
    : isTask
      ? `Task ${word(id)} has no project, so nothing says how it is landed`
      : `${word(id)} is no task, and it is not clear which project it is a branch of`
  const next = project
    ? 'Say in config.json how it is landed: see docs/landing.md'
    : isTask
      ? {
          says: 'Give it one',
          operation: 'task.update',
          input: { id, version: 'N', project: 'NAME' },
        }
      : { says: 'Name its project', operation: 'land.add', input: { id, project: 'NAME' } }
  throw new Refusal('invalid', message, { next, details: { project: project ?? null } })
}

function notInReview({ id, status }: Task): Refusal {
  return new Refusal('illegal_move', `Task ${id} is ${status}: only what is in review is landed`, {
    next: {
      says: 'Land its branch itself',
      operation: 'land.add',
      input: { id: 'BRANCH', project: 'NAME' },
    },
    details: { task_id: id, status },
  })
}

/** Takes a landing out of the line. Its task stays in review. */
export function cancelLanding(view: View, id: string, caller: Caller): Landing {
  const landing = getLanding(view, id)
  if (landing.task_id === null && !caller.admin && !admits(caller.agent, landing.asked_by)) {
    throw new Refusal('forbidden', `Landing ${id} was asked for by ${word(landing.asked_by)}`, {
      next: 'Ask that agent to cancel it, or an admin.',
      details: { landing_id: id },
    })
  }
  if (landing.status !== 'waiting') {
    throw new Refusal('illegal_move', `Landing ${id} is ${landing.status}, and not waiting`, {
      next: { says: 'See it', operation: 'land.get', input: { id } },
      details: { landing_id: id, status: landing.status },
    })
  }
  const reason = 'taken out of the line'
  const cancelled: Landing = { ...landing, status: 'cancelled', reason, ended_at: view.at }
  view.put('landing', cancelled)
  const { task_id: task } = landing
  view.record('landing.cancelled', { agent: caller.agent, task }, { landing: id, reason })
  return cancelled
}
