import type { ComponentChildren } from 'preact'
import { forceRelease } from '../actions.ts'
import type { WholeTask } from '../data/about.ts'
import { locks, locksChanged, waitersOf, watch } from '../data/locks.ts'
import { changed, tasks } from '../data/tasks.ts'
import { StatusBadge, Tag } from '../parts/badge.tsx'
import { Button } from '../parts/buttons.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Facts, Panel } from '../parts/frame.tsx'
import { dayOf } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { isAdmin } from '../session.ts'

/** What it says, who has it, and what it depends on. */
export function TaskDetails({ task }: { task: WholeTask }) {
  return (
    <Panel title="Details" class="details">
      <LockOf id={task.id} />
      <Facts of={factsOf(task)} />
      <Dependencies task={task} />
      <h3>Body</h3>
      {task.body === '' ? <p class="dim">Empty.</p> : <pre class="body">{task.body}</pre>}
      {Object.keys(task.metadata).length > 0 && (
        <>
          <h3>Metadata</h3>
          <pre class="body">{JSON.stringify(task.metadata, null, 2)}</pre>
        </>
      )}
    </Panel>
  )
}

function LockOf({ id }: { id: string }) {
  void locksChanged.value
  const name = `task:${id}`
  const lock = locks.get(name)
  watch([name])
  if (!lock) return null
  const line = waitersOf(name)
  return (
    <div class="lock-box">
      <div>
        Held by{' '}
        <a href={hrefOf('agents', { id: lock.holder })}>
          <strong>{lock.holder}</strong>
        </a>
        <span class="dim number"> fence {lock.fence}</span>
      </div>
      <Countdown until_ms={lock.until_ms} ttl_seconds={lock.ttl_seconds} />
      {line.length > 0 && <span class="dim">{line.length} waiting</span>}
      {isAdmin() && (
        <Button kind="danger-quiet" act={() => forceRelease(name, lock.holder)}>
          Force-release
        </Button>
      )}
    </div>
  )
}

function factsOf(task: WholeTask): [string, ComponentChildren][] {
  return [
    ['Project', task.project],
    ['User', task.user],
    ['Priority', task.priority >= 7 ? `${task.priority} (high)` : String(task.priority)],
    ['Group', task.group],
    ['Assignee', task.assignee],
    ['Assigned to', task.assigned_to],
    ['Attempts', String(task.attempts)],
    ['Created', `${dayOf(task.created_at)} by ${task.created_by}`],
    ['Changed', dayOf(task.updated_at)],
    ['Labels', task.labels.length > 0 && task.labels.map((each) => <Tag key={each}>{each}</Tag>)],
  ]
}

function Dependencies({ task }: { task: WholeTask }) {
  void changed.value
  const needed = [...tasks.values()].filter(({ depends_on }) => depends_on.includes(task.id))
  const lists: [string, string[]][] = [
    ['Waits for', task.depends_on],
    ['Is waited for by', needed.map(({ id }) => id)],
  ]
  return (
    <>
      {lists
        .filter(([, ids]) => ids.length > 0)
        .map(([title, ids]) => (
          <div key={title}>
            <h3>{title}</h3>
            <ul class="links">
              {ids.slice(0, 50).map((id) => (
                <li key={id}>
                  <a href={hrefOf('tasks', { id })}>
                    <span class="id">{id}</span> {tasks.get(id)?.title}
                  </a>
                  {tasks.has(id) && <StatusBadge status={tasks.get(id)!.status} />}
                </li>
              ))}
            </ul>
          </div>
        ))}
    </>
  )
}
