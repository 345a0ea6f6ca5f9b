import { agentKind } from '../../core/caller.ts'
import { assignTask, cancelTask, moveTask, prioritiseTask, retryTask } from '../actions.ts'
import type { WholeTask } from '../data/about.ts'
import { now } from '../data/asked.ts'
import { type BriefTask, tasks } from '../data/tasks.ts'
import { whyOf } from '../data/why.ts'
import { StatusBadge } from '../parts/badge.tsx'
import { type Act, by, type PageNoun } from '../parts/resource.ts'
import { Opens } from '../parts/opens.tsx'
import { ago, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

/** Its name as a link to all that is known of it, wherever it is named. */
export function TaskLink({ id }: { id: string }) {
  return (
    <a href={hrefOf('work', { id })}>
      <span class="id">{id}</span> {tasks.get(id)?.title}
    </a>
  )
}

const isOpen = ({ status }: BriefTask) =>
  status === 'todo' || status === 'in_progress' || status === 'review'

const newest = by<BriefTask>(({ created_at }) => created_at, -1)
const last = by<BriefTask>(({ updated_at }) => updated_at, -1)
const urgent = (a: BriefTask, b: BriefTask) => b.priority - a.priority || newest(b, a)

export const taskResource: PageNoun<BriefTask> = {
  one: 'task',
  keyOf: ({ id }) => id,
  textOf: ({ id, title, project, user, assignee, labels }) =>
    `${id} ${title} ${project} ${user} ${assignee} ${labels.join(' ')}`,
  none: ['No task yet', 'A task is a unit of work that one agent at a time may claim.'],
  order: newest,
  saved: {
    active: { name: 'Active', fits: isOpen, order: newest },
    running: { name: 'Running', fits: ({ status }) => status === 'in_progress' },
    waiting: { name: 'Waiting', fits: ({ status }) => status === 'todo', order: urgent },
    review: { name: 'To review', fits: ({ status }) => status === 'review', order: last },
    failed: { name: 'Failed', fits: ({ status }) => status === 'failed', order: last },
    over: { name: 'Over', fits: (task) => !isOpen(task) && task.status !== 'failed', order: last },
    all: { name: 'All', fits: () => true, order: newest },
  },
  filters: [
    { name: 'project', of: ({ project }) => project },
    { name: 'user', of: ({ user }) => user },
    { name: 'agent', of: ({ assignee }) => assignee },
  ],
  columns: [
    {
      name: 'Status',
      width: '7.2rem',
      order: ({ status }) => status,
      show: ({ status }) => <StatusBadge status={status} />,
    },
    {
      name: 'Task',
      width: 'minmax(13rem, 3fr)',
      order: ({ title }) => title,
      show: ({ id, title }) => (
        <Opens id={id}>
          <span class="id">{id}</span> {title}
        </Opens>
      ),
    },
    {
      name: 'P',
      width: '2.2rem',
      wide: true,
      order: ({ priority }) => -priority,
      show: ({ priority }) => (
        <span class={priority >= 7 ? 'number high' : 'number dim'}>{priority}</span>
      ),
    },
    {
      name: 'Project',
      width: 'minmax(4rem, 0.6fr)',
      order: ({ project }) => project ?? '',
      show: ({ project }) => <span class="dim">{project}</span>,
    },
    {
      name: 'User',
      width: 'minmax(4rem, 0.6fr)',
      wide: true,
      order: ({ user }) => user ?? '',
      show: ({ user }) => <span class="dim">{user}</span>,
    },
    {
      name: 'Agent',
      width: 'minmax(5rem, 0.8fr)',
      order: ({ assignee }) => assignee ?? '',
      show: ({ id, assignee }) => (
        <span class="is-accent" title={assignee ?? ''}>
          {agentKind(assignee ?? '', id)}
        </span>
      ),
    },
    {
      name: 'Age',
      width: '5rem',
      wide: true,
      order: ({ created_at }) => created_at,
      show: ({ created_at }) => (
        <span class="dim number">{span(secondsSince(created_at, now.value))}</span>
      ),
    },
    {
      name: 'Runs for',
      width: '5rem',
      order: ({ assigned_at }) => assigned_at ?? '~',
      show: ({ status, assigned_at }) =>
        status === 'in_progress' &&
        assigned_at !== null && (
          <span class="number">{span(secondsSince(assigned_at, now.value))}</span>
        ),
    },
    { name: 'Why', width: 'minmax(10rem, 2.4fr)', wide: true, show: (task) => <Why task={task} /> },
  ],
}

/** Why it waits; of what is over, since when. */
function Why({ task: { id, status, updated_at } }: { task: BriefTask }) {
  if (status === 'todo' || status === 'failed') {
    const when = status === 'failed' ? `${ago(updated_at, now.value)}: ` : ''
    return (
      <span class="dim" title={whyOf(id)}>
        {when}
        {whyOf(id)}
      </span>
    )
  }
  return status === 'in_progress' ? null : (
    <span class="dim number">{ago(updated_at, now.value)}</span>
  )
}

/** What a person may do with a task as it stands. */
export function actsOn(task: WholeTask): Act[] {
  const { id, status } = task
  const is = (...of: WholeTask['status'][]) => of.includes(status)
  const all: [boolean, Act][] = [
    [is('review'), { says: 'Approve', kind: 'primary', act: () => moveTask(id, 'done') }],
    [is('review'), { says: 'Send back', act: () => moveTask(id, 'todo') }],
    [is('failed', 'cancelled'), { says: 'Retry', kind: 'primary', act: () => retryTask(id) }],
    [is('todo', 'in_progress', 'review'), { says: 'Priority', act: () => prioritiseTask(task) }],
    [is('todo') && !task.queue, { says: 'Assign', act: () => assignTask(task) }],
    [
      is('todo', 'in_progress', 'review'),
      {
        says: 'Cancel task',
        kind: 'danger-quiet',
        act: () => cancelTask(id, status === 'in_progress'),
      },
    ],
  ]
  return all.flatMap(([may, act]) => (may ? [act] : []))
}
