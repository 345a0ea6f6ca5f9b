import { admits, type Caller, STRANGER } from './caller.ts'
import { getDuplicate } from './memory/duplicate.ts'
import { getLanding } from './landing/ask.ts'
import { taskOf } from './locks/lease.ts'
import { getConflict } from './memory/resolve.ts'
import { quoted, word } from './quote.ts'
import { Refusal, type RefusalCode } from './refusal.ts'
import { lockSeen, notesSeen, Sight, taskSeen } from './sight.ts'
import type { TokenScope } from './rows.ts'
import { getTask } from './tasks/task.ts'
import { hasProject, hasUser, isScoped, mayChange, type Scoped } from './token_scope.ts'
import type { View } from './view.ts'

/**
 * What an operation touches, so that one place can hold it to the scope of a token:
 * - `rows`: it only looks, at what its caller may see (`Sight`);
 * - `contended`: the same, and it also has to know that a stranger is in the way;
 * - `own`: only what the caller itself has, which the rules check by holder and fence;
 * - `whole`: what belongs to everybody at once, and so is not for a token with a scope;
 * - or the things that its input names.
 */
export type Touches<Input> = 'rows' | 'contended' | 'own' | 'whole' | Naming<Input>['of']

/** A method, as `decide` is one: operations are also handled without their inputs' types. */
interface Naming<Input> {
  of(input: Input): Touched[]
}

export type Touched =
  /** `changes`: the ask changes the task, or takes its lock. */
  | { task: string; changes: boolean }
  /** Where a task is about to be. */
  | { user: string | null }
  | { project: string | null }
  | { lock: string }
  /** Shared memory: notes of a scope, a conflict or a pair of them. */
  | { notes: string }
  | { conflict: string }
  | { duplicate: string }
  | { landing: string }
  /** A branch that a landing of a task takes; one that it is to move. */
  | { branch: string; of: string }
  | { target: string; of: string }
  /** An id that the caller chose for a new task. */
  | { chosen_id: string }

/**
 * Refuses an ask that touches anything outside of its caller's scope: as `not_found`, in the words
 * of what does not exist, where the thing may not be known; else as `forbidden`.
 */
export function refuseOutside(view: View, touched: Touched[], caller: Scoped): void {
  const sight = new Sight(view, caller)
  const { scope } = caller
  for (const each of touched) {
    if ('task' in each) {
      const task = getTask(sight, each.task)
      if (each.changes && !mayChange(task, caller))
        throw outside(`This token is for task ${scope.task}`)
    } else if ('user' in each) {
      if (!hasUser(scope, each.user)) throw outside(bound('user', scope.users))
    } else if ('project' in each) {
      if (!hasProject(scope, each.project)) throw outside(bound('project', scope.projects))
    } else if ('lock' in each) refuseLock(view, each.lock, caller)
    else if ('notes' in each) refuseNotes(view, each.notes, caller)
    else if ('conflict' in each) refuseNotes(view, getConflict(sight, each.conflict).scope, caller)
    else if ('duplicate' in each) {
      const { a, b } = getDuplicate(sight, each.duplicate)
      for (const id of [a, b]) refuseNotes(view, id.slice(0, id.indexOf('\n')), caller)
    } else if ('landing' in each) {
      const { task_id, project } = getLanding(sight, each.landing)
      const of: Touched = task_id === null ? { project } : { task: task_id, changes: true }
      refuseOutside(view, [of], caller)
    } else if ('branch' in each) refuseBranch(view, each, caller)
    else if ('target' in each) refuseTarget(sight, each, caller)
    else throw outside('A token that is bound cannot choose the id of a task')
  }
}

function bound(what: 'user' | 'project', names: TokenScope['users']): string {
  if (!Array.isArray(names))
    return `This token is not bound to a ${what}, and ${what}s are shut to it`
  return `This token is bound to the ${what} ${names.map(quoted).join(', ')}`
}

/**
 * A branch belongs to the task whose runs have made it, and a task that has worktrees works in
 * them. Where a run has none, it may make a branch in the project's folder, as long as no other
 * made it.
 */
function refuseBranch(view: View, { branch, of }: { branch: string; of: string }, caller: Scoped) {
  const own = [...view.scan('worktrees_of', of)]
  if (own.some((tree) => tree.branch === branch) || isWhole(view, of, caller)) return
  const others = own.length > 0 || [...view.scan('worktrees', '')].some((t) => t.branch === branch)
  if (others) throw outside(`${word(branch)} is not a branch of task ${of}`)
}

/** The target of a project is for all of its tasks to move, and no other branch. */
function refuseTarget(sight: View, { target, of }: { target: string; of: string }, caller: Scoped) {
  const rule = sight.get('landing_rule', getTask(sight, of).project ?? '')
  if (rule?.onto === target || isWhole(sight, of, caller)) return
  throw outside(`${word(target)} is not the target of task ${of}`)
}

/** Whose any other branch is, is not known: it is for those who are bound to the whole project. */
const isWhole = (view: View, of: string, { scope }: Scoped) =>
  scope.task === null && !Array.isArray(scope.users) && hasProject(scope, getTask(view, of).project)

function refuseLock(view: View, name: string, caller: Scoped): void {
  const task = taskOf(name)
  if (task !== undefined) refuseOutside(view, [{ task, changes: true }], caller)
  else if (lockSeen(view, name, caller) === false) {
    throw outside(`${name} is outside of the users and projects that this token is bound to`)
  }
}

/** A note for everybody is read by every user's agents: only a token without a scope writes it. */
function refuseNotes(view: View, notes: string, caller: Scoped): void {
  if (notes !== 'global' && notesSeen(view, notes, caller)) return
  throw outside(`This token may not write notes in the scope ${notes}`)
}

function outside(message: string): Refusal {
  return new Refusal('forbidden', message, {
    next: 'Stay within what this token is for, or ask an admin for a token that is bound to more.',
  })
}

/** `forbidden`: what the operation tells or changes belongs to everybody at once. */
export function wholeOnly(name: string): Refusal {
  return outside(`${name} is about all users and projects, and this token is bound to some`)
}

/** Refusals that may name who is in the way, and what they say when that is a stranger. */
const UNNAMED: Partial<Record<RefusalCode, string>> = {
  held: 'is held by another agent, or has to wait for a limit',
  deadlock: 'would never come free: you and others would wait for each other',
  fence_stale: 'has a newer lease than the fence that was sent',
  lease_expired: 'is not held any more: its lease has ended',
}

/** Of what a refusal tells, too, tasks that the caller may not know of are left out. */
function withoutHidden(view: View, refusal: Refusal, caller: Scoped): Refusal {
  const details = answerTo(view, refusal.details, caller)
  if (details === refusal.details) return refusal
  const isWaiting = details['waits_for'] !== refusal.details['waits_for']
  const message = isWaiting ? 'It waits for tasks of others' : refusal.message
  return new Refusal(refusal.code, message, { next: refusal.actions, details })
}

/** A refusal as its caller may read it: one that may name a stranger says the same without. */
export function toldTo(view: View, refusal: Refusal, caller: Caller): Refusal {
  const said = UNNAMED[refusal.code]
  if (!isScoped(caller)) return refusal
  if (said === undefined) return withoutHidden(view, refusal, caller)
  const { name, busy_with, path, position, by_you, expires_at, expires_in_seconds } =
    refusal.details
  const locks = [name, busy_with].filter((each) => typeof each === 'string')
  const isKnown = (lock: string) => {
    const lease = new Sight(view, caller).get('lease', lock)
    return lease ? lease.holder !== STRANGER : lockSeen(view, lock, caller) === true
  }
  if (by_you === true || (locks.length > 0 && locks.every(isKnown))) return refusal
  const what = [path, name].find((each) => typeof each === 'string') ?? 'What was asked for'
  const kept = { name, path, position, expires_at, expires_in_seconds, by_you: false }
  return new Refusal(refusal.code, `${what} ${said}`, {
    next: 'Take other work, or ask again later.',
    details: Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined)),
    ...(refusal.leaves && { leaves: refusal.leaves }),
  })
}

/**
 * What a write answers, as its caller may read it: rules decide on all rows, and an answer is made
 * of what they found. Ids of tasks and names of holders that are not the caller's to know are left
 * out. What is all the caller's own is the same object.
 */
export function answerTo<A>(view: View, answer: A, caller: Scoped): A {
  if (Array.isArray(answer)) {
    const told = answer.map((each: unknown) => answerTo(view, each, caller))
    return (told.every((each, i) => each === answer[i]) ? answer : told) as A
  }
  if (typeof answer !== 'object' || answer === null) return answer
  const shown: Record<string, unknown> = {}
  for (const [field, value] of Object.entries(answer)) {
    shown[field] = toldIn(view, field, value, answer, caller)
  }
  const isSame = Object.entries(answer).every(([field, value]) => shown[field] === value)
  return isSame ? answer : (shown as A)
}

function toldIn(view: View, field: string, value: unknown, of: object, caller: Scoped): unknown {
  if (field === 'metadata') return value
  const isTask = (id: unknown) => typeof id === 'string' && taskSeen(view, id, caller)
  if ((field === 'depends_on' || field === 'waits_for') && Array.isArray(value)) {
    return value.every(isTask) ? value : value.filter(isTask)
  }
  if (field === 'task_id') return value === null || isTask(value) ? value : null
  if (field === 'holder' && 'name' in of && typeof value === 'string') {
    if (admits(caller.agent, value) || admits(value, caller.agent)) return value
    return new Sight(view, caller, true).get('lease', String(of.name))?.holder ?? STRANGER
  }
  return answerTo(view, value, caller)
}
