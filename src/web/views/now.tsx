import { useComputed } from '@preact/signals'
import { cancelTask, pauseQueue } from '../actions.ts'
import { aboutMemory, aboutQueue, type QueueAnswer, type StatsAnswer } from '../data/about.ts'
import { now, useAnswer } from '../data/asked.ts'
import { locks, locksChanged, locksKnown } from '../data/locks.ts'
import { SHARE_SECONDS } from '../data/shares.ts'
import { health, waitingFor } from '../data/stuck.ts'
import { type BriefTask, changed, running, runningKnown } from '../data/tasks.ts'
import { Acts } from '../parts/buttons.tsx'
import { Sparkline } from '../parts/chart.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { Page, Panel, Tile } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { lastLinesOf } from '../parts/terminal.ts'
import { count, secondsSince, span, UNKNOWN, withClocks } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { Blocked } from './blocked.tsx'

const LOOK_MS = 60_000
const SHOWN_MAX = 100

export function Now() {
  const queue = useAnswer('queue.status', {}, { affects: aboutQueue })
  const stats = useAnswer(
    'stats.get',
    { since_seconds: SHARE_SECONDS },
    { affects: ({ type }) => type === 'task.moved', every_ms: LOOK_MS },
  )
  const [status, hour] = [queue.value.value, stats.value.value]
  const paused = status?.paused ?? false
  const says = paused ? 'Resume queue' : 'Pause queue'
  const turn = { says, admin: true, act: () => pauseQueue(!paused) }
  return (
    <Page title="Now" aside={status && <Acts of={[turn]} />}>
      <Health />
      <Trouble refusal={queue.refusal.value} />
      <Figures status={status} hour={hour} />
      <Inbox />
      <Blocked />
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

interface FiguresProps {
  status: QueueAnswer | undefined
  hour: StatsAnswer | undefined
}

function Figures({ status, hour }: FiguresProps) {
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

/** What waits for a person, and can be emptied: nothing else is kept from going on by it. */
function Inbox() {
  const conflicts = useAnswer('conflict.list', { limit: 1000 }, { affects: aboutMemory })
  const [failed, review] = [waitingFor('failed'), waitingFor('review')]
  const disagree = conflicts.value.value?.items.length ?? 0
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

function Running() {
  const list = useComputed(() => {
    void changed.value
    return running().toSorted((a, b) => ((a.assigned_at ?? '') < (b.assigned_at ?? '') ? -1 : 1))
  }).value
  if (!runningKnown.value) {
    return (
      <Panel title="Running">
        <Loading />
      </Panel>
    )
  }
  return (
    <Panel title="Running" aside={<span class="number">{list.length}</span>}>
      {list.length === 0 ? (
        <Empty title="Nothing runs right now">
          A task runs when an agent claims it, or when a dispatcher starts one on it.
        </Empty>
      ) : (
        <ul class="rows">
          {list.slice(0, SHOWN_MAX).map((task) => (
            <RunningTask key={task.id} task={task} />
          ))}
        </ul>
      )}
      {list.length > SHOWN_MAX && (
        <p class="pad">
          <a href={hrefOf('work', { show: 'running' })}>and {list.length - SHOWN_MAX} more</a>
        </p>
      )}
    </Panel>
  )
}

function RunningTask({ task }: { task: BriefTask }) {
  const { id, title, assignee, project, user, assigned_at, attempts, queue } = task
  return (
    <li class="line running">
      <div class="grows">
        <a class="title" href={hrefOf('work', { id })}>
          <span class="id">{id}</span> {title}
        </a>
        <p class="dim one-line">
          <a href={hrefOf('who', { id: assignee ?? '' })}>{assignee}</a>
          {project && ` · ${project}`}
          {user && ` · ${user}`}
        </p>
        {queue && <LastLine run={`${id}.${attempts}`} />}
      </div>
      <div class="running-time">
        {assigned_at && (
          <span class="number" title={`since ${assigned_at}`}>
            {span(secondsSince(assigned_at, now.value))}
          </span>
        )}
        <Countdown name={`task:${id}`} />
      </div>
      <Acts
        kind="quiet"
        of={[{ says: 'Stop', label: `Stop task ${id}`, act: () => cancelTask(id, true) }]}
      />
    </li>
  )
}

const GLANCE_MS = 2_000
const GLANCE_BYTES = 600

/** What its command said last, as far as it is kept on the machine of the server. */
function LastLine({ run }: { run: string }) {
  const output = useAnswer('run.output', { id: run, bytes: GLANCE_BYTES }, { every_ms: GLANCE_MS })
  const [line] = lastLinesOf(output.value.value?.text ?? '', 1)
  return <code class="last-line">{line ?? 'no output yet'}</code>
}

const HOLDERS_MAX = 12
/** What a run has anyway says nothing of who has which files. */
const IMPLIED = /^(?:task|user|leasehold):/

/** For those who have agents and no queue: which agent holds what. */
function Holders() {
  const holders = useComputed(() => {
    void locksChanged.value
    const found = new Map<string, string[]>()
    for (const { name, holder } of locks.values()) {
      if (!IMPLIED.test(name)) found.set(holder, [...(found.get(holder) ?? []), name])
    }
    return [...found].toSorted(([a], [b]) => (a < b ? -1 : 1))
  }).value
  const rest = holders.length - HOLDERS_MAX
  return (
    <Panel
      title="Agents and what they hold"
      aside={locksKnown.value && <span class="number">{holders.length}</span>}
    >
      {!locksKnown.value && <Loading />}
      {locksKnown.value && holders.length === 0 && (
        <p class="dim pad">No agent holds a file or a lock of its own.</p>
      )}
      <ul class="rows">
        {holders.slice(0, HOLDERS_MAX).map(([holder, names]) => (
          <li key={holder} class="line">
            <a class="holder" href={hrefOf('who', { id: holder })}>
              {holder}
            </a>
            <span class="grows tags">
              {names.slice(0, 6).map((name) => (
                <a key={name} class="tag" href={hrefOf('who', { tab: 'locks', id: name })}>
                  {name}
                </a>
              ))}
              {names.length > 6 && <span class="dim">and {names.length - 6} more</span>}
            </span>
          </li>
        ))}
      </ul>
      {rest > 0 && (
        <p class="pad">
          <a href={hrefOf('who')}>and {rest} more</a>
        </p>
      )}
    </Panel>
  )
}
