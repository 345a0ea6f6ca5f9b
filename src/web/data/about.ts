import { nounOf } from '../../core/event.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask } from '../ask.ts'
import type { ShownEvent } from './live.ts'
import { tasks } from './tasks.ts'

export type WholeTask = AnswerOf<'task.get'>
export type QueueAnswer = AnswerOf<'queue.status'>
export type StatsAnswer = AnswerOf<'stats.get'>
export type TaskRun = AnswerOf<'run.list'>['items'][number]

/** Which events make what a view has asked for out of date. */

const MEMORY = new Set<string>(['memory', 'duplicate'])
export const aboutMemory = (event: ShownEvent) => MEMORY.has(nounOf(event))

const QUEUE = new Set<string>(['task', 'run', 'queue', 'dispatcher', 'lease'])
export const aboutQueue = (event: ShownEvent) => QUEUE.has(nounOf(event))

const BRANCHES = new Set<string>(['landing', 'worktree', 'run'])
export const aboutBranches = (event: ShownEvent) => BRANCHES.has(nounOf(event))

export const aboutTask = (id: string) => (event: ShownEvent) =>
  event.task === id || event.lock === `task:${id}`

/** Projects to choose from: those that are served, have a limit, or have a task. */
export async function projectsKnown(): Promise<string[]> {
  const { dispatchers, limits } = await ask('queue.status')
  const named = [
    ...dispatchers.flatMap(({ projects }) => projects),
    ...limits.flatMap(({ project }) => project ?? []),
    ...[...tasks.values()].flatMap(({ project }) => project ?? []),
  ]
  return [...new Set(named)].toSorted()
}
