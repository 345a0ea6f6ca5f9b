import { Refusal } from '../core/refusal.ts'
import { change } from './ask.ts'
import { confirm } from './parts/dialog.tsx'

/** What people may do from here. Each says what will happen; the event log names who did it. */

export function forceRelease(name: string, holder: string): void {
  const task = name.startsWith('task:')
  confirm({
    title: `Force-release ${name}?`,
    says: [
      `${holder} loses its lease at once; whatever it still writes under it is refused.`,
      'A command that leasehold started under it is stopped first.',
      ...(task ? ['The task goes back to To do, and another agent may claim it.'] : []),
      'The first in line gets the lock.',
    ],
    verb: 'Force-release',
    danger: true,
    fields: [{ label: 'Reason (kept in the event log)', initial: '' }],
    run: async (reason = '') => {
      await change('lock.force_release', { name, ...(reason !== '' && { reason }) })
      return `${name} was released; ${holder} no longer holds it`
    },
  })
}

export function cancelTask(id: string, isRunning: boolean): void {
  confirm({
    title: `Cancel task ${id}?`,
    says: isRunning
      ? ['Its command is stopped, then its lock is released.', 'The task becomes Cancelled.']
      : ['It leaves the queue and becomes Cancelled.', 'It can be put back with Retry.'],
    verb: 'Cancel task',
    danger: true,
    run: async () => {
      await change('queue.cancel', { id })
      return `Task ${id} was cancelled`
    },
  })
}

export function retryTask(id: string): void {
  confirm({
    title: `Retry task ${id}?`,
    says: ['It goes back to To do, with its count of failures at zero.'],
    verb: 'Retry',
    run: async () => {
      await change('queue.retry', { id })
      return `Task ${id} waits to be run again`
    },
  })
}

export function pauseQueue(pauses: boolean, what: { project?: string; user?: string } = {}): void {
  const { project, user } = what
  const of = project ? `project ${project}` : user ? `user ${user}` : 'the whole queue'
  confirm({
    title: pauses ? `Pause ${of}?` : `Resume ${of}?`,
    says: pauses
      ? ['Nothing more is started. What runs goes on.', 'New tasks wait until it is resumed.']
      : ['Waiting tasks are started again, in their turn.'],
    verb: pauses ? 'Pause' : 'Resume',
    run: async () => {
      await change(pauses ? 'queue.pause' : 'queue.resume', what)
      return pauses ? `Paused ${of}` : `Resumed ${of}`
    },
  })
}

export interface Limited {
  project?: string
  group?: string
  user?: string
}

function nameOf({ project, group, user }: Limited): string {
  if (project !== undefined) return `project ${project}`
  if (group !== undefined) return `group ${group}`
  return user === undefined ? 'the pool' : `user ${user}`
}

const LIMIT_SAYS = [
  'So many of its tasks may run at once. Empty takes the limit away.',
  'What runs already goes on. The limit holds until config.json is read again.',
]

export function editLimit(what: Limited, now: number | null): void {
  confirm({
    title: `Limit of ${nameOf(what)}`,
    says: LIMIT_SAYS,
    verb: 'Set limit',
    fields: [{ label: 'At most', initial: now === null ? '' : String(now), type: 'number' }],
    run: (max = '') => setLimit(what, max),
  })
}

/** For a project or group that nothing runs of yet. */
export function addLimit(): void {
  confirm({
    title: 'Limit a project or group',
    says: LIMIT_SAYS,
    verb: 'Set limit',
    fields: [
      { label: 'Kind', initial: 'project', choices: ['project', 'group'] },
      { label: 'Name', initial: '' },
      { label: 'At most', initial: '1', type: 'number' },
    ],
    run: (kind = '', name = '', max = '') =>
      setLimit(kind === 'group' ? { group: name } : { project: name }, max),
  })
}

/** What is no number would be sent as null, and take the limit away. */
function numberIn(said: string): number {
  const number = said.trim() === '' ? Number.NaN : Number(said)
  if (Number.isFinite(number)) return number
  throw new Refusal('invalid', `${said || 'Nothing'} is not a number`, { next: 'Give one like 2.' })
}

async function setLimit(what: Limited, said: string): Promise<string> {
  const max = said.trim() === '' ? null : numberIn(said)
  await change('queue.limit', { ...what, max })
  const of = nameOf(what)
  return max === null ? `No limit for ${of} any more` : `At most ${max} at once for ${of}`
}

export function editWeight(user: string, now: number): void {
  confirm({
    title: `Weight of ${user}`,
    says: [
      'A user of weight 2 gets twice the time of one of weight 1, when both have tasks waiting.',
      'It counts from the next start on, until config.json is read again.',
    ],
    verb: 'Set weight',
    fields: [{ label: 'Weight', initial: String(now), type: 'number' }],
    run: async (said = '') => {
      const weight = numberIn(said)
      await change('queue.limit', { user, weight })
      return `${user} has the weight ${weight} now`
    },
  })
}

export function releaseUser(user: string, task_id: string | null): void {
  confirm({
    title: `Release user ${user}?`,
    says: [
      `What runs for ${user} is cancelled: its command is stopped, then its locks are free.`,
      `The next task of ${user} may start.`,
    ],
    verb: 'Cancel and release',
    danger: true,
    run: async () => {
      await change('queue.release_user', { user, ...(task_id !== null && { task_id }) })
      return `${user} is free`
    },
  })
}
