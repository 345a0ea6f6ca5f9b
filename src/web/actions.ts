import { Refusal } from '../core/refusal.ts'
import { change } from './ask.ts'
import { projectsKnown, type WholeTask } from './data/about.ts'
import type { ListedLanding } from './data/branches.ts'
import { confirm } from './parts/dialog.tsx'
import { param } from './route.ts'

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

/** For what was handed in for review: it is good, or it is not yet. */
export function moveTask(id: string, status: 'done' | 'todo'): void {
  const isDone = status === 'done'
  confirm({
    title: isDone ? `Approve task ${id}?` : `Send task ${id} back?`,
    says: isDone
      ? [
          'It becomes Done; tasks that wait for it may start.',
          'Where its project lands branches, it is checked and landed first.',
        ]
      : ['It goes back to To do, and an agent may take it again.'],
    verb: isDone ? 'Approve' : 'Send back',
    run: async () => {
      const { note } = await change('task.status', { id, status })
      if (note !== undefined) return note
      return isDone ? `Task ${id} is done` : `Task ${id} is to be done again`
    },
  })
}

export function prioritiseTask({ id, priority, version }: WholeTask): void {
  confirm({
    title: `Priority of task ${id}`,
    says: ['From 0 to 9; 7 and up is high. It counts the next time that a task is chosen.'],
    verb: 'Set priority',
    fields: [{ label: 'Priority', initial: String(priority), type: 'number' }],
    run: async (said = '') => {
      const task = await change('task.update', { id, version, priority: numberIn(said) })
      return `Task ${id} has priority ${task.priority} now`
    },
  })
}

export function assignTask({ id, assigned_to, version }: WholeTask): void {
  confirm({
    title: `Who may take task ${id}?`,
    says: ['Only the agent that is named here may claim it. Empty: any agent.'],
    verb: 'Assign',
    fields: [{ label: 'Agent', initial: assigned_to ?? '' }],
    run: async (said = '') => {
      const agent = said.trim() === '' ? null : said.trim()
      await change('task.update', { id, version, assigned_to: agent })
      return agent === null ? `Any agent may take task ${id}` : `Task ${id} is for ${agent}`
    },
  })
}

const AT_ONCE = 8

/** The same for many tasks: each is done or refused by itself, and the refused ones are named. */
export function changeMany(verb: 'cancel' | 'retry', ids: string[], done: () => void): void {
  const many = ids.length === 1 ? 'this task' : `these ${ids.length} tasks`
  confirm({
    title: verb === 'cancel' ? `Cancel ${many}?` : `Retry ${many}?`,
    says:
      verb === 'cancel'
        ? ['Commands that run are stopped. What is over already stays as it is.']
        : ['Those that failed or were cancelled go back to To do.'],
    verb: verb === 'cancel' ? 'Cancel tasks' : 'Retry tasks',
    danger: verb === 'cancel',
    run: async () => {
      const refused: string[] = []
      const waiting = [...ids]
      const work = async () => {
        for (let id = waiting.pop(); id !== undefined; id = waiting.pop()) {
          await change(`queue.${verb}`, { id }).catch((error: unknown) => {
            if (!(error instanceof Refusal)) throw error
            refused.push(`${id}: ${error.message}`)
          })
        }
      }
      await Promise.all(Array.from({ length: AT_ONCE }, work))
      done()
      const left = refused.length === 0 ? '' : `; refused: ${refused.slice(0, 3).join('; ')}`
      return `${ids.length - refused.length} of ${ids.length} tasks${left}`
    },
  })
}

const FOR = ['a dispatcher, which starts an agent on it', 'any agent that claims it']

export async function addTask(): Promise<void> {
  const projects = await projectsKnown()
  const { value: chosen } = param('project', '')
  confirm({
    title: 'New task',
    says: ['The first line is its title; all of it is what the agent reads.'],
    verb: 'Add task',
    fields: [
      { label: 'What to do', initial: '', type: 'long' },
      { label: 'For', initial: FOR[0]!, choices: FOR },
      { label: 'Project', initial: chosen, choices: ['', ...projects] },
      { label: 'User', initial: param('user', '').value },
      { label: 'Priority', initial: '5', type: 'number' },
    ],
    run: async (text = '', target = '', place = '', whose = '', level = '') => {
      const priority = numberIn(level)
      if (target === FOR[0]) {
        const asked = { prompt: text, project: place, user: whose, priority }
        const { task, position } = await change('queue.add', asked)
        return `Task ${task.id} is number ${position} in the queue of ${whose}`
      }
      const [title = '', ...rest] = text.split('\n')
      const of = { project: place || null, user: whose || null }
      const body = rest.join('\n').trim()
      const { id } = await change('task.create', { title: title.trim(), body, priority, ...of })
      return `Task ${id} was added`
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

/** For a group that nothing runs of yet; every project is listed with its limit. */
export function addLimit(): void {
  confirm({
    title: 'Limit a group',
    says: LIMIT_SAYS,
    verb: 'Set limit',
    fields: [
      { label: 'Group', initial: '' },
      { label: 'At most', initial: '1', type: 'number' },
    ],
    run: (group = '', max = '') => setLimit({ group }, max),
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

interface Note {
  scope: string
  key: string
  version: number
  content: string | null
}

export function editNote({ scope, key, version, content }: Note): void {
  confirm({
    title: `Edit ${key}`,
    says: [`It becomes a new version, based on version ${version}.`],
    verb: 'Save note',
    fields: [{ label: 'What it says', initial: content ?? '', type: 'long' }],
    run: async (said = '') => {
      const put = await change('memory.put', { scope, key, content: said, based_on: version })
      return put.conflict ? `${key} disagrees with a newer version` : `${key} was saved`
    },
  })
}

export function deleteNote({ scope, key, version }: Note): void {
  confirm({
    title: `Delete ${key}?`,
    says: [`${key} in ${scope} is deleted; its history stays until it is pruned.`],
    verb: 'Delete note',
    danger: true,
    run: async () => {
      await change('memory.delete', { scope, key, based_on: version })
      return `${key} was deleted`
    },
  })
}

interface Landed {
  id: string
  project: string
  onto?: string | null
}

const LAND_SAYS = [
  'It is put on top of its target, checked there, and only then does the target move.',
  'If it conflicts or its check fails, nothing changes, and its task comes back with the reason.',
]

async function land({ id, project, onto }: Landed): Promise<string> {
  const { note } = await change('land.add', {
    id,
    ...(project && { project }),
    ...(onto && { onto }),
  })
  return note
}

/** A task that is in review, or a branch, which is known already. */
export function landAgain(what: Landed): void {
  confirm({
    title: `Land ${what.id}?`,
    says: LAND_SAYS,
    verb: 'Land',
    run: () => land(what),
  })
}

export async function landBranch(): Promise<void> {
  const projects = await projectsKnown()
  confirm({
    title: 'Land a task or a branch',
    says: LAND_SAYS,
    verb: 'Land',
    fields: [
      { label: 'Task or branch', initial: '' },
      { label: 'Project', initial: param('project', '').value, choices: ['', ...projects] },
    ],
    run: (id = '', project = '') => land({ id: id.trim(), project }),
  })
}

export function cancelLanding({ id, task_id, target }: ListedLanding): void {
  const from = target === null ? 'It is not checked.' : `It leaves the line for ${target}.`
  const after = task_id === null ? 'Its branch stays as it is.' : `Task ${task_id} stays in review.`
  confirm({
    title: `Cancel landing ${id}?`,
    says: [from, after],
    verb: 'Cancel landing',
    danger: true,
    run: async () => {
      await change('land.cancel', { id })
      return `Landing ${id} was cancelled`
    },
  })
}
