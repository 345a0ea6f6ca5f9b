import { nounOf } from '../../core/event.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import type { ShownEvent } from './live.ts'

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
