import { agentKind } from '../../core/caller.ts'
import { type Status, STATUSES } from '../../core/rows.ts'
import { type BriefTask, loading } from '../data/tasks.ts'
import { nameOf } from '../parts/badge.tsx'
import { Icon } from '../parts/icon.tsx'
import { Opens } from '../parts/links.tsx'
import { by } from '../parts/noun.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { count, UNKNOWN } from '../parts/words.ts'

const CARD = 84

type Board = Record<Status, BriefTask[]>

/** A column for each status; on a phone they stand beside each other all the same. */
export function TaskBoard({ found }: { found: BriefTask[] }) {
  const board = boardOf(found)
  return (
    <div class="board" tabIndex={0} role="group" aria-label="Board">
      {STATUSES.map((each) => (
        <section key={each} class="column" aria-label={nameOf(each)}>
          <h2 class={`column-head is-${each}`}>
            <Icon name={each} size={14} /> {nameOf(each)}
            <span class="number dim">{saysLoaded(board[each].length)}</span>
          </h2>
          <Virtual
            items={board[each]}
            row={CARD}
            label={`${nameOf(each)} tasks`}
            keyOf={(task) => task.id}
            render={(task) => <Card task={task} />}
          />
        </section>
      ))}
    </div>
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
    board[each].sort(isOver ? by(({ updated_at }) => updated_at, -1) : byPriority)
  }
  return board
}

const byPriority = (a: BriefTask, b: BriefTask) =>
  b.priority - a.priority || (a.created_at < b.created_at ? -1 : 1)

function Card({ task }: { task: BriefTask }) {
  const { id, title, priority, project, assignee, unmet, user } = task
  return (
    <Opens id={id} class="card">
      <span class="card-title">{title}</span>
      <span class="card-more dim">
        <span class="id">{id}</span>
        {priority >= 7 && <span class="high">P{priority}</span>}
        {project && <span>{project}</span>}
        {assignee ? (
          <span class="is-accent">{agentKind(assignee, id)}</span>
        ) : unmet > 0 ? (
          <span>waits for {count(unmet, 'task')}</span>
        ) : (
          user && <span>{user}</span>
        )}
      </span>
    </Opens>
  )
}
