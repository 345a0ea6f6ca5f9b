import type { AnswerOf } from '../../operations/registry.ts'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { ask, change } from '../ask.ts'
import { changed as tasksChanged, tasks } from '../data/tasks.ts'
import { type Act, does, numberIn } from '../parts/acts.tsx'
import { count } from '../parts/words.ts'
import { param } from '../route.ts'

/** What a person may do with tasks. The event log names who did it. */

export type WholeTask = AnswerOf<'task.get'>

/** What may be done with a task as it stands. */
export function actsOn(task: WholeTask): Act[] {
  const { id, status } = task
  const isOver = status === 'failed' || status === 'cancelled'
  if (status === 'done') return []
  return [
    ...(status === 'review' ? [moves(id, 'done'), moves(id, 'todo')] : []),
    ...(isOver ? [retries(id)] : [cancels(id, status === 'in_progress')]),
  ]
}

export const cancels = (id: string, isRunning: boolean): Act => ({
  says: 'Cancel task',
  label: `Cancel task ${id}`,
  kind: 'danger',
  will: isRunning
    ? ['Its command is stopped, then its lock is released.', 'The task becomes Cancelled.']
    : ['It leaves the queue and becomes Cancelled.', 'It can be put back with Retry.'],
  run: does('queue.cancel', { id }, `Task ${id} was cancelled`),
})

const retries = (id: string): Act => ({
  says: 'Retry',
  label: `Retry task ${id}`,
  kind: 'primary',
  will: ['It goes back to To do, with its count of failures at zero.'],
  run: does('queue.retry', { id }, `Task ${id} waits to be run again`),
})

/** For what was handed in for review: it is good, or it is not yet. */
function moves(id: string, status: 'done' | 'todo'): Act {
  const isDone = status === 'done'
  return {
    says: isDone ? 'Approve' : 'Send back',
    label: isDone ? `Approve task ${id}` : `Send back task ${id}`,
    ...(isDone && { kind: 'primary' }),
    will: isDone
      ? [
          'It becomes Done; tasks that wait for it may start.',
          'Where its project lands branches, it is checked and landed first.',
        ]
      : ['It goes back to To do, and an agent may take it again.'],
    run: async () => {
      const { note } = await change('task.status', { id, status })
      return note ?? (isDone ? `Task ${id} is done` : `Task ${id} is to be done again`)
    },
  }
}

/** What may be changed of a task, as text: its label, what it says, and what is made of that. */
const FIELDS = {
  title: ['Title', (task: WholeTask) => task.title, (text: string) => text],
  project: ['Project', ({ project }) => project ?? '', (text) => text || null],
  priority: ['Priority, 0 to 9', ({ priority }) => String(priority), numberIn],
  assigned_to: [
    'Only for this agent',
    ({ assigned_to: agent }) => agent ?? '',
    (text) => text.trim() || null,
  ],
  labels: [
    'Labels, with commas between them',
    ({ labels }) => labels.join(', '),
    (text) => text.split(',').flatMap((word) => word.trim() || []),
  ],
  body: ['Body', ({ body }) => body, (text) => text],
} satisfies Record<string, [string, (task: WholeTask) => string, (text: string) => unknown]>
const KEYS = Object.keys(FIELDS) as (keyof typeof FIELDS)[]
const textIn = (task: WholeTask, key: (typeof KEYS)[number]) => FIELDS[key][1](task)

export function edits(task: WholeTask): Act {
  const { id } = task
  // What comes after the version that was read is a conflict, not a surprise.
  let onto = task
  return {
    says: 'Edit',
    label: `Edit task ${id}`,
    verb: 'Save',
    will: [`You began with version ${task.version}. Only what you change is saved.`],
    fields: KEYS.map((key) => ({
      label: FIELDS[key][0],
      initial: textIn(task, key),
      ...(key === 'project' && { choices: projectsKnown }),
      ...(key === 'priority' && { type: 'number' }),
      ...(key === 'body' && { type: 'long' }),
    })),
    run: async (...said) => {
      const mine = KEYS.flatMap((key, i) => {
        const text = said[i]!
        return text === textIn(task, key) ? [] : [[key, FIELDS[key][2](text)] as const]
      })
      try {
        const changes = { id, version: onto.version, ...Object.fromEntries(mine) }
        return `Task ${id} is now version ${(await change('task.update', changes)).version}`
      } catch (error) {
        if (!isRefusal(error, 'conflict')) throw error
        const [before, theirs] = [onto, error.details['task'] as WholeTask]
        onto = theirs
        const changed = KEYS.filter((key) => textIn(theirs, key) !== textIn(before, key))
        const says = changed.map((key) => `${FIELDS[key][0]}: ${textIn(theirs, key)}`).join('\n')
        throw new Refusal('conflict', 'Somebody changed this task while you were editing', {
          next: `Save again to put what you changed on version ${onto.version}:\n${says}`,
        })
      }
    },
  }
}

const AT_ONCE = 8

/** The same for many tasks: each is done or refused by itself, and the refused ones are named. */
export function manyAct(verb: 'cancel' | 'retry', ids: string[], done: () => void): Act {
  const isCancel = verb === 'cancel'
  return {
    says: isCancel ? 'Cancel tasks' : 'Retry tasks',
    ...(isCancel && { kind: 'danger' }),
    will: [
      `${count(ids.length, 'task is', 'tasks are')} chosen.`,
      isCancel
        ? 'Commands that run are stopped. What is over already stays as it is.'
        : 'Those that failed or were cancelled go back to To do.',
    ],
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
  }
}

const FOR = ['a dispatcher, which starts an agent on it', 'any agent that claims it']

export const addsTask = (): Act => ({
  says: 'New task',
  kind: 'primary',
  verb: 'Add task',
  will: ['The first line is its title; all of it is what the agent reads.'],
  fields: [
    { label: 'What to do', initial: '', type: 'long' },
    { label: 'For', initial: FOR[0]!, choices: async () => () => FOR },
    { label: 'Project', initial: param('project', '').value, choices: projectsKnown },
    { label: 'User', initial: param('user', '').value },
    { label: 'Priority', initial: '5', type: 'number' },
  ],
  run: async (text = '', target = '', project = '', user = '', level = '') => {
    const priority = numberIn(level)
    if (target === FOR[0]) {
      const { task, position } = await change('queue.add', {
        prompt: text,
        project,
        user,
        priority,
      })
      return `Task ${task.id} is number ${position} in the queue of ${user}`
    }
    const [title = '', ...rest] = text.split('\n')
    const of = { project: project || null, user: user || null }
    const body = rest.join('\n').trim()
    const { id } = await change('task.create', { title: title.trim(), body, priority, ...of })
    return `Task ${id} was added`
  },
})

/**
 * Projects to choose from: those that are served, have a limit, or have a task. Tasks may still be
 * on their way when the dialog opens.
 */
export async function projectsKnown(): Promise<() => string[]> {
  const { dispatchers, limits } = await ask('queue.status')
  const named = [
    ...dispatchers.flatMap(({ projects }) => projects),
    ...limits.flatMap(({ project }) => project ?? []),
  ]
  return () => {
    void tasksChanged.value
    const ofTasks = [...tasks.values()].flatMap((each) => each.project ?? [])
    return ['', ...new Set([...named, ...ofTasks])].toSorted()
  }
}
