import { useSignal } from '@preact/signals'
import { isRefusal } from '../../core/refusal.ts'
import { type EventFilter, useEvents, useExport } from '../data/events.ts'
import { useCalm } from '../data/asked.ts'
import type { ShownEvent } from '../data/live.ts'
import { Button } from '../parts/buttons.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { Page, Search, Select } from '../parts/frame.tsx'
import { save } from '../parts/save.ts'
import { toast } from '../parts/toast.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { clockOf, count, dayOf } from '../parts/words.ts'
import { hrefOf, param } from '../route.ts'
import { isNarrow } from '../theme.ts'

const KINDS = [
  '',
  'task',
  'lease',
  'ticket',
  'run',
  'landing',
  'worktree',
  'agent',
  'memory',
  'queue',
  'alert',
] as const
const TIMES = { '': 0, '5m': 300, '1h': 3600, '6h': 21_600, '1d': 86_400, '7d': 604_800 }
type Time = keyof typeof TIMES

const type = param('type', '')
const by = param('by', '')
const lock = param('lock', '')
const task = param('task', '')
const time = param<Time>('time', '')

/** What is asked of the server; what is typed, once the person has paused. */
function useFilter(): EventFilter {
  const said = { by: by.value, lock: lock.value, task_id: task.value }
  const calm = JSON.parse(useCalm(JSON.stringify(said))) as typeof said
  const asked = { type: type.value, ...calm }
  const given = Object.entries(asked).filter(([, value]) => value !== '')
  const seconds = TIMES[time.value]
  return { ...Object.fromEntries(given), ...(seconds && { since_seconds: seconds }) }
}

export function Events() {
  const filter = useFilter()
  const list = useEvents(filter)
  const held = useSignal<ShownEvent[] | null>(null)
  const shown = held.value ?? list.items.value
  const types = KINDS.includes(type.value as '') ? KINDS : [...KINDS, type.value]
  return (
    <Page
      title="Events"
      class="is-full"
      aside={
        <>
          <Button
            pressed={held.value !== null}
            act={() => (held.value = held.value ? null : list.items.value)}
          >
            {held.value ? 'Go on' : 'Hold still'}
          </Button>
          <Export filter={filter} />
        </>
      }
    >
      <div class="filters">
        <Select
          label="Kind of event"
          of={types}
          chosen={type.value}
          choose={(each) => (type.value = each)}
          says={(each) => each || 'All kinds'}
        />
        <Search label="Agent" text={by} />
        <Search label="Lock" text={lock} />
        <Search label="Task" text={task} />
        <Select
          label="Time"
          of={Object.keys(TIMES) as Time[]}
          chosen={time.value}
          choose={(each) => (time.value = each)}
          says={(each) => (each ? `Last ${each}` : 'All that is kept')}
        />
      </div>
      <Trouble refusal={list.refusal.value} />
      <EventRows list={list} events={shown} />
    </Page>
  )
}

function Export({ filter }: { filter: EventFilter }) {
  const { count: gathered, gather } = useExport(filter)
  const run = async () => {
    try {
      const { lines, isWhole } = await gather()
      save('leasehold-events.jsonl', lines)
      const left = isWhole ? '' : '; older ones were left out: leasehold event list'
      toast(`${count(lines.length, 'event')} exported${left}`)
    } catch (error) {
      if (!isRefusal(error, 'unavailable')) throw error
      toast('Nothing was exported: the server does not answer', 'is-bad')
    }
  }
  const n = gathered.value
  return (
    <Button disabled={n !== null} act={() => void run()}>
      {n === null ? 'Export JSONL' : `Exporting, ${n.toLocaleString()}…`}
    </Button>
  )
}

interface RowsProps {
  list: ReturnType<typeof useEvents>
  events: ShownEvent[]
}

function EventRows({ list, events }: RowsProps) {
  const hasMore = list.next.value !== null
  if (events.length === 0 && !hasMore && !list.isLoading.value && !list.refusal.value) {
    return (
      <Empty title="No event fits" command="leasehold lock acquire demo --agent me">
        Everything that changes is recorded here, with who did it.
      </Empty>
    )
  }
  return (
    <>
      <p class="dim events-says">
        {saysEvents(list, events.length)}
        {hasMore && (
          <Button kind="small" disabled={list.isLoading.value} act={list.older}>
            {list.isLoading.value ? 'Loading…' : 'Load older'}
          </Button>
        )}
      </p>
      <div class="panel is-list">
        <Virtual
          items={events}
          row={isNarrow.value ? 58 : 36}
          label="Events"
          keyOf={({ position }) => String(position)}
          render={(event) => <EventRow event={event} />}
          // Those that scroll to the end want more.
          shown={(items) => {
            const isEnd = items.at(-1) === events.at(-1) && items[0] !== events[0]
            if (isEnd) queueMicrotask(list.older)
          }}
        />
      </div>
    </>
  )
}

function saysEvents({ next, lookedTo, isLoading }: RowsProps['list'], n: number): string {
  if (isLoading.value && n === 0) return 'Loading…'
  if (next.value === null) return `${count(n, 'event')}, all that fit, the newest first`
  const back = lookedTo.value === null ? '' : `, looked back to ${dayOf(lookedTo.value)}`
  return `The newest ${count(n, 'event')} that fit${back}; there may be older ones`
}

export function EventRow({ event }: { event: ShownEvent }) {
  const { at, agent, data, position } = event
  const more = Object.entries(data).map(([key, value]) => {
    return `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`
  })
  return (
    <div class="row event" title={JSON.stringify(event)}>
      <span class="dim number">{position}</span>
      <time class="number" dateTime={at}>
        {clockOf(at)}
      </time>
      <code class={`event-type ${toneOf(event.type)}`}>{event.type}</code>
      <a class="event-agent" href={hrefOf('agents', { id: agent })}>
        {agent}
      </a>
      <span class="event-what">
        <EventWhat event={event} />
      </span>
      <span class="dim event-more">{more.join(' · ')}</span>
    </div>
  )
}

function EventWhat({ event }: { event: ShownEvent }) {
  const id = event.task ?? (event.lock?.startsWith('task:') ? event.lock.slice(5) : null)
  if (id !== null) return <a href={hrefOf('tasks', { id })}>task:{id}</a>
  return event.lock && <a href={hrefOf('locks', { id: event.lock })}>{event.lock}</a>
}

const BAD =
  /expired|died|lost|overdue|fenced|quarantin|deadlock|broken|revoked|force|conflicted|raised/

function toneOf(name: string): string {
  if (BAD.test(name)) return 'is-bad'
  return /granted|claimed|started|created|resolved/.test(name) ? 'is-good' : ''
}
