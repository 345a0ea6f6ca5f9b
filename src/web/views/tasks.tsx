import { useComputed, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { STATUSES, type Status } from '../../core/rows.ts'
import { useCalm } from '../data/asked.ts'
import { type BriefTask, changed, findTasks, loading, tasks, wantAll } from '../data/tasks.ts'
import { STATUS_NAMES } from '../parts/badge.tsx'
import { Empty } from '../parts/empty.tsx'
import { Page, Search, Select, Tabs } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { count } from '../parts/words.ts'
import { adjust, hrefOf, route } from '../route.ts'
import { TaskDrawer } from './task_drawer.tsx'

const CARD = 84

type Board = Record<Status, BriefTask[]>

export function Tasks() {
  useEffect(wantAll, [])
  const { params } = route.value
  const wanted = useSignal(params.get('q') ?? '')
  const project = useSignal(params.get('project') ?? '')
  const status = useSignal<Status>('todo')
  const board = useComputed(() => {
    void changed.value
    return boardOf(wanted.value.toLowerCase(), project.value)
  })
  const calm = useCalm(wanted.value)
  useEffect(() => {
    const isWhole = loading.value === 'done'
    // Nobody who answers is shown elsewhere, and what is here is searched anyway.
    if ((calm || project.value) && !isWhole) findTasks(calm, project.value).catch(() => undefined)
  }, [calm, project.value, loading.value])
  const id = params.get('id')
  return (
    <Page
      title="Tasks"
      class="is-full"
      aside={
        <>
          <Search label="Search tasks" text={wanted} />
          <ProjectFilter chosen={project.value} choose={(name) => (project.value = name)} />
        </>
      }
    >
      <p class="dim">{loadedSays()}</p>
      {tasks.size === 0 && loading.value === 'done' ? (
        <Empty title="No task yet" command='leasehold task add "Mend the login page" --project web'>
          A task is a unit of work that one agent at a time may claim.
        </Empty>
      ) : (
        <BoardOf board={board.value} status={status.value} choose={(s) => (status.value = s)} />
      )}
      {id !== null && <TaskDrawer key={id} id={id} />}
    </Page>
  )
}

function loadedSays(): string {
  const all = count(tasks.size, 'task')
  if (loading.value === 'all') return `${all} so far, loading…`
  return loading.value === 'more' ? `The first ${all}; a search looks through all` : all
}

function ProjectFilter({ chosen, choose }: { chosen: string; choose: (name: string) => void }) {
  const names = useComputed(() => {
    void changed.value
    return [...new Set([...tasks.values()].map(({ project }) => project ?? ''))].toSorted()
  }).value
  return (
    <Select
      label="Project"
      of={['', ...names.filter(Boolean)]}
      chosen={chosen}
      choose={choose}
      says={(name) => name || 'All projects'}
    />
  )
}

function boardOf(text: string, project: string): Board {
  const board = Object.fromEntries(STATUSES.map((each) => [each, [] as BriefTask[]])) as Board
  for (const task of tasks.values()) {
    if (project !== '' && task.project !== project) continue
    if (text === '' || textOf(task).includes(text)) board[task.status].push(task)
  }
  for (const status of STATUSES) {
    const isOver = status === 'done' || status === 'cancelled' || status === 'failed'
    board[status].sort(isOver ? byUpdate : byPriority)
  }
  return board
}

const textOf = ({ id, title, project, user, assignee, labels }: BriefTask) =>
  `${id} ${title} ${project} ${user} ${assignee} ${labels.join(' ')}`.toLowerCase()

const byUpdate = (a: BriefTask, b: BriefTask) => (a.updated_at < b.updated_at ? 1 : -1)
const byPriority = (a: BriefTask, b: BriefTask) =>
  b.priority - a.priority || (a.created_at < b.created_at ? -1 : 1)

interface BoardProps {
  board: Board
  /** On a narrow screen only one column is shown. */
  status: Status
  choose: (status: Status) => void
}

function BoardOf({ board, status, choose }: BoardProps) {
  const names = Object.fromEntries(
    STATUSES.map((each) => [each, `${STATUS_NAMES[each]} ${board[each].length}`]),
  ) as Record<Status, string>
  return (
    <>
      <div class="only-narrow">
        <Tabs label="Status" tabs={names} chosen={status} choose={choose} />
      </div>
      <div class="board">
        {STATUSES.map((each) => (
          <section
            key={each}
            class={`column ${each === status ? 'is-chosen' : ''}`}
            aria-label={STATUS_NAMES[each]}
          >
            <h2 class={`column-head is-${each}`}>
              <Icon name={each} size={14} /> {STATUS_NAMES[each]}
              <span class="number dim">{board[each].length.toLocaleString()}</span>
            </h2>
            <Virtual
              items={board[each]}
              row={CARD}
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

function Card({ task }: { task: BriefTask }) {
  const { id, title, priority, project } = task
  return (
    <a
      class={`card is-${task.status}`}
      href={hrefOf('tasks', { ...Object.fromEntries(route.value.params), id })}
      onClick={(event) => {
        event.preventDefault()
        adjust({ id })
      }}
    >
      <span class="card-title">{title}</span>
      <span class="card-more dim">
        <span class="id">{id}</span>
        {priority >= 7 && <span class="high">P{priority}</span>}
        {project && <span>{project}</span>}
        <CardLast task={task} />
      </span>
    </a>
  )
}

/** The one thing more that a card has room for: who has it, what it waits for, or whose it is. */
function CardLast({ task: { assignee, unmet, user } }: { task: BriefTask }) {
  if (assignee) return <span class="card-agent">{assignee}</span>
  if (unmet > 0) return <span>waits for {unmet}</span>
  return user ? <span>{user}</span> : null
}
