import type { Landing } from '../schema/landing.ts'
import type { Worktree } from '../schema/worktree.ts'
import type { Task } from '../schema/task.ts'
import type { Caller } from '../caller.ts'
import { lockOf } from '../locks/lease.ts'
import { isFree, liveLease } from '../locks/standing.ts'
import { shortLine } from '../quote.ts'
import { failOnce, statusAfter } from '../queue/dispatch.ts'
import { nameOfHost } from '../queue/rows.ts'
import { setStatus } from '../tasks/move.ts'
import { putTask } from '../tasks/ready.ts'
import type { View } from '../view.ts'
import { getLanding } from './ask.ts'

/**
 * What a lander does with landings. Each of these is decided in a transaction that begins with a
 * look at the lander's own fence: one that was succeeded changes nothing here.
 */

const REASON_MAX = 500

export interface Turn {
  project: string
  /** Each target has a line of its own; null: what is only checked. */
  target: string | null
  /** Of the lander: only there are the files of a worktree. */
  host: string
  fence: number
  max: number
}

/** One of the lines of a project, as a lander sees it. */
export type TargetLine = Omit<Turn, 'max'>

/** The lines of a project in which something is to do, each by the target that it leads to. */
export const targetsOf = (view: View, project: string): (string | null)[] => [
  ...new Set([...view.scan('landings_open', project)].map(({ target }) => target)),
]

const lineOf = (view: View, { project, target }: TargetLine): Landing[] =>
  [...view.scan('landings_open', project)].filter((each) => each.target === target)

/**
 * Those of a line that were taken before, by a former lander or by this one until something broke
 * off: they may or may not be landed. What a lander of another host has in hand, or had, is for
 * that host to settle: its repository has the answer.
 */
export const takenBefore = (view: View, line: TargetLine): Landing[] =>
  lineOf(view, line).filter(
    (each) =>
      each.status === 'landing' &&
      elsewhere(view, each, line.host) === undefined &&
      (each.fence === line.fence || !isInHand(view, each)),
  )

/** Whether the lander that has taken it is at work still. */
function isInHand(view: View, { fence }: Landing): boolean {
  for (const lease of view.scan('leases_by_expiry', '')) {
    if (lease.fence === fence) return liveLease(view, lease.name) !== undefined
  }
  return false
}

/** The last worktree of a landing's task: what is landed, unless a branch was named. */
export const worktreeOf = (view: View, { task_id }: Landing): Worktree | undefined =>
  task_id === null ? undefined : [...view.scan('worktrees_of', task_id)].at(-1)

/** Whether the last run of a landing's task was a dispatcher's, and not an agent's own. */
export function wasDispatched(view: View, { task_id }: Landing): boolean {
  const task = task_id === null ? undefined : view.get('task', task_id)
  return Boolean(task && view.get('run', `${task.id}.${task.attempts}`)?.dispatcher)
}

/** The host that has the worktree of a landing, where that is another one. */
function elsewhere(view: View, landing: Landing, host: string): string | undefined {
  const worktree = landing.branch === null ? worktreeOf(view, landing) : undefined
  return worktree?.host === host ? undefined : worktree?.host
}

/** A landing as one lander has it: the one that is asked for, if that is so still. */
export type Taken = Pick<Landing, 'id' | 'fence'>

function stillTaken(view: View, { id, fence }: Taken): Landing | undefined {
  const landing = getLanding(view, id)
  return landing.status === 'landing' && landing.fence === fence ? landing : undefined
}

/** Gives a landing back to the line, in its old place; `reason`: why it waits, beside its turn. */
export function putBack(view: View, taken: Taken, reason: string | null = null): void {
  const landing = stillTaken(view, taken)
  if (!landing) return
  const again = { status: 'waiting', fence: null, base: null, candidate: null } as const
  view.put('landing', { ...landing, ...again, reason: reason && shortLine(reason, REASON_MAX) })
}

/**
 * Something keeps a lander from going on: who waits can read what. A landing whose target may
 * have been moved already stays as it is, until git has been asked.
 */
export function holdUp(view: View, line: TargetLine, why: string): void {
  const own = lineOf(view, line).filter(({ fence }) => fence === line.fence)
  for (const each of own) if (each.candidate === null) putBack(view, each)
  tellLine(view, line, why)
}

/** The first of a line says what it waits for: its turn, or a step of its landing. */
export function tellLine(view: View, line: TargetLine, why: string): void {
  const isHere = (each: Landing) => elsewhere(view, each, line.host) === undefined
  const first = lineOf(view, line).find(isHere)
  if (first) tell(view, first, why)
}

/** The same for all lines of a project that has no lander at all. */
export function holdUpAll(view: View, project: string, why: string): void {
  for (const each of [...view.scan('landings_open', project)]) tell(view, each, why)
}

function tell(view: View, landing: Landing, why: string): void {
  const reason = shortLine(why, REASON_MAX)
  if (landing.reason !== reason) view.put('landing', { ...landing, reason })
}

/**
 * Takes the first landings of a line, in order. What is not in review
 * any more is not landed; a task whose command still runs waits for its end, and one whose worktree
 * is on another host for the lander there.
 */
export function takeLandings(view: View, turn: Turn, caller: Caller): Landing[] {
  const taken: Landing[] = []
  for (const landing of lineOf(view, turn)) {
    if (taken.length === turn.max) break
    if (landing.status !== 'waiting' || isWithdrawn(view, landing, caller)) continue
    if (landing.task_id !== null && !isFree(view, lockOf(landing.task_id))) continue
    const other = elsewhere(view, landing, turn.host)
    if (other !== undefined) {
      tell(
        view,
        landing,
        `waits for the lander of host ${nameOfHost(other)}, which has its worktree`,
      )
      continue
    }
    const now = { ...landing, status: 'landing' as const, fence: turn.fence, reason: null }
    view.put('landing', now)
    taken.push(now)
    // What is only checked has a tree of its own: there is nothing to put on top of each other.
    if (turn.target === null) break
  }
  return taken
}

function isWithdrawn(view: View, landing: Landing, caller: Caller): boolean {
  if (landing.task_id === null) return false
  const task = view.get('task', landing.task_id)
  if (task?.status === 'review') return false
  endLanding(
    view,
    landing,
    'cancelled',
    { reason: `its task is ${task?.status ?? 'gone'}` },
    caller,
  )
  return true
}

export interface LandingEnd {
  reason?: string
  paths?: string[]
  output?: string | null
  commit?: string | null
}

function endLanding(
  view: View,
  landing: Landing,
  status: 'landed' | 'returned' | 'cancelled',
  end: LandingEnd,
  caller: Caller,
): Landing {
  const { reason = null, paths = [], output = null, commit = landing.commit } = end
  const ended: Landing = {
    ...landing,
    ...{ status, reason, paths, output, commit },
    ended_at: view.at,
  }
  view.put('landing', ended)
  const about = { agent: caller.agent, task: landing.task_id }
  const said = { landing: landing.id, reason: reason ?? '' }
  const { target } = landing
  const fence = landing.fence ?? 0
  if (status === 'landed') {
    const data = { landing: landing.id, target, commit: commit ?? '', fence }
    view.record('landing.landed', about, data)
  } else if (status === 'returned') {
    view.record('landing.returned', about, { ...said, paths })
  } else view.record('landing.cancelled', about, said)
  return ended
}

export interface Proposed extends Taken {
  commit: string
  base: string | null
  candidate: string
}

/**
 * Writes down what the target is about to become, before it does: a successor can tell then whether
 * it did. Returns those that are not wanted any more; if there are any, nothing is to be moved.
 */
export function proposeLandings(view: View, proposed: Proposed[], caller: Caller): string[] {
  const gone = proposed.filter((each) => {
    const landing = stillTaken(view, each)
    return !landing || isWithdrawn(view, landing, caller)
  })
  if (gone.length > 0) return gone.map(({ id }) => id)
  for (const said of proposed) view.put('landing', { ...getLanding(view, said.id), ...said })
  return []
}

/** The target has it now: its task is done, and says by which commit. */
export function markLanded(view: View, taken: Taken, commit: string, caller: Caller): void {
  const landing = stillTaken(view, taken)
  if (!landing) return
  endLanding(view, landing, 'landed', { commit }, caller)
  const task = landing.task_id === null ? undefined : view.get('task', landing.task_id)
  // Somebody may have put it back while the target was moved; what has been landed is done.
  const isWaiting = task?.status === 'todo' && task.lock_fence === null
  if (!task || !(task.status === 'review' || isWaiting)) return
  const { returned: _, ...metadata } = task.metadata
  const proof = { commit, landing: landing.id, onto: landing.target }
  const proved = putTask(view, task, { ...task, metadata: { ...metadata, proof } })
  setStatus(view, proved, 'done', caller, undefined, true)
}

/**
 * It cannot be landed: nothing has changed in git, and its task comes back with the reason. An
 * enqueued one is tried again while its retries last.
 */
export function returnLanding(view: View, taken: Taken, end: LandingEnd, caller: Caller): void {
  const landing = stillTaken(view, taken)
  if (!landing) return
  const reason = shortLine(end.reason ?? '', REASON_MAX)
  endLanding(view, landing, 'returned', { ...end, reason }, caller)
  const task = landing.task_id === null ? undefined : view.get('task', landing.task_id)
  if (task?.status !== 'review') return
  const returned = `${reason} (landing ${landing.id})`
  const told = putTask(view, task, { ...task, metadata: { ...task.metadata, returned } })
  setStatus(view, task.queue ? failOnce(view, told) : told, backTo(task), caller)
}

const backTo = (task: Task) => (task.queue ? statusAfter(task, false) : 'todo')

/** What the next one who works on a task is told of the last who did. */
export function returnedNote({ metadata }: Task): string {
  const { returned } = metadata
  if (typeof returned !== 'string') return ''
  return `\n\nWhat was done before came back, and nothing of it is landed yet: ${returned}\n`
}
