import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { cancelTask, retryTask } from '../actions.ts'
import { ask } from '../ask.ts'
import { aboutTask, type WholeTask } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { Button, IconButton } from '../parts/buttons.tsx'
import { StatusBadge } from '../parts/badge.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { Tabs } from '../parts/frame.tsx'
import { adjust } from '../route.ts'
import { mayWork } from '../session.ts'
import { EventRow } from './events.tsx'
import { TaskEdit } from './task_edit.tsx'
import { TaskOverview } from './task_overview.tsx'
import { TaskRuns } from './task_runs.tsx'

const TABS = { overview: 'Overview', runs: 'Runs and log', history: 'History', edit: 'Edit' }
type Tab = keyof typeof TABS

/** One task, beside the board. */
export function TaskDrawer({ id }: { id: string }) {
  const asked = useAsked(id, () => ask('task.get', { id }), { affects: aboutTask(id) })
  const tab = useSignal<Tab>('overview')
  const box = useRef<HTMLElement>(null)
  useEffect(() => box.current!.focus(), [])
  const task = asked.value.value
  const { edit: _, ...looks } = TABS
  return (
    <aside ref={box} class="drawer" aria-label={`Task ${id}`} tabIndex={-1}>
      <header class="drawer-head">
        <div>
          <span class="id">{id}</span>
          {task && <StatusBadge status={task.status} />}
          {task && <span class="dim number">version {task.version}</span>}
        </div>
        <IconButton icon="close" label="Close" act={() => adjust({ id: null })} />
      </header>
      <Trouble refusal={asked.refusal.value} />
      {task && (
        <>
          <h2 class="drawer-title">{task.title}</h2>
          <TaskActions task={task} />
          <Tabs
            label="About this task"
            tabs={mayWork() ? TABS : (looks as typeof TABS)}
            chosen={tab.value}
            choose={(key) => (tab.value = key)}
          />
          <div class="drawer-body">
            <Shown tab={tab.value} task={task} />
          </div>
        </>
      )}
    </aside>
  )
}

function Shown({ tab, task }: { tab: Tab; task: WholeTask }) {
  if (tab === 'runs') return <TaskRuns task={task} />
  if (tab === 'history') return <History id={task.id} />
  return tab === 'edit' ? <TaskEdit task={task} /> : <TaskOverview task={task} />
}

function TaskActions({ task }: { task: WholeTask }) {
  if (!mayWork()) return null
  const { id, status } = task
  const mayCancel = status === 'todo' || status === 'in_progress' || status === 'review'
  const mayRetry = status === 'failed' || status === 'cancelled'
  return (
    <div class="buttons">
      {mayCancel && (
        <Button kind="danger-quiet" act={() => cancelTask(id, status === 'in_progress')}>
          Cancel task
        </Button>
      )}
      {mayRetry && <Button act={() => retryTask(id)}>Retry</Button>}
    </div>
  )
}

function History({ id }: { id: string }) {
  const past = useAsked(id, () => ask('event.list', { task_id: id, limit: 200 }), {
    affects: aboutTask(id),
  })
  const events = past.value.value?.items ?? []
  return (
    <>
      <Trouble refusal={past.refusal.value} />
      {past.value.value && events.length === 0 && <Empty title="Its events were pruned" />}
      <div class="history">
        {events.map((event) => (
          <EventRow key={event.position} event={event} />
        ))}
      </div>
    </>
  )
}
