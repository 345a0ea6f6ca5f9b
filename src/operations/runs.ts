import type { Run } from '../core/schema/task.ts'
import { finishRun, getRun, startRun } from '../core/queue/dispatch.ts'
import { RUN_STATUSES } from '../core/rows.ts'
import { lockOf } from '../core/locks/lease.ts'
import type { View } from '../core/view.ts'
import type { RunOutput } from '../machine/run_output.ts'
import type { AnswerAs } from './answers/shape.ts'
import * as answers from './answers/tasks.ts'
import * as f from './fields.ts'
import { stillLive } from './locks.ts'
import { adminOperation, field, readOperation, writeOperation } from './operation.ts'
import { pageIn } from './page.ts'
import * as s from './schemas.ts'

/** A run as doors show it: with whom it was for, and whether its lock has come back. */
function showRun(view: View, run: Run) {
  const task = view.get('task', run.task_id)
  const lease = view.get('lease', lockOf(run.task_id))
  return {
    ...run,
    title: task?.title ?? null,
    project: task?.project ?? null,
    user: task?.user ?? null,
    lock_id: `${lockOf(run.task_id)}#${run.fence}`,
    lock_released: lease?.fence !== run.fence || lease.ended_at !== null,
  }
}

export type ShownRun = AnswerAs<typeof answers.shownRun>

const taskOfRun = (id: string) => id.slice(0, id.lastIndexOf('.'))

const runAndLock = ({ id }: { id: string }) => {
  const task = taskOfRun(id)
  return [
    { table: 'run' as const, key: id },
    { table: 'task' as const, key: task },
    { table: 'lease' as const, key: lockOf(task) },
  ]
}

export const list = readOperation({
  name: 'run.list',
  refuses: ['invalid'],
  doc: 'Runs that dispatchers started, newest first; for one task, all of its runs.',
  input: {
    task_id: f.onlyTask,
    user: f.filterUser,
    status: field(
      () => s.optional(s.runStatus()),
      `Only runs with this status: ${RUN_STATUSES.join(', ')}.`,
    ),
    ...f.page,
  },
  output: answers.shownRuns,
  command: 'runs list',
  decide: (view, { task_id, user, status, ...page }) => {
    const show = (run: Run) => {
      if (status !== undefined && run.status !== status) return null
      const shown = showRun(view, run)
      return user === undefined || shown.user === user ? shown : null
    }
    return pageIn(
      view,
      task_id === undefined ? ['runs_newest', ''] : ['runs_of', task_id],
      page,
      show,
    )
  },
})

export const get = readOperation({
  name: 'run.get',
  refuses: ['not_found'],
  doc: 'One attempt at a task: who, where, since when, and how it ended.',
  input: { id: f.runId },
  output: answers.shownRun,
  command: 'runs show id',
  decide: (view, { id }) => showRun(view, getRun(view, id)),
})

/** Used by a runner, between starting its command behind a gate and letting it go. */
export const start = adminOperation({
  name: 'run.start',
  internal: true,
  touches: ({ id }) => [{ task: taskOfRun(id), changes: true }],
  refuses: ['not_found', 'held', 'fence_stale', 'lease_expired', 'illegal_move'],
  doc: 'A runner is about to start its command: once per fence, and only if the fence is current.',
  input: {
    id: f.runId,
    fence: f.runFence,
    process: f.runnerProcess,
    group: f.group,
  },
  output: answers.shownRun,
  reads: runAndLock,
  decide: (view, ask, caller) => showRun(view, startRun(view, ask, caller)),
  // A runner lets its command go on this answer: not when its lease has died in the meantime.
  replay: (view, { id, task_id, fence }) => {
    stillLive(view, lockOf(task_id), fence)
    return showRun(view, getRun(view, id))
  },
})

/** Used by a runner, when nothing of its command is left. */
export const finish = writeOperation({
  name: 'run.finish',
  internal: true,
  touches: ({ id }) => [{ task: taskOfRun(id), changes: true }],
  refuses: ['not_found', 'held', 'fence_stale', 'lease_expired', 'illegal_move'],
  doc: 'A run has ended and left no process: settle its task, return its lock and limits.',
  input: {
    id: f.runId,
    fence: f.runFence,
    exit_code: field(
      () => s.or(s.nullable(s.whole(0, 255)), null),
      'Exit code of the command; null if a signal ended it.',
    ),
    signal: field(
      () => s.or(s.nullable(s.plain(20)), null),
      'The signal that ended the command, if any.',
    ),
    reason: field(
      () => s.or(s.nullable(s.plain(500)), null),
      'Why the runner ended the command, or could not start it.',
    ),
    lost: field(
      s.flag,
      'The run was ended because its lease was lost: the task goes back to the queue.',
    ),
  },
  output: answers.shownRun,
  reads: runAndLock,
  decide: (view, ask, caller) => showRun(view, finishRun(view, ask, caller)),
})

/** What a page of output holds at most; a line of it is enough for a glance. */
const OUTPUT_MAX = 256 * 1024

export const output = readOperation({
  name: 'run.output',
  refuses: ['invalid', 'not_found'],
  doc: 'Output of a run, as far as this machine has it: the end, the beginning, or piece by piece.',
  input: {
    id: f.runId,
    bytes: field(() => s.or(s.whole(1, OUTPUT_MAX), 64 * 1024), 'Maximum number of bytes.'),
    after: field(
      () => s.optional(s.outputPlace()),
      'Continue after the last piece: the `next` that it returned.',
    ),
    before: field(
      () => s.optional(s.outputPlace()),
      'The piece before one: the `begin` that it returned.',
      '--before <begin>',
    ),
    from: field(
      () => s.optional(s.outputEnd()),
      'Begin with the first piece instead of the last.',
      '--from <end>',
    ),
  },
  output: answers.output,
  lookup: async (store, { id, bytes, ...which }) => store.output?.(id, which, bytes),
  decide: (view, { id }, _caller, _ticket, found) => {
    const run = getRun(view, id)
    const shown: Shown = found ?? NOTHING
    return { id, ...shown, is_kept: found !== undefined, ended_at: run.ended_at }
  },
})

/** There are no places in what is not kept. */
type Shown = Omit<RunOutput, 'begin' | 'next'> & Record<'begin' | 'next', string | null>

const NOTHING: Shown = {
  text: '',
  begin: null,
  next: null,
  skipped: false,
  is_first: true,
  bytes_total: 0,
}
