import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { ask } from '../ask.ts'
import { aboutTask, type TaskRun, type WholeTask } from '../data/about.ts'
import { now, useAsked } from '../data/asked.ts'
import { RunBadge, StatusBadge } from '../parts/badge.tsx'
import { Button } from '../parts/buttons.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { Page, Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { Terminal } from '../parts/terminal.ts'
import { secondsSince, span, took, withClocks } from '../parts/words.ts'
import { leave, param } from '../route.ts'
import { mayWork } from '../session.ts'
import { Log } from './log.tsx'
import { Past } from './past.tsx'
import { TaskBranch } from './task_branch.tsx'
import { TaskActions } from './task_actions.tsx'
import { TaskEdit } from './task_edit.tsx'
import { TaskDetails } from './task_overview.tsx'
import { RunFiles, RunNotes, RunSpans } from './run_traces.tsx'

const LOOK_MS = 5_000
const chosen = param('run', '')

/** One task: what became of it first, then what it printed beside its history. */
export function TaskPage({ id }: { id: string }) {
  const asked = useAsked(id, () => ask('task.get', { id }), { affects: aboutTask(id) })
  const listed = useAsked(id, () => ask('run.list', { task_id: id, limit: 1000 }), {
    affects: aboutTask(id),
  })
  const isEditing = useSignal(false)
  const task = asked.value.value
  const runs = (listed.value.value?.items ?? []).toReversed()
  const run = runs.find((each) => each.id === chosen.value) ?? runs[0]
  const edit = mayWork() && (
    <Button pressed={isEditing.value} act={() => (isEditing.value = !isEditing.value)}>
      Edit
    </Button>
  )
  return (
    <Page
      title={task?.title ?? `Task ${id}`}
      above={<Above id={id} task={task} run={run} />}
      aside={
        task && (
          <>
            <TaskActions task={task} />
            {edit}
          </>
        )
      }
    >
      <Trouble refusal={asked.refusal.value ?? listed.refusal.value} />
      {!task && !asked.refusal.value && <Loading />}
      {task && (
        <>
          <Failure task={task} run={runs[0]} />
          <Why task={task} />
          <div class="task-grid">
            <div class="stack">
              {listed.value.value && <Output runs={runs} run={run} task={task} />}
              {run && <RunSpans run={run} />}
            </div>
            <div class="stack">
              {isEditing.value && (
                <Panel title="Edit">
                  <TaskEdit task={task} />
                </Panel>
              )}
              <TaskBranch task={task} />
              <Past title="History" none="Its events were pruned." filter={{ task_id: id }} />
              <TaskDetails task={task} />
              {run && <RunFiles run={run} />}
              {run && <RunNotes run={run} />}
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
    <p class="task-head">
      <button type="button" class="back" onClick={leave}>
        ← Tasks
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

/** What went wrong comes first, with the last that its command said. */
function Failure({ task, run }: { task: WholeTask; run: TaskRun | undefined }) {
  const isBad = run?.status === 'failed' || run?.status === 'lost'
  if (!isBad || task.status === 'done' || task.status === 'cancelled') return null
  return <FailedRun key={run.id} run={run} />
}

const LAST_BYTES = 4_000
const LAST_LINES = 12

function FailedRun({ run }: { run: TaskRun }) {
  const asked = useAsked(run.id, () => ask('run.output', { id: run.id, bytes: LAST_BYTES }))
  const lines = lastLinesOf(asked.value.value?.text ?? '')
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

function lastLinesOf(text: string): string[] {
  const terminal = new Terminal()
  terminal.write(text)
  const lines = Array.from({ length: terminal.length }, (_, i) => terminal.text(i))
  return lines.filter((line) => line.trim() !== '').slice(-LAST_LINES)
}

/** Why it does not run, in the words of `explain`; what is over needs none. */
function Why({ task }: { task: WholeTask }) {
  const { id, status, version } = task
  const why = useAsked(`${id} ${version}`, () => ask('task.explain', { id }), {
    every_ms: LOOK_MS,
  })
  if (status === 'done' || status === 'cancelled' || status === 'failed') return null
  return why.value.value ? <p class="explain">{withClocks(why.value.value.sentence)}</p> : null
}

interface OutputProps {
  runs: TaskRun[]
  run: TaskRun | undefined
  task: WholeTask
}

function Output({ runs, run, task }: OutputProps) {
  const aside: ComponentChildren = runs.length > 0 && `${runs.length} runs`
  return (
    <Panel title="Output" class="output" aside={runs.length > 1 && aside}>
      {runs.length > 1 && (
        <ul class="runs">
          {runs.map((each) => (
            <li key={each.id}>
              <button
                type="button"
                class="run"
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
        <Empty title="It has not been run yet" command={`leasehold task explain ${task.id}`}>
          Every attempt is listed here, with what its command printed.
        </Empty>
      )}
    </Panel>
  )
}
