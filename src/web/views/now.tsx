import { useComputed } from '@preact/signals'
import { aboutAny, useAnswer } from '../data/asked.ts'
import { locks, locksChanged, locksKnown } from '../data/locks.ts'
import { health, waitingFor } from '../data/stuck.ts'
import { type BriefTask, changed, running, runningKnown } from '../data/tasks.ts'
import { Acts } from '../parts/acts.tsx'
import { Sparkline } from '../parts/sparkline.tsx'
import { Empty, Loading, Page, Panel, Tile, Trouble } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { AgentLink, TaskLink } from '../parts/links.tsx'
import { Rows } from '../parts/list.tsx'
import { by } from '../parts/noun.tsx'
import { lastLinesOf } from '../parts/terminal.ts'
import { count, UNKNOWN, withClocks } from '../parts/words.ts'
import { Held } from '../resources/agent.tsx'
import { Countdown } from '../resources/lock.tsx'
import { Lasts } from '../resources/task.tsx'
import { cancels } from '../resources/task_acts.ts'
import { hrefOf } from '../route.ts'
import { Blocked, Inbox } from './blocked.tsx'
import { pauses, type QueueAnswer, useHour, useQueue } from './settings.tsx'

export function Now() {
  const { value: status, refusal } = useQueue()
  return (
    <Page title="Now" aside={status && <Acts of={[pauses(status.paused)]} />}>
      <Health />
      <Trouble refusal={refusal} />
      <Figures status={status} />
      <Strip />
      <Blocked />
      <Inbox />
      <div class="columns">
        <Running />
        <Holders />
      </div>
    </Page>
  )
}

/** How the whole is, in one sentence. */
function Health() {
  const { state, why } = health.value
  if (state === 'unknown') return null
  const isFine = state === 'ok'
  return (
    <p class={`health-says is-${state}`}>
      <Icon name={isFine ? 'done' : 'lost'} />
      <span>{isFine ? 'Healthy: work goes on by itself.' : withClocks(why)}</span>
    </p>
  )
}

function Figures({ status }: { status: QueueAnswer | undefined }) {
  const hour = useHour('task.moved').value
  const runs = useComputed(() => {
    void changed.value
    return running().length
  }).value
  const { active, pending, dispatchers } = status ?? {}
  const users = Object.keys(pending?.by_user ?? {}).length
  const tasks = hour?.tasks
  return (
    <div class="tiles">
      <Tile
        name="Running"
        value={runningKnown.value ? runs : UNKNOWN}
        says={active ? count(Object.keys(active.by_user).length, 'busy user') : ''}
      />
      <Tile
        name="Slots"
        value={active ? `${active.slots_used} / ${active.slots_max}` : UNKNOWN}
        says={dispatchers ? count(dispatchers.length, 'dispatcher') : ''}
      />
      <Tile
        name="Waiting"
        value={pending?.total ?? UNKNOWN}
        says={pending ? `${pending.high} high priority, ${count(users, 'user')}` : ''}
      />
      <Tile
        name="Done in the last hour"
        value={tasks?.done ?? UNKNOWN}
        says={tasks ? `${tasks.failed} failed, ${tasks.cancelled} cancelled` : ''}
      >
        <Sparkline
          values={(hour?.series ?? []).map(({ done }) => done)}
          label="done, minute by minute in the last hour"
        />
      </Tile>
    </div>
  )
}

/** How much waits for a person: nothing else is kept from going on by it. */
function Strip() {
  const conflicts = useAnswer('conflict.list', { limit: 1000 }, { affects: aboutAny('memory') })
  const [failed, review] = [waitingFor('failed'), waitingFor('review')]
  const disagree = conflicts.value?.items.length ?? 0
  const all: [number, string, string][] = [
    [failed.n, `${failed.n}${failed.more ? '+' : ''} failed`, hrefOf('work', { show: 'failed' })],
    [
      review.n,
      `${review.n}${review.more ? '+' : ''} to review`,
      hrefOf('work', { show: 'review' }),
    ],
    [
      disagree,
      disagree === 1 ? '1 note disagrees' : `${disagree} notes disagree`,
      hrefOf('knowledge', { tab: 'conflicts' }),
    ],
  ]
  const some = all.filter(([n]) => n > 0)
  if (some.length === 0) return null
  return (
    <p class="inbox" aria-label="Waits for a person">
      {some.map(([, says, href]) => (
        <a key={says} href={href}>
          {says}
        </a>
      ))}
    </p>
  )
}

const RUNNING_MAX = 100

function Running() {
  const list = useComputed(() => {
    void changed.value
    return running().toSorted(by(({ assigned_at }) => assigned_at ?? ''))
  }).value
  return (
    <Panel title="Running" aside={runningKnown.value && <Count n={list.length} />}>
      {!runningKnown.value ? (
        <Loading />
      ) : list.length === 0 ? (
        <Empty title="Nothing runs right now">
          A task runs when an agent claims it, or when a dispatcher starts one on it.
        </Empty>
      ) : (
        <Rows
          items={list}
          keyOf={({ id }) => id}
          max={RUNNING_MAX}
          render={(task) => <RunningTask task={task} />}
          more={(n) => <a href={hrefOf('work', { show: 'running' })}>and {n} more</a>}
        />
      )}
    </Panel>
  )
}

const Count = ({ n }: { n: number }) => <span class="number">{n.toLocaleString()}</span>

function RunningTask({ task }: { task: BriefTask }) {
  const { id, assignee, project, user, assigned_at, attempts, queue } = task
  const stops = { ...cancels(id, true), says: 'Stop', label: `Stop task ${id}` }
  return (
    <div class="line running">
      <div class="grows">
        <p class="title">
          <TaskLink id={id} />
        </p>
        <p class="dim one-line">
          <AgentLink id={assignee ?? ''} />
          {project && ` · ${project}`}
          {user && ` · ${user}`}
        </p>
        {queue && <LastLine run={`${id}.${attempts}`} />}
      </div>
      <div class="running-time">
        {assigned_at && <Lasts since={assigned_at} />}
        <Countdown name={`task:${id}`} />
      </div>
      <Acts quiet of={[stops]} />
    </div>
  )
}

const GLANCE_MS = 2_000
const GLANCE_BYTES = 600

/** What its command said last, as far as it is kept on the machine of the server. */
function LastLine({ run }: { run: string }) {
  const output = useAnswer('run.output', { id: run, bytes: GLANCE_BYTES }, { every_ms: GLANCE_MS })
  const [line] = lastLinesOf(output.value?.text ?? '', 1)
  return <code class="last-line">{line ?? 'no output yet'}</code>
}

/** What a run has anyway says nothing of who has which files. */
const IMPLIED = /^(?:task|user):/

/** For those who have agents and no queue: which agent holds what. */
function Holders() {
  const holders = useComputed(() => {
    void locksChanged.value
    const found = new Map<string, string[]>()
    for (const { name, holder } of locks.values()) {
      if (!IMPLIED.test(name)) found.set(holder, [...(found.get(holder) ?? []), name])
    }
    return [...found].toSorted(by(([holder]) => holder))
  }).value
  return (
    <Panel
      title="Agents and what they hold"
      aside={locksKnown.value && <Count n={holders.length} />}
    >
      {!locksKnown.value && <Loading />}
      {locksKnown.value && holders.length === 0 && (
        <p class="dim pad">No agent holds a file or a lock of its own.</p>
      )}
      <Rows
        items={holders}
        keyOf={([holder]) => holder}
        max={12}
        render={([holder, names]) => (
          <div class="line">
            <span class="holder">
              <AgentLink id={holder} />
            </span>
            <Held names={names} max={6} />
          </div>
        )}
        more={(n) => <a href={hrefOf('who')}>and {n} more</a>}
      />
    </Panel>
  )
}
