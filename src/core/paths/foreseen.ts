import type { Task } from '../schema/task.ts'
import { attempt } from '../attempt.ts'
import { subagents } from '../caller.ts'
import { liveLease } from '../locks/standing.ts'
import { firstOf } from '../first.ts'
import type { Status } from '../rows.ts'
import type { View } from '../view.ts'
import { literalGlob, overlaps, parseGlob, type Steps } from './glob.ts'
import { isPattern } from './glob_syntax.ts'

/**
 * Conflicts, foreseen: two tasks of a project that change the same files will have to be merged.
 * What a task changes is known from what it was said to touch, from what its agent has reserved,
 * and from what the worktree of its run has changed so far.
 */

/** Another task that changes the same, and what. */
export interface Overlap {
  task_id: string
  status: Status
  paths: string[]
}

/** Work that is on its way: it runs, or has not been landed yet. */
const OPEN: Status[] = ['in_progress', 'review']

/** Nobody else is answered meanwhile: what is not found within these bounds is not told. */
const OTHERS_MAX = 200
const STEPS_MAX = 200_000
const PATHS_MAX = 5
const TOLD_MAX = 3

/** Tasks on their way that change what `task` changes too. */
export function overlapsOf(view: View, task: Task): Overlap[] {
  const steps = { left: STEPS_MAX }
  const own = changesOf(view, task)
  return others(view, task.project).flatMap((other) => {
    if (other.id === task.id) return []
    const paths = common(own, changesOf(view, other), steps)
    return paths.length === 0 ? [] : [{ task_id: other.id, status: other.status, paths }]
  })
}

/** The overlaps that `explain` tells of. */
export function foreseen(view: View, id: string): Overlap[] {
  const task = view.get('task', id)
  if (!task || !(task.status === 'todo' || OPEN.includes(task.status))) return []
  return overlapsOf(view, task).slice(0, TOLD_MAX)
}

function others(view: View, project: string | null): Task[] {
  return OPEN.flatMap((status) => {
    const looked = [...firstOf(view.scan('tasks_with_status', status), OTHERS_MAX)]
    return looked.filter((task) => task.project === project)
  })
}

/** Most are files, which are compared by name; globs are compared one by one. */
interface Changes {
  files: Set<string>
  globs: Set<string>
}

function changesOf(view: View, task: Task): Changes {
  const changes: Changes = { files: new Set(), globs: new Set() }
  for (const glob of [...task.touches, ...reservedBy(view, task)]) {
    const isFile = !isPattern(glob) && !glob.includes('\\')
    changes[isFile ? 'files' : 'globs'].add(glob)
  }
  // One that goes on in the worktree of an earlier run has changed what that one changed.
  for (const path of [...view.scan('worktrees_of', task.id)].at(-1)?.changed ?? []) {
    if (path.endsWith('/')) changes.globs.add(literalGlob(path))
    else changes.files.add(path)
  }
  return changes
}

/** Globs that the agent of a running task has reserved, or one nested under it. */
function* reservedBy(view: View, { status, assignee }: Task): Generator<string> {
  if (status !== 'in_progress' || assignee === null) return
  for (const agent of subagents(view, assignee)) {
    for (const { name, path } of view.scan('leases_held_by', agent)) {
      if (path && liveLease(view, name)) yield path.glob
    }
  }
}

/** The first paths that both change; of two globs, the narrower one as far as that can be told. */
function common(a: Changes, b: Changes, steps: Steps): string[] {
  const found = new Set<string>()
  for (const path of shared(a, b, steps)) {
    found.add(path)
    if (found.size === PATHS_MAX) break
  }
  return [...found]
}

function* shared(a: Changes, b: Changes, steps: Steps): Generator<string> {
  for (const file of a.files) if (b.files.has(file)) yield file
  for (const [{ files }, { globs }] of [
    [a, b],
    [b, a],
  ] as const) {
    for (const glob of globs) {
      for (const file of files) if (meet(glob, literalGlob(file), steps)) yield file
    }
  }
  for (const one of a.globs) {
    for (const other of b.globs) {
      if (meet(one, other, steps)) yield one.length > other.length ? one : other
    }
  }
}

/** What cannot be compared, or not within the bounds, is taken for apart. */
const meet = (one: string, other: string, steps: Steps): boolean =>
  steps.left > 0 && attempt(() => overlaps(parseGlob(one), parseGlob(other), steps), false)
