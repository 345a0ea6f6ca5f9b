import { agentKind } from '../../core/caller.ts'
import { type Status, STATUSES } from '../../core/rows.ts'
import { type BriefTask, loading } from '../data/tasks.ts'
import { STATUS_NAMES } from '../parts/badge.tsx'
import { Tabs } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { count, UNKNOWN } from '../parts/words.ts'
import { adjust, hrefOf, param, route } from '../route.ts'
import { isNarrow } from '../theme.ts'

const CARD = { wide: 100, narrow: 64 }

type Board = Record<Status, BriefTask[]>

/** On a narrow screen only one column is shown. */
const status = param<Status>('status', 'todo')

export function TaskBoard({ found }: { found: BriefTask[] }) {
  const board = boardOf(found)
  const names = Object.fromEntries(
    STATUSES.map((each) => [each, `${STATUS_NAMES[each]} ${saysLoaded(board[each].length)}`]),
  ) as Record<Status, string>
  return (
    <>
      <div class="only-narrow">
        <Tabs
          label="Status"
          tabs={names}
          chosen={status.value}
          choose={(to) => (status.value = to)}
        />
      </div>
      <div class="board">
        {STATUSES.map((each) => (
          <section
            key={each}
            class={`column ${each === status.value ? 'is-chosen' : ''}`}
            aria-label={STATUS_NAMES[each]}
          >
            <h2 class={`column-head is-${each}`}>
              <Icon name={each} size={14} /> {STATUS_NAMES[each]}
              <span class="number dim">{saysLoaded(board[each].length)}</span>
            </h2>
            <Virtual
              items={board[each]}
              row={isNarrow.value ? CARD.narrow : CARD.wide}
              label={`${STATUS_NAMES[each]} tasks`}
              keyOf={(task) => task.id}
              render={(task) => <Card task={task} />}
            />
          </section>
        ))}
      </div>
    </>
  )
}

/** While they are loaded there may be more; of those that are too many there are. */
function saysLoaded(n: number): string {
  if (loading.value === 'done') return n.toLocaleString()
  return n === 0 ? UNKNOWN : `${n.toLocaleString()}+`
}

function boardOf(found: BriefTask[]): Board {
  const board = Object.fromEntries(STATUSES.map((each) => [each, [] as BriefTask[]])) as Board
  for (const task of found) board[task.status].push(task)
  for (const each of STATUSES) {
    const isOver = each === 'done' || each === 'cancelled' || each === 'failed'
    board[each].sort(isOver ? byUpdate : byPriority)
  }
  return board
}

const byUpdate = (a: BriefTask, b: BriefTask) => (a.updated_at < b.updated_at ? 1 : -1)
const byPriority = (a: BriefTask, b: BriefTask) =>
  b.priority - a.priority || (a.created_at < b.created_at ? -1 : 1)

/** Opens a task; what is filtered stays in the address, for the way back. */
export function taskLink(id: string) {
  return {
    href: hrefOf('tasks', { ...Object.fromEntries(route.value.params), id }),
    'data-id': id,
    onClick: (event: Event) => {
      event.preventDefault()
      adjust({ id })
    },
  }
}

function Card({ task }: { task: BriefTask }) {
  const { id, title, priority, project } = task
  return (
    <a class={`card is-${task.status}`} {...taskLink(id)}>
      <span class="card-title">{title}</span>
      <span class="card-more dim">
        <span class="id">{id}</span>
        {priority >= 7 && <span class="high">P{priority}</span>}
        {project && <span>{project}</span>}
      </span>
      <span class="card-more dim">
        <CardLast task={task} />
      </span>
    </a>
  )
}

/** The one thing more that a card has room for: who has it, what it waits for, or whose it is. */
function CardLast({ task }: { task: BriefTask }) {
  const { assignee, unmet, user } = task
  if (assignee) return <span class="card-agent">{agentKind(assignee, task.id)}</span>
  if (unmet > 0) return <span>waits for {count(unmet, 'task')}</span>
  return user ? <span>{user}</span> : null
}
