import type { Task } from '../schema/task.ts'
import { slotsUsed } from './dispatch.ts'
import { fullCounter, limitOf, POOL, unserved, whyFull } from './limit.ts'
import { headOf } from '../locks/line.ts'
import { positionOf } from './queue.ts'
import { emptyOf, resourcesFor } from './resource.ts'
import { liveDispatchers } from './status.ts'
import { word } from '../quote.ts'
import { busyWith, isBusy, maxOf, queueOf, shareOf, userLock } from './share.ts'
import type { View } from '../view.ts'

/** Why something does not run: a code for programs, a sentence for people. */
export const REASON_CODES = [
  'running',
  'ended',
  'landing',
  'dependency',
  'locked',
  'promised',
  'assigned',
  'ready',
  'paused',
  'user_busy',
  'project_limit',
  'group_limit',
  'pool_limit',
  'resource_limit',
  'order',
  'no_dispatcher',
  'unserved',
  'no_slot',
  'waiting',
  'overlap',
] as const

export interface Reason {
  code: (typeof REASON_CODES)[number]
  sentence: string
  details: Record<string, unknown>
}

/** Every reason that the queue has for not starting a task that is otherwise ready. */
export function* queueReasons(view: View, task: Task): Generator<Reason> {
  yield* pauses(view, task)
  yield* fullLimits(view, task)
  yield* order(view, task)
  yield* capacity(view, task)
}

function* pauses(view: View, task: Task): Generator<Reason> {
  if (queueOf(view).paused) {
    const sentence = 'waits because the whole queue is paused'
    yield { code: 'paused', sentence, details: { paused: 'all' } }
  }
  if (task.user !== null && shareOf(view, task.user).paused) {
    const sentence = `waits because the queue of ${word(task.user)} is paused`
    yield { code: 'paused', sentence, details: { paused: userLock(task.user) } }
  }
}

/** Limits that keep a task from being claimed, enqueued or not. */
export function* fullLimits(view: View, task: Task): Generator<Reason> {
  if (task.user !== null) {
    const lock = userLock(task.user)
    const busy = busyWith(view, lock)
    const by = busy?.replace('task:', 'task ')
    const promised = busy === undefined ? headOf(view, lock) : undefined
    const share = shareOf(view, task.user)
    if (busy === undefined && isBusy(view, share)) {
      const max = maxOf(view, share)
      const sentence = `waits because user ${word(task.user)} may have ${max} running`
      yield { code: 'user_busy', sentence, details: { user: task.user, max } }
    } else if (busy !== undefined) {
      const sentence = `waits because user ${word(task.user)} is busy with ${by}`
      yield { code: 'user_busy', sentence, details: { user: task.user, busy_with: busy } }
    } else if (promised) {
      const sentence = `waits because the lock ${word(lock)} is promised to ${word(promised.agent)}`
      yield { code: 'user_busy', sentence, details: { user: task.user, next: promised.agent } }
    }
  }
  const full = fullCounter(view, task)
  if (full === undefined) return
  const limit = limitOf(view, full)
  const { max, used, paused } = limit
  const code = paused ? 'paused' : full === POOL ? 'pool_limit' : CODES[full.split(':')[0]!]!
  const sentence = `waits because ${whyFull(limit)}`
  yield { code, sentence, details: { limit: full, max, used, paused } }
}

const CODES: Record<string, Reason['code']> = { project: 'project_limit', group: 'group_limit' }

/** Others of the same user come first: by priority, by age, or as members of a group. */
function* order(view: View, task: Task): Generator<Reason> {
  const share = shareOf(view, task.user ?? '')
  if (share.next_task === null || share.next_task === task.id) return
  const position = positionOf(view, task)
  const next = share.next_task
  const of = view.isPartial ? {} : { of: share.pending }
  const sentence = `is number ${position} in its queue, and task ${next} comes before it`
  yield { code: 'order', sentence, details: { position, next_task: next, ...of } }
}

/** What a task that is added now would wait for, though nobody brings it. */
export function forgotten(view: View, task: Task): string[] {
  const codes = new Set<Reason['code']>(['no_dispatcher', 'unserved'])
  return [...capacity(view, task)]
    .filter(({ code }) => codes.has(code))
    .map(({ sentence }) => `Task ${task.id} ${sentence}`)
}

function* capacity(view: View, task: Task): Generator<Reason> {
  const dispatchers = liveDispatchers(view)
  if (dispatchers.length === 0) {
    const sentence = 'waits for a dispatcher, and none is running'
    yield { code: 'no_dispatcher', sentence, details: {} }
    return
  }
  const project = task.project ?? ''
  const serving = dispatchers.filter(({ projects }) => projects.includes(project))
  if (serving.length === 0) {
    const sentence = `waits because no dispatcher serves project ${word(project)}`
    yield { code: 'unserved', sentence, details: { project, limit: unserved(project) } }
    return
  }
  const lacking = serving.map(({ host }) => emptyOf(resourcesFor(view, host, task)))
  if (lacking.every((each) => each !== undefined)) {
    const limit = limitOf(view, lacking[0]!.key)
    const { key, max, used } = limit
    const sentence = `waits because ${whyFull(limit)}`
    yield { code: 'resource_limit', sentence, details: { limit: key, max, used } }
  }
  const free = serving.find(({ id, slots_max }) => slotsUsed(view, id) < slots_max)
  if (free) return
  const slots = serving.reduce((sum, { slots_max }) => sum + slots_max, 0)
  const sentence = `waits for a free slot: all ${slots} are in use`
  yield { code: 'no_slot', sentence, details: { slots } }
}
