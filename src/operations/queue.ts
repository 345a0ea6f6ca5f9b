import type { Task } from '../core/schema/task.ts'
import { oneLine } from '../core/quote.ts'
import { enqueueTask, positionOf } from '../core/queue/queue.ts'
import { forgotten } from '../core/reasons/explain.ts'
import { wholeStatus } from '../core/queue/status.ts'
import { Refusal } from '../core/refusal.ts'
import { cancelTask, cleanUp, releaseUser, retryTask } from '../core/queue/cancel.ts'
import { boundOf, pauseQueue, setLimit, type SetLimit } from '../core/queue/settings.ts'
import { maxOf, shareOf } from '../core/queue/share.ts'
import { briefTask, getTask, showTask } from '../core/tasks/task.ts'
import type { View } from '../core/view.ts'
import type { AnswerAs } from './answers/shape.ts'
import * as answers from './answers/tasks.ts'
import * as f from './fields.ts'
import {
  adminOperation,
  field,
  onDatabase,
  type OperationName,
  readOperation,
  toMs,
  writeOperation,
} from './operation.ts'
import { pageIn } from './page.ts'
import { chosen, newQueued, placeOfTask } from './task_fields.ts'
import * as s from './schemas.ts'

const TITLE_MAX = 200

/** A prompt's first line that says anything, for lists of tasks. */
function titleOf(prompt: string): string {
  // Only the beginning is looked at: a prompt may be megabytes, and others wait for this write.
  const begin = prompt.search(/[^\s\p{Cc}]/u)
  if (begin === -1) return '(no text)'
  const [line = ''] = prompt.slice(begin, begin + 4 * TITLE_MAX).split(/[\r\n]/, 1)
  const plain = oneLine(line).trim()
  if (plain.length <= TITLE_MAX) return plain
  // Half of a character is no text.
  return `${plain.slice(0, TITLE_MAX - 1).replace(/[\ud800-\udbff]$/, '')}…`
}

/** A task with its place in the queue of its user; null when it does not wait there. */
function showPlaced(view: View, task: Task) {
  return { task: showTask(view, task), position: positionOf(view, task) || null }
}

type ShownTask = AnswerAs<typeof answers.task>

/** A prompt may be megabytes, and is in the task already: replies are remembered without it. */
const named = ({ id }: ShownTask) => ({ id }) as ShownTask
const again = (view: View, { id }: ShownTask) => showTask(view, getTask(view, id))

export const add = onDatabase.write({
  name: 'queue.add',
  touches: ({ id, ...said }) => [...chosen(id), ...placeOfTask(said)],
  refuses: ['conflict', 'not_found', 'too_large', 'forbidden', 'invalid'],
  doc: "Add a task to a user's queue: a dispatcher starts the project's agent on it in turn.",
  tool: 'enqueue_task',
  input: { ...newQueued },
  output: answers.enqueued,
  command: 'queue add prompt',
  spends: () => ({ tasks_waiting: 1 }),
  decide: (view, { prompt, title, ...input }, caller) => {
    const { agent_command, time_limit_seconds, retries, ...said } = input
    const queue = {
      agent_command: agent_command ?? null,
      time_limit_ms: time_limit_seconds === undefined ? null : time_limit_seconds * 1000,
      retries,
      failed: 0,
      lost: 0,
    }
    const fields = { ...said, title: title ?? titleOf(prompt), body: prompt, assigned_to: null }
    const { task, position } = enqueueTask(view, { ...fields, queue }, caller)
    return { task: showTask(view, task), position, warnings: forgotten(view, task) }
  },
  keeps: ({ task, position }) => ({ task: named(task), position, warnings: [] }),
  replay: (view, { task, position }) => ({
    ...{ task: again(view, task), position },
    warnings: forgotten(view, getTask(view, task.id)),
  }),
})

export const status = readOperation({
  name: 'queue.status',
  touches: 'whole',
  doc: 'What waits, what runs, which slots are free, and who is busy with what.',
  tool: 'queue_status',
  input: {},
  output: answers.queueStatus,
  command: 'queue status',
  decide: wholeStatus,
})

export const list = readOperation({
  name: 'queue.list',
  refuses: ['invalid'],
  doc: 'Enqueued tasks that wait, without their prompts; for one user, in the order they start.',
  input: { user: f.filterUser, project: f.filterProject, ...f.page },
  output: answers.queuedTasks,
  command: 'queue list',
  decide: (view, { user, project, ...page }) => {
    const show = (task: Task) => {
      if (!task.queue || (project !== undefined && task.project !== project)) return null
      return { ...briefTask(view, task), metadata: task.metadata }
    }
    return user === undefined
      ? pageIn(view, ['tasks_with_status', 'todo'], page, show)
      : pageIn(view, ['queue_of', user], page, show)
  },
})

export const cancel = writeOperation({
  name: 'queue.cancel',
  touches: ({ id }) => [{ task: id, changes: true }],
  refuses: ['not_found', 'forbidden', 'held', 'fence_stale', 'lease_expired', 'illegal_move'],
  doc: 'Cancel a task, waiting or running: its command is stopped, then its lock is free.',
  tool: 'cancel_task',
  input: { id: f.taskId, fence: f.fence },
  output: answers.task,
  command: 'queue cancel id',
  decide: (view, { id, fence }, caller) => showTask(view, cancelTask(view, { id, fence }, caller)),
  keeps: named,
  replay: again,
})

export const retry = writeOperation({
  name: 'queue.retry',
  touches: ({ id }) => [{ task: id, changes: true }],
  refuses: ['not_found', 'illegal_move'],
  doc: 'Put a task that failed or was cancelled back into its queue.',
  input: { id: f.taskId },
  output: answers.retried,
  command: 'queue retry id',
  decide: (view, { id }, caller) => showPlaced(view, retryTask(view, id, caller)),
  keeps: ({ task, position }) => ({ task: named(task), position }),
  replay: (view, { task, position }) => ({ task: again(view, task), position }),
})

const pausing = <const N extends OperationName>(name: N, paused: boolean, doc: string) =>
  onDatabase.admin({
    name,
    refuses: ['invalid'],
    doc,
    input: {
      project: field(s.someName, 'Only this project.'),
      user: field(s.someName, 'Only this user.'),
    },
    output: answers.paused,
    command: name.replace('.', ' '),
    decide: (view, { project, user }, caller) => {
      pauseQueue(view, { paused, project, user }, caller)
      return { paused, project: project ?? null, user: user ?? null }
    },
  })

export const pause = pausing(
  'queue.pause',
  true,
  'Stop starting tasks: of a project, of a user, or all. Running tasks go on.',
)
export const resume = pausing(
  'queue.resume',
  false,
  'Start tasks again: of a project, of a user, or all.',
)

export const limit = onDatabase.admin({
  name: 'queue.limit',
  refuses: ['invalid'],
  doc: 'Set a limit or a weight, until a config.json that names it is read. No name: the pool.',
  input: {
    project: field(s.someName, 'Set the limit of this project.'),
    group: field(s.someName, 'Set the limit of this group.'),
    user: field(s.someName, 'Set the limit or weight of this user.'),
    max: field(
      () => s.optional(s.nullable(s.whole(0, 1_000_000))),
      'How many may run at once; null removes the limit.',
      '--max <n|null>',
    ),
    weight: field(
      () => s.optional(s.numberIn(0.001, 1000)),
      "A user's share compared with other users (default 1).",
    ),
  },
  output: answers.limited,
  command: 'queue limit',
  decide: (view, ask, caller) => {
    refuseUnclear(ask)
    setLimit(view, ask, caller)
    return showLimit(view, ask)
  },
})

/** One limit at a time, and something to set. */
function refuseUnclear({ project, group, user, max, weight }: SetLimit): void {
  const of = Object.entries({ project, group, user }).filter(([, name]) => name !== undefined)
  const what =
    of.length > 1
      ? `Set one limit at a time, not those of ${of.map(([each]) => each).join(' and ')}`
      : weight !== undefined && user === undefined
        ? 'A weight belongs to a user, and none is named'
        : max === undefined && weight === undefined
          ? 'There is nothing to set: max and weight are both left out'
          : undefined
  if (what === undefined) return
  throw new Refusal('invalid', what, {
    next: { says: 'For example', operation: 'queue.limit', input: { project: 'web', max: 2 } },
  })
}

/** What holds now, and how much of it is taken. */
function showLimit(view: View, { project, group, user }: SetLimit) {
  const name = { project: project ?? null, group: group ?? null, user: user ?? null }
  if (user !== undefined) {
    const share = shareOf(view, user)
    return { ...name, max: maxOf(view, share), used: share.running.length, weight: share.weight }
  }
  const { max, used } = boundOf(view, { project, group })
  return { ...name, max, used, weight: null }
}

export const cleanup = adminOperation({
  name: 'queue.cleanup',
  doc: 'Settle stale runs: dead, overdue, or older than asked. Stop them, then free their locks.',
  input: {
    older_than_seconds: field(
      () => s.optional(s.seconds(0, 365 * 86_400)),
      'Also end runs that are older than this.',
    ),
    project: f.filterProject,
  },
  output: answers.cleanedRuns,
  command: 'queue cleanup',
  decide: (view, { older_than_seconds, project }, caller) => {
    const ask = { older_than_ms: toMs(older_than_seconds), project }
    const items = cleanUp(view, ask, caller).map((run) => {
      const { status: task_status } = getTask(view, run.task_id)
      return Object.assign({ task_status }, run)
    })
    return { items, next: null }
  },
})

export const release = adminOperation({
  name: 'queue.release_user',
  refuses: ['not_found'],
  doc: 'Free a user who is stuck: cancel the running task, so that the next one can start.',
  input: { user: field(s.name, 'The user.'), task_id: f.onlyTask },
  output: answers.releasedUser,
  command: 'queue release-user user',
  decide: (view, { user, task_id }, caller) => {
    const cancelled = releaseUser(view, { user, task_id }, caller)
    return { user, cancelled, released: true }
  },
})
