import { useSignal } from '@preact/signals'
import { agentKind } from '../../core/caller.ts'
import { type Status, STATUSES } from '../../core/rows.ts'
import { changeMany } from '../actions.ts'
import { now } from '../data/asked.ts'
import type { BriefTask } from '../data/tasks.ts'
import { wantWhy, whyOf } from '../data/why.ts'
import { STATUS_NAMES, StatusBadge } from '../parts/badge.tsx'
import { Button } from '../parts/buttons.tsx'
import { Select } from '../parts/frame.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { secondsSince, span } from '../parts/words.ts'
import { param } from '../route.ts'
import { mayWork } from '../session.ts'
import { taskLink } from './task_board.tsx'

const ROW = 44

const status = param<Status | ''>('status', '')
const sort = param<keyof typeof SORTS>('sort', 'newest')

const dated = (pick: (task: BriefTask) => string | null, sign: 1 | -1) =>
  function byDate(a: BriefTask, b: BriefTask): number {
    const [x, y] = [pick(a) ?? '', pick(b) ?? '']
    return x === y ? 0 : x < y ? -sign : sign
  }

const SORTS = {
  newest: dated((task) => task.created_at, -1),
  oldest: dated((task) => task.created_at, 1),
  changed: dated((task) => task.updated_at, -1),
  urgent: (a: BriefTask, b: BriefTask) => b.priority - a.priority,
  longest: dated((task) => task.assigned_at ?? '9', 1),
  user: dated((task) => task.user, 1),
  agent: dated((task) => task.assignee, 1),
}
const SORT_NAMES: Record<keyof typeof SORTS, string> = {
  newest: 'Newest first',
  oldest: 'Oldest first',
  changed: 'Last changed first',
  urgent: 'Most urgent first',
  longest: 'Running longest first',
  user: 'By user',
  agent: 'By agent',
}

/** Tasks line by line: how old, for whom, by whom, why each waits; many can be changed at once. */
export function TaskList({ found }: { found: BriefTask[] }) {
  const selected = useSignal<ReadonlySet<string>>(new Set())
  const order = SORTS[sort.value] ?? SORTS.newest
  const shown = found
    .filter((task) => status.value === '' || task.status === status.value)
    .toSorted(order)
  const toggle = (id: string) => {
    const next = new Set(selected.value)
    if (!next.delete(id)) next.add(id)
    selected.value = next
  }
  return (
    <>
      <div class="filters">
        <Select
          label="Status"
          of={['', ...STATUSES]}
          chosen={status.value}
          choose={(to) => (status.value = to)}
          says={(each) => (each === '' ? 'Any status' : STATUS_NAMES[each])}
        />
        <Select
          label="Order"
          of={Object.keys(SORTS) as (keyof typeof SORTS)[]}
          chosen={sort.value}
          choose={(to) => (sort.value = to)}
          says={(each) => SORT_NAMES[each]}
        />
        {mayWork() && <Bulk selected={selected} shown={shown} />}
      </div>
      <div class="panel is-list task-list">
        <Columns />
        <Virtual
          items={shown}
          row={ROW}
          label="Tasks"
          keyOf={({ id }) => id}
          shown={(items) => {
            const waiting = items.filter((task) => task.status === 'todo').map(({ id }) => id)
            queueMicrotask(() => wantWhy(waiting))
          }}
          render={(task) => (
            <TaskRow task={task} isSelected={selected.value.has(task.id)} toggle={toggle} />
          )}
        />
      </div>
    </>
  )
}

const COLUMNS = ['Status', 'Task', 'Project', 'User', 'Agent', 'Age', 'Runs for', 'Why it waits']

function Columns() {
  return (
    <div class="task-row task-columns" aria-hidden="true">
      <span />
      {COLUMNS.map((name) => (
        <span key={name}>{name}</span>
      ))}
    </div>
  )
}

interface BulkProps {
  selected: { value: ReadonlySet<string> }
  shown: BriefTask[]
}

function Bulk({ selected, shown }: BulkProps) {
  const n = selected.value.size
  const clear = () => (selected.value = new Set())
  if (n === 0) {
    return (
      <Button
        disabled={shown.length === 0}
        act={() => (selected.value = new Set(shown.map(({ id }) => id)))}
      >
        Select all {shown.length > 0 && shown.length.toLocaleString()}
      </Button>
    )
  }
  const ids = [...selected.value]
  return (
    <>
      <strong class="number">{n.toLocaleString()} selected</strong>
      <Button act={() => changeMany('retry', ids, clear)}>Retry</Button>
      <Button kind="danger-quiet" act={() => changeMany('cancel', ids, clear)}>
        Cancel tasks
      </Button>
      <Button kind="quiet" act={clear}>
        Select none
      </Button>
    </>
  )
}

interface TaskRowProps {
  task: BriefTask
  isSelected: boolean
  toggle: (id: string) => void
}

function TaskRow({ task, isSelected, toggle }: TaskRowProps) {
  const { id, title, project, user, assignee, assigned_at, created_at } = task
  const isRunning = task.status === 'in_progress'
  return (
    <div class={`task-row ${isSelected ? 'is-open' : ''}`}>
      <input
        type="checkbox"
        aria-label={`Select task ${id}`}
        checked={isSelected}
        disabled={!mayWork()}
        onChange={() => toggle(id)}
      />
      <StatusBadge status={task.status} />
      <a {...taskLink(id)}>
        <span class="id">{id}</span> {title}
      </a>
      <span class="dim">{project}</span>
      <span class="dim">{user}</span>
      <span class="card-agent" title={assignee ?? ''}>
        {agentKind(assignee ?? '', id)}
      </span>
      <span class="dim number">{span(secondsSince(created_at, now.value))}</span>
      <span class="number">
        {isRunning && assigned_at !== null && span(secondsSince(assigned_at, now.value))}
      </span>
      <span class="dim" title={whyOf(id)}>
        {task.status === 'todo' && whyOf(id)}
      </span>
    </div>
  )
}
