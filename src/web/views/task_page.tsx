import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { forceRelease } from '../actions.ts'
import { ask } from '../ask.ts'
import { aboutTask, type TaskRun, type WholeTask } from '../data/about.ts'
import { now, useAnswer, useAsked } from '../data/asked.ts'
import { LOOK_MS } from '../data/branches.ts'
import { locks, locksChanged, waitersOf } from '../data/locks.ts'
import { changed, tasks, wantTasks } from '../data/tasks.ts'
import { RunBadge, StatusBadge, Tag } from '../parts/badge.tsx'
import { Acts, Button } from '../parts/buttons.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { type ShownFact, Facts, Page, Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { lastLinesOf } from '../parts/terminal.ts'
import { dayOf, secondsSince, span, took, withClocks } from '../parts/words.ts'
import { LandingWhy } from '../resources/landing.tsx'
import { actsOn, TaskLink } from '../resources/task.tsx'
import { hrefOf, leave, param } from '../route.ts'
import { mayWork } from '../session.ts'
import { Log } from './log.tsx'
import { Story } from './story.tsx'
import { TaskBranch } from './task_branch.tsx'
import { TaskEdit } from './task_edit.tsx'

const EXPLAIN_MS = 5_000
const chosen = param('run', '')

/** One task: what went wrong first, then what it printed and its branch, beside its story. */
export function TaskPage({ id }: { id: string }) {
  const affects = aboutTask(id)
  const asked = useAnswer('task.get', { id }, { affects })
  const listed = useAnswer(
    'run.list',
    { task_id: id, limit: 1000 },
    {
      affects,
    },
  )
  const isEditing = useSignal(false)
  const task = asked.value.value
  const runs = (listed.value.value?.items ?? []).toReversed()
  const run = runs.find((each) => each.id === chosen.value) ?? runs[0]
  return (
    <Page
      title={task?.title ?? `Task ${id}`}
      above={<Above id={id} task={task} run={run} />}
      aside={
        task && (
          <>
            <Acts of={actsOn(task)} />
            {mayWork() && (
              <Button pressed={isEditing.value} act={() => (isEditing.value = !isEditing.value)}>
                Edit
              </Button>
            )}
          </>
        )
      }
    >
      <Trouble refusal={asked.refusal.value ?? listed.refusal.value} />
      {!task && !asked.refusal.value && <Loading />}
      {task && (
        <>
          <Wrong task={task} run={runs[0]} />
          <Why task={task} />
          <div class="columns">
            <div class="stack">
              {listed.value.value && <Output runs={runs} run={run} />}
              <TaskBranch task={task} />
            </div>
            <div class="stack">
              {isEditing.value && (
                <Panel title="Edit">
                  <TaskEdit task={task} />
                </Panel>
              )}
              <Story title="Story" none="Its events were pruned." filter={{ task_id: id }} />
              <Details task={task} />
            </div>
          </div>
        </>
      )}
    </Page>
  )
}

interface AboveProps {
  id: string
  task: WholeTask | undefined
  run: TaskRun | undefined
}

function Above({ id, task, run }: AboveProps) {
  return (
    <p class="above">
      <button type="button" class="back" onClick={leave}>
        ← Work
      </button>
      <span class="id">{id}</span>
      {task && <StatusBadge status={task.status} />}
      {run && saysRun(run).map((said) => <span key={said}>{said}</span>)}
      {task && <span>version {task.version}</span>}
    </p>
  )
}

/** Its newest run in a few words: which, how long, where, and how it ended. */
function saysRun(run: TaskRun): string[] {
  const { id, started_at, ended_at, exit_code, signal, host, pid } = run
  const seconds = secondsSince(started_at, ended_at === null ? now.value : Date.parse(ended_at))
  return [
    `attempt ${id.slice(id.lastIndexOf('.') + 1)}`,
    ended_at === null ? `for ${span(seconds)}` : `took ${took(seconds)}`,
    ...(exit_code === null ? [] : [`exit ${exit_code}`]),
    ...(signal === null ? [] : [signal]),
    ...(host === null ? [] : [`on ${host}${pid === null ? '' : `, PID ${pid}`}`]),
  ]
}

/** What went wrong, with the last that was said: by its command, or by the check of its landing. */
function Wrong({ task: { id, status }, run }: { task: WholeTask; run: TaskRun | undefined }) {
  if (status === 'done' || status === 'cancelled' || status === 'in_progress') return null
  const isBad = run?.status === 'failed' || run?.status === 'lost'
  return isBad ? <FailedRun key={run.id} run={run} /> : <CameBack id={id} />
}

const LAST_BYTES = 4_000
const LAST_LINES = 12

function FailedRun({ run }: { run: TaskRun }) {
  const asked = useAnswer('run.output', { id: run.id, bytes: LAST_BYTES })
  const lines = lastLinesOf(asked.value.value?.text ?? '', LAST_LINES)
  return (
    <section class="failure" aria-label="What went wrong">
      <strong>
        <Icon name="failed" /> Run {run.id} {run.status === 'lost' ? 'was lost' : 'failed'}
        {run.outcome !== null && `: ${withClocks(run.outcome)}`}
      </strong>
      {lines.length > 0 && <pre>{lines.join('\n')}</pre>}
    </section>
  )
}

/** Its newest landing, if that came back. */
function CameBack({ id }: { id: string }) {
  const newest = async (signal: AbortSignal) => {
    const { items } = await ask('land.list', { task_id: id, limit: 1 }, signal)
    const [landing] = items
    return landing?.status === 'returned' ? ask('land.get', { id: landing.id }, signal) : null
  }
  const landing = useAsked(id, newest, { affects: aboutTask(id), every_ms: LOOK_MS }).value.value
  return landing ? <LandingWhy landing={landing} label="What went wrong" /> : null
}

/** Why it does not run, in the words of `explain`; what is over needs none. */
function Why({ task }: { task: WholeTask }) {
  const { id, status } = task
  const why = useAnswer('task.explain', { id }, { affects: aboutTask(id), every_ms: EXPLAIN_MS })
  if (status === 'done' || status === 'cancelled' || status === 'failed') return null
  return why.value.value ? <p class="explain">{withClocks(why.value.value.sentence)}</p> : null
}

function Output({ runs, run }: { runs: TaskRun[]; run: TaskRun | undefined }) {
  return (
    <Panel title="Log" aside={runs.length > 1 && `${runs.length} runs`}>
      {runs.length > 1 && (
        <ul class="choices">
          {runs.map((each) => (
            <li key={each.id}>
              <button
                type="button"
                class="choice"
                aria-pressed={each.id === run?.id}
                onClick={() => (chosen.value = each.id)}
              >
                <span class="id">{each.id}</span>
                <RunBadge status={each.status} />
              </button>
            </li>
          ))}
        </ul>
      )}
      {run ? (
        <Log key={run.id} id={run.id} />
      ) : (
        <Empty title="It has not been run yet">
          Every attempt is listed here, with what its command printed.
        </Empty>
      )}
    </Panel>
  )
}

/** What it says, who has it, and what it depends on. */
function Details({ task }: { task: WholeTask }) {
  return (
    <Panel title="Details">
      <div class="sheet-body">
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
      </div>
    </Panel>
  )
}

function LockOf({ id }: { id: string }) {
  void locksChanged.value
  const name = `task:${id}`
  const lock = locks.get(name)
  if (!lock) return null
  const { holder, fence } = lock
  const line = waitersOf(name)
  return (
    <div class="lock-box">
      <div>
        Held by{' '}
        <a href={hrefOf('who', { id: holder })}>
          <strong>{holder}</strong>
        </a>
        <span class="dim number"> fence {fence}</span>
      </div>
      <Countdown name={name} />
      {line.length > 0 && <span class="dim">{line.length} waiting</span>}
      <Acts
        of={[
          {
            says: 'Force-release',
            kind: 'danger-quiet',
            admin: true,
            act: () => forceRelease(name, holder),
          },
        ]}
      />
    </div>
  )
}

const factsOf = (task: WholeTask): ShownFact[] => [
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
  [
    'Will change',
    task.touches.length > 0 && task.touches.map((each) => <code key={each}>{each} </code>),
  ],
]

const LINKS_MAX = 50

function Dependencies({ task }: { task: WholeTask }) {
  void changed.value
  useEffect(() => wantTasks(task.depends_on), [task.depends_on.join(' ')])
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
              {ids.slice(0, LINKS_MAX).map((id) => (
                <li key={id}>
                  <TaskLink id={id} />
                  {tasks.has(id) && <StatusBadge status={tasks.get(id)!.status} />}
                </li>
              ))}
            </ul>
          </div>
        ))}
    </>
  )
}
