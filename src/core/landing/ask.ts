import type { Landing } from '../schema/landing.ts'
import type { Task } from '../schema/task.ts'
import { ROLE_TTL_MS } from '../bounds.ts'
import type { Caller } from '../caller.ts'
import { liveLease } from '../locks/standing.ts'
import { missing, Refusal } from '../refusal.ts'
import type { View } from '../view.ts'
import { rankOfLanding } from './rows.ts'
import { ruleFor } from './rule.ts'

export interface AskToLand {
  project: string
  task?: Task | undefined
  target: string | null
  branch?: string | undefined
  commit?: string | undefined
  priority?: number | undefined
}

/** The landing of a task that is not over. */
export function openLandingOf(view: View, task_id: string): Landing | undefined {
  const [newest] = view.scan('landings_of', task_id)
  return newest?.ended_at === null ? newest : undefined
}

/**
 * Refuses with `illegal_move` what would take a task out of review while its target is being moved:
 * it may be landed already, and only git can tell.
 */
export function refuseLastStep(view: View, task: Task): void {
  const landing = openLandingOf(view, task.id)
  if (!landing?.candidate || !ruleFor(view, task.project)) return
  const { id, target } = landing
  throw new Refusal(
    'illegal_move',
    `Task ${task.id} is at the last step of landing onto ${target}`,
    {
      next: {
        says: 'It is done in a moment, or waits again',
        operation: 'land.get',
        input: { id },
      },
      details: { task_id: task.id, landing: id, target },
    },
  )
}

/** Why a task that failed came back from landing, unless a later run of it ended otherwise. */
export function returnedLast(view: View, task: Task): Landing | undefined {
  const [newest] = view.scan('landings_of', task.id)
  const run = view.get('run', `${task.id}.${task.attempts}`)
  if (newest?.status !== 'returned') return undefined
  return newest.ended_at! >= (run?.ended_at ?? '') ? newest : undefined
}

/** Puts a branch in line for its target. A task that is in line already keeps its place. */
export function addLanding(view: View, ask: AskToLand, caller: Caller): Landing {
  const { project, task, target } = ask
  const open = task && openLandingOf(view, task.id)
  if (open) return open
  const seq = view.nextFence()
  const priority = ask.priority ?? task?.priority ?? 5
  const landing: Landing = {
    id: `L${seq}`,
    seq,
    project,
    target,
    branch: ask.branch ?? null,
    commit: ask.commit ?? null,
    task_id: task?.id ?? null,
    priority,
    rank: rankOfLanding(view.now, priority, seq),
    status: 'waiting',
    fence: null,
    base: null,
    candidate: null,
    reason: null,
    paths: [],
    output: null,
    asked_by: caller.agent,
    asked_at: view.at,
    ended_at: null,
  }
  view.put('landing', landing)
  const data = { landing: landing.id, target, branch: landing.branch }
  view.record('landing.asked', { agent: caller.agent, task: landing.task_id }, data)
  return landing
}

/**
 * Somebody says that `task` is done, and that has to be proved: it is checked and landed. Where
 * landing waits for a person, saying so of a task in review is that person's word.
 */
export function askForProof(view: View, task: Task, caller: Caller, isAccepted: boolean): void {
  const rule = ruleFor(view, task.project)!
  if (rule.onto !== null && !rule.auto && !isAccepted) return
  addLanding(view, { project: rule.project, task, target: rule.onto }, caller)
}

/** What a person or an agent reads who asked for a landing. */
export function addedNote(view: View, landing: Landing): string {
  const { id, target, task_id, branch } = landing
  const [what, back] =
    task_id === null ? [`Branch ${branch}`, 'it'] : [`Task ${task_id}`, 'its task']
  const now = target === null ? 'being checked' : `in line for ${target}`
  const waits = hasLander(view) ? '' : ` It waits: ${NO_LANDER}.`
  const fails = `If that fails, ${back} comes back with the reason.`
  return `${what} is ${now} (landing ${id}). ${fails}${waits}`
}

const NO_LANDER = 'no server is running that could land it (leasehold up)'

/** The lock of a lander, on any host. */
export const LANDER_LOCK = 'leasehold:lander:'

/** Its lock is among those that end soonest: few others are looked at. */
function hasLander(view: View): boolean {
  if (view.isPartial) return true
  for (const { name } of view.due('leases_by_expiry', '', view.now + ROLE_TTL_MS)) {
    if (name.startsWith(LANDER_LOCK) && liveLease(view, name)) return true
  }
  return false
}

/** What an agent reads that said "done" of a task whose end has to be proved. */
export function proofNote(view: View, task: Task): string {
  const landing = openLandingOf(view, task.id)
  if (!landing) {
    const onto = ruleFor(view, task.project)?.onto
    const what = `Task ${task.id} is in review: its work is not on ${onto} yet.`
    return `${what} To land it: leasehold land ${task.id} (tool: land_task)`
  }
  const { target, id } = landing
  const what = target === null ? 'being checked' : `being landed onto ${target}`
  const when = task.lock_fence === null ? '' : ' as soon as its command has ended'
  const fails = target === null ? '' : 'conflicts, '
  return (
    `Task ${task.id} is in review: it is ${what}${when} (landing ${id}). It becomes done when ` +
    'that succeeds. You get it back, with the reason, if it has nothing committed, leaves ' +
    `changes uncommitted, ${fails}or its check fails.`
  )
}

/** The landing, or `not_found`. */
export const getLanding = (view: View, id: string): Landing =>
  view.get('landing', id) ?? missing(`landing ${id}`, 'land.list', { landing_id: id })

/** A landing as doors show it, with its place in the line for its target. */
export function showLanding(view: View, landing: Landing) {
  const { rank: _rank, seq: _seq, ...shown } = landing
  if (landing.status !== 'waiting') return { ...shown, position: null }
  const reason = landing.reason ?? (hasLander(view) ? null : NO_LANDER)
  return { ...shown, reason, position: placeOf(view, landing) }
}

function placeOf(view: View, { id, project, target }: Landing): number {
  let place = 1
  for (const other of view.scan('landings_open', project)) {
    if (other.id === id) break
    if (other.target === target) place += 1
  }
  return place
}
