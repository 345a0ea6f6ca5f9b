import { agentKind } from '../../core/caller.ts'
import { now, useAnswer } from '../data/asked.ts'
import type { BriefTask } from '../data/tasks.ts'
import { Badge } from '../parts/badge.tsx'
import { Opens } from '../parts/links.tsx'
import { by, dim, type PageNoun } from '../parts/noun.tsx'
import { ago, secondsSince, span } from '../parts/words.ts'

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
      show: ({ status }) => <Badge of={status} />,
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
    dim({ name: 'Project', width: 'minmax(4rem, 0.6fr)' }, ({ project }) => project),
    dim({ name: 'User', width: 'minmax(4rem, 0.6fr)', wide: true }, ({ user }) => user),
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
      show: ({ created_at }) => <Lasts since={created_at} class="dim" />,
    },
    {
      name: 'Runs for',
      width: '5rem',
      order: ({ assigned_at }) => assigned_at ?? '~',
      show: ({ status, assigned_at }) =>
        status === 'in_progress' && assigned_at !== null && <Lasts since={assigned_at} />,
    },
    { name: 'Why', width: 'minmax(10rem, 2.4fr)', wide: true, show: (task) => <Why of={task} /> },
  ],
}

/** How long it lasts already. */
export const Lasts = ({ since, class: look = '' }: { since: string; class?: string }) => (
  <span class={`number ${look}`} title={since}>
    {span(secondsSince(since, now.value))}
  </span>
)

/** Why it waits or failed; of what is over, since when. */
function Why({ of: { id, status, updated_at } }: { of: BriefTask }) {
  if (status === 'in_progress') return null
  const when = <span class="dim number">{ago(updated_at, now.value)}</span>
  if (status === 'todo') return <Because id={id} />
  return status === 'failed' ? [when, ' ', <Because id={id} />] : when
}

/** Reasons change without an event of the task. */
const LOOK_MS = 10_000

/** In the words of `explain`. */
function Because({ id }: { id: string }) {
  const asked = useAnswer('task.explain', { id }, { every_ms: LOOK_MS })
  // The row names the task already.
  const says = asked.value?.sentence.replace(`Task ${id} `, '').replace(/^waits because /, '')
  return (
    <span class="dim" title={says}>
      {says}
    </span>
  )
}
