import type { AnswerOf } from '../../operations/registry.ts'
import { useEffect } from 'preact/hooks'
import { ask } from '../ask.ts'
import { aboutTask, now, useAnswer, useAsked } from '../data/asked.ts'
import { locks, locksChanged, waitersOf } from '../data/locks.ts'
import { changed, tasks, wantTasks } from '../data/tasks.ts'
import { Acts } from '../parts/acts.tsx'
import { Badge } from '../parts/badge.tsx'
import { Answered, Empty, Facts, Page, Panel, Section, type ShownFact } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { AgentLink, TaskLink } from '../parts/links.tsx'
import { lastLinesOf } from '../parts/terminal.ts'
import { dayOf, secondsSince, span, took, withClocks } from '../parts/words.ts'
import { Commit, LandingWhy, LOOK_MS, ontoOf } from '../resources/landing.tsx'
import { Countdown, releases } from '../resources/lock.tsx'
import { actsOn, edits, type WholeTask } from '../resources/task_acts.ts'
import { hrefOf, leave, param } from '../route.ts'
import { Log } from './log.tsx'
import { Story } from './story.tsx'

type TaskRun = AnswerOf<'run.list'>['items'][number]

const EXPLAIN_MS = 5_000
const chosen = param('run', '')

/** One task: what went wrong first, then what it printed and its branch, beside its story. */
export function TaskPage({ id }: { id: string }) {
  const how = { affects: aboutTask(id) }
  const asked = useAnswer('task.get', { id }, how)
  const branch = useAsked(`branch ${id}`, (ending) => branchOf(id, ending), {
    ...how,
    every_ms: LOOK_MS,
  }).value
  const listed = useAnswer('run.list', { task_id: id, limit: 1000 }, how)
  const task = asked.value
  const runs = (listed.value?.items ?? []).toReversed()
  const run = runs.find((each) => each.id === chosen.value) ?? runs[0]
  const above = (
    <p class="above">
      <button type="button" class="back" onClick={leave}>
        ← Work
      </button>
      <span class="id">{id}</span>
      {task && <Badge of={task.status} />}
      {run && saysRun(run).map((said) => <span key={said}>{said}</span>)}
      {task && <span>version {task.version}</span>}
    </p>
  )
  return (
    <Page
      title={task?.title ?? `Task ${id}`}
      above={above}
      aside={task && <Acts of={[...actsOn(task), edits(task)]} />}
    >
      <Answered of={asked}>
        {(whole) => (
          <>
            <Wrong task={whole} run={runs[0]} landing={branch?.landing} />
            <Why task={whole} />
            <div class="columns">
              <div class="stack">
                <Answered of={listed}>{() => <Output runs={runs} run={run} />}</Answered>
                {branch && <TaskBranch task={whole} of={branch} />}
              </div>
              <div class="stack">
                <Story title="Story" none="Its events were pruned." filter={{ task_id: id }} />
                <Details task={whole} />
              </div>
            </div>
          </>
        )}
      </Answered>
    </Page>
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

interface WrongProps {
  task: WholeTask
  run: TaskRun | undefined
  landing: Branch['landing']
}

/** What went wrong, with the last that was said: by its command, or by the check of its landing. */
function Wrong({ task: { status }, run, landing }: WrongProps) {
  if (status === 'done' || status === 'cancelled' || status === 'in_progress') return null
  if (run?.status === 'failed' || run?.status === 'lost')
    return <FailedRun key={run.id} run={run} />
  if (landing?.status !== 'returned') return null
  return <LandingWhy landing={landing} label="What went wrong" />
}

const LAST_BYTES = 4_000
const LAST_LINES = 12

function FailedRun({ run }: { run: TaskRun }) {
  const asked = useAnswer('run.output', { id: run.id, bytes: LAST_BYTES })
  const lines = lastLinesOf(asked.value?.text ?? '', LAST_LINES)
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

/** Why it does not run, in the words of `explain`; what is over needs none. */
function Why({ task }: { task: WholeTask }) {
  const { id, status } = task
  const why = useAnswer('task.explain', { id }, { affects: aboutTask(id), every_ms: EXPLAIN_MS })
  if (status === 'done' || status === 'cancelled' || status === 'failed') return null
  return why.value ? <p class="explain">{withClocks(why.value.sentence)}</p> : null
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
                <Badge of={each.status} />
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

/** Its newest landing, and the newest worktree that it has or had. */
async function branchOf(task_id: string, signal: AbortSignal) {
  const { items } = await ask('land.list', { task_id, limit: 1 }, signal)
  const trees = await ask('worktree.list', { task_id }, signal)
  const landing = items[0] && (await ask('land.get', { id: items[0].id }, signal))
  return { landing, tree: trees.items.at(-1) }
}
type Branch = Awaited<ReturnType<typeof branchOf>>

/** Where its work is, and how far it got on its way to the target. */
function TaskBranch({ task, of: { landing, tree } }: { task: WholeTask; of: Branch }) {
  if (!landing && !tree) return null
  const badges = [tree?.state, landing?.status].flatMap((state) =>
    state ? <Badge key={state} of={state} /> : [],
  )
  const link = (tab: string, of: string, says: string) => (
    <a href={hrefOf('who', { tab, id: of })}>{says}</a>
  )
  const facts: ShownFact[] = [
    ['Branch', <code>{landing?.branch ?? tree?.branch}</code>],
    [
      'Landing',
      landing && link('landings', landing.id, `${landing.id} onto ${ontoOf(landing.target)}`),
    ],
    ['Worktree', tree && link('worktrees', tree.id, tree.id)],
    ['Proved by', proofOf(task)],
    ['Saved as', tree?.salvage && <code>{tree.salvage.ref}</code>],
  ]
  return (
    <Panel title="Branch" aside={<span class="buttons">{badges}</span>}>
      <div class="sheet-body">
        <Facts of={facts} />
        {landing?.reason && landing.status !== 'landed' && (
          <p class={landing.status === 'returned' ? 'is-bad' : 'dim'}>{landing.reason}</p>
        )}
      </div>
    </Panel>
  )
}

/** The commit at which its check passed; what an agent wrote there itself may have any shape. */
function proofOf({ metadata, status }: WholeTask) {
  const { proof } = metadata as { proof?: { commit?: unknown } }
  const commit = proof?.commit
  return status === 'done' && typeof commit === 'string' && <Commit of={commit} />
}

/** What it says, who has it, and what it depends on. */
function Details({ task }: { task: WholeTask }) {
  const { id, depends_on, body, metadata } = task
  void changed.value
  useEffect(() => wantTasks(depends_on), [depends_on.join(' ')])
  const needed = [...tasks.values()].filter((each) => each.depends_on.includes(id))
  return (
    <Panel title="Details">
      <div class="sheet-body">
        <LockOf id={id} />
        <Facts of={factsOf(task)} />
        <Section title="Waits for" of={depends_on.slice(0, LINKS_MAX).map(Linked)} />
        <Section
          title="Is waited for by"
          of={needed.slice(0, LINKS_MAX).map((each) => Linked(each.id))}
        />
        <Section title="Body">
          {body === '' ? <p class="dim">Empty.</p> : <pre class="body">{body}</pre>}
        </Section>
        {Object.keys(metadata).length > 0 && (
          <Section title="Metadata">
            <pre class="body">{JSON.stringify(metadata, null, 2)}</pre>
          </Section>
        )}
      </div>
    </Panel>
  )
}

const LINKS_MAX = 50

const Linked = (id: string) => (
  <li key={id}>
    <TaskLink id={id} />
    {tasks.has(id) && <Badge of={tasks.get(id)!.status} />}
  </li>
)

function LockOf({ id }: { id: string }) {
  void locksChanged.value
  const name = `task:${id}`
  const lock = locks.get(name)
  if (!lock) return null
  const line = waitersOf(name)
  return (
    <div class="lock-box">
      <div>
        Held by{' '}
        <strong>
          <AgentLink id={lock.holder} />
        </strong>
        <span class="dim number"> fence {lock.fence}</span>
      </div>
      <Countdown name={name} />
      {line.length > 0 && <span class="dim">{line.length} waiting</span>}
      <Acts of={[releases(lock)]} />
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
  ['Labels', task.labels.length > 0 && task.labels.join(', ')],
  [
    'Will change',
    task.touches.length > 0 && task.touches.map((each) => <code key={each}>{each} </code>),
  ],
]
