import { useComputed } from '@preact/signals'
import { pauseQueue } from '../actions.ts'
import { ask } from '../ask.ts'
import { aboutQueue, type QueueAnswer, type StatsAnswer } from '../data/about.ts'
import { useAsked } from '../data/asked.ts'
import { SHARE_SECONDS } from '../data/shares.ts'
import { changed, running, runningKnown } from '../data/tasks.ts'
import { Button } from '../parts/buttons.tsx'
import { Sparkline } from '../parts/chart.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { Page, Panel, Tile } from '../parts/frame.tsx'
import { count, UNKNOWN } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { isAdmin } from '../session.ts'
import { Alerts } from './alerts.tsx'
import { Limits } from './limits.tsx'
import { RunningTask } from './running_task.tsx'
import { Stuck } from './stuck.tsx'
import { UserShares } from './user_shares.tsx'

const LOOK_MS = 60_000

export function Now() {
  const queue = useAsked('queue', () => ask('queue.status'), { affects: aboutQueue })
  const stats = useAsked('hour', () => ask('stats.get', { since_seconds: SHARE_SECONDS }), {
    affects: ({ type }) => type === 'task.claimed' || type === 'task.moved',
    every_ms: LOOK_MS,
  })
  const [status, hour] = [queue.value.value, stats.value.value]
  return (
    <Page title="Now" aside={<QueueSwitch status={status} />}>
      <Stuck />
      <Tiles status={status} hour={hour} />
      <div class="now-grid">
        <div class="stack">
          <RunningTasks />
          {status && <UserShares status={status} stats={hour} />}
        </div>
        <div class="stack">
          <Alerts />
          <Trouble refusal={queue.refusal.value} />
          {status && <Limits status={status} />}
        </div>
      </div>
    </Page>
  )
}

function RunningTasks() {
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
        <Empty
          title="Nothing runs right now"
          command='leasehold queue add "…" --project P --user U'
        >
          Enqueue a task for a dispatcher, or let an agent claim one: leasehold task claim
        </Empty>
      ) : (
        <ul class="rows">
          {list.slice(0, 100).map((task) => (
            <RunningTask key={task.id} task={task} />
          ))}
        </ul>
      )}
      {list.length > 100 && (
        <p class="dim pad">
          <a href={hrefOf('tasks', { as: 'list', status: 'in_progress' })}>
            and {list.length - 100} more
          </a>
        </p>
      )}
    </Panel>
  )
}

function QueueSwitch({ status }: { status: QueueAnswer | undefined }) {
  if (!status || !isAdmin()) return null
  return (
    <Button act={() => pauseQueue(!status.paused)}>
      {status.paused ? 'Resume queue' : 'Pause queue'}
    </Button>
  )
}

interface TilesProps {
  status: QueueAnswer | undefined
  hour: StatsAnswer | undefined
}

function Tiles({ status, hour }: TilesProps) {
  const runs = useComputed(() => {
    void changed.value
    return running().length
  }).value
  const said = status ? tellQueue(status) : { busy: '', slots: UNKNOWN, waiting: '', is: UNKNOWN }
  const tasks = hour?.tasks
  return (
    <div class="tiles">
      <Tile name="Running" value={runningKnown.value ? runs : UNKNOWN} says={said.busy}>
        <Spark hour={hour} pick={(point) => point.claimed} says="claimed" />
      </Tile>
      <Tile name="Slots" value={said.slots} says={dispatchersIn(status)}>
        <Slots used={status?.active.slots_used ?? 0} max={status?.active.slots_max ?? 0} />
      </Tile>
      <Tile name="Waiting" value={status?.pending.total ?? UNKNOWN} says={said.waiting}>
        <Spark hour={hour} pick={(point) => point.enqueued} says="enqueued" />
      </Tile>
      <Tile
        name="Done in the last hour"
        value={tasks?.done ?? UNKNOWN}
        says={tasks ? `${tasks.failed} failed, ${tasks.cancelled} cancelled` : ''}
      >
        <Spark hour={hour} pick={(point) => point.done} says="done" />
      </Tile>
      <Tile name="Queue" value={said.is} says={pausedIn(status)} />
    </div>
  )
}

function tellQueue({ active, pending, user_locks, paused }: QueueAnswer) {
  const users = Object.keys(pending.by_user).length
  return {
    busy: count(user_locks.active, 'busy user'),
    slots: `${active.slots_used} / ${active.slots_max}`,
    waiting: `${pending.high} high priority, ${count(users, 'user')}`,
    is: paused ? 'Paused' : 'Open',
  }
}

interface SparkProps {
  hour: StatsAnswer | undefined
  pick: (point: StatsAnswer['series'][number]) => number
  says: string
}

function Spark({ hour, pick, says }: SparkProps) {
  const values = (hour?.series ?? []).map(pick)
  return <Sparkline values={values} label={`${says}, minute by minute in the last hour`} />
}

function dispatchersIn(status: QueueAnswer | undefined): string {
  if (!status) return ''
  const n = status.dispatchers.length
  return n === 0 ? 'no dispatcher: set projects in config.json' : count(n, 'dispatcher')
}

function pausedIn(status: QueueAnswer | undefined): string {
  if (!status) return ''
  const paused = [...status.paused_projects, ...status.paused_users]
  if (paused.length > 0) return `paused: ${paused.join(', ')}`
  const { max, used } = status.pool
  return max === null ? 'no limit on the pool' : `pool ${used} of ${max}`
}

function Slots({ used, max }: { used: number; max: number }) {
  return (
    <span class="slots" aria-hidden="true">
      {Array.from({ length: Math.min(max, 32) }, (_, i) => (
        <span key={i} class={i < used ? 'slot is-used' : 'slot'} />
      ))}
    </span>
  )
}
