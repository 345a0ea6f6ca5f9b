import { useComputed } from '@preact/signals'
import { type EventFilter, useEvents, useExport } from '../data/events.ts'
import { useCalm } from '../data/asked.ts'
import type { ShownEvent } from '../data/live.ts'
import { useSpans } from '../data/spans.ts'
import { isRefusal } from '../../core/refusal.ts'
import { Button } from '../parts/buttons.tsx'
import { Loading, Trouble } from '../parts/empty.tsx'
import { Page, Search, Select, Tabs } from '../parts/frame.tsx'
import { List } from '../parts/list.tsx'
import { toast } from '../parts/toast.tsx'
import { count } from '../parts/words.ts'
import { EventSheet, eventResource, saysEvents } from '../resources/event.tsx'
import { opened, param } from '../route.ts'
import { save } from './log.tsx'
import { Timeline } from './timeline.tsx'
import { Trends } from './trends.tsx'

const TABS = { happened: 'What happened', trends: 'Trends' }
const tab = param<keyof typeof TABS>('tab', 'happened')

/** One range of time for all that is told of the past. */
const RANGES = { '5m': 300, '15m': 900, '1h': 3600, '6h': 21_600, '1d': 86_400, '7d': 604_800 }
type Range = keyof typeof RANGES
const range = param<Range>('time', '1h')

export function History() {
  const seconds = RANGES[range.value] ?? RANGES['1h']
  return (
    <Page
      title="History"
      class={tab.value === 'trends' ? '' : 'is-full'}
      aside={
        <Select
          label="Time"
          of={Object.keys(RANGES) as Range[]}
          chosen={range.value}
          choose={(each) => (range.value = each)}
          says={(each) => `Last ${each}`}
        />
      }
    >
      <Tabs label="What" tabs={TABS} chosen={tab.value} choose={(to) => (tab.value = to)} />
      {tab.value === 'trends' ? (
        <Trends key={seconds} seconds={seconds} />
      ) : (
        <Happened seconds={seconds} />
      )}
    </Page>
  )
}

const KINDS = [
  '',
  ...['task', 'lease', 'ticket', 'run', 'landing', 'worktree'],
  ...['agent', 'memory', 'queue', 'alert'],
]
/** Whose history: of one agent, one lock, one task. */
const WHOSE = { by: 'Agent', lock: 'Lock', task: 'Task' }
const type = param('type', '')
const names = { by: param('by', ''), lock: param('lock', ''), task: param('task', '') }
const lanes = param<'lock' | 'agent' | 'user'>('lanes', 'lock')

function Happened({ seconds }: { seconds: number }) {
  const said = { by: names.by.value, lock: names.lock.value, task: names.task.value }
  // What is typed is asked for once the person has paused.
  const calm = JSON.parse(useCalm(JSON.stringify(said))) as typeof said
  const lock = calm.lock || (calm.task && `task:${calm.task}`)
  const given = {
    ...(calm.by && { by: calm.by }),
    ...(calm.lock && { lock: calm.lock }),
    ...(calm.task && { task_id: calm.task }),
  }
  return (
    <>
      <div class="filters">
        {(Object.keys(WHOSE) as (keyof typeof WHOSE)[]).map((key) => (
          <Search key={key} label={WHOSE[key]} text={names[key]} />
        ))}
        <Select
          label="Kind of event"
          of={[...new Set([...KINDS, type.value])]}
          chosen={type.value}
          choose={(each) => (type.value = each)}
          says={(each) => each || 'All kinds'}
        />
        <Select
          label="Lanes by"
          of={['lock', 'agent', 'user']}
          chosen={lanes.value}
          choose={(each) => (lanes.value = each)}
          says={(each) => `Lanes by ${each}`}
        />
        <Export
          filter={{ ...given, since_seconds: seconds, ...(type.value && { type: type.value }) }}
        />
      </div>
      <Spans
        seconds={seconds}
        filter={{ ...(calm.by && { by: calm.by }), ...(lock && { lock }) }}
      />
      <Events
        filter={{ ...given, since_seconds: seconds, ...(type.value && { type: type.value }) }}
      />
    </>
  )
}

interface SpansProps {
  seconds: number
  filter: { by?: string; lock?: string }
}

function Spans({ seconds, filter }: SpansProps) {
  const { past, refusal } = useSpans(seconds, filter)
  // Locks that the server holds for itself say nothing about anybody's work.
  const spans = useComputed(() => {
    return past.value?.spans.filter(({ lock }) => !lock.startsWith('leasehold:'))
  }).value
  return (
    <>
      <Trouble refusal={refusal.value} />
      {past.value?.isCut && (
        <p class="dim" role="status">
          So much happened that the earliest of this time is not drawn: choose a shorter one.
        </p>
      )}
      {!spans && !refusal.value && <Loading />}
      {spans && <Timeline spans={spans} seconds={seconds} by={lanes.value} />}
    </>
  )
}

function Events({ filter }: { filter: EventFilter }) {
  const list = useEvents(filter)
  const events = list.items.value
  const hasMore = list.next.value !== null
  const id = opened()
  const older = (items: ShownEvent[]) => {
    // Those that scroll to the end want more.
    const isEnd = items.at(-1) === events.at(-1) && items[0] !== events[0]
    if (isEnd) queueMicrotask(list.older)
  }
  return (
    <>
      <Trouble refusal={list.refusal.value} />
      <p class="dim buttons">
        {saysEvents(events.length, list)}
        {hasMore && (
          <Button kind="quiet" disabled={list.isLoading.value} act={list.older}>
            {list.isLoading.value ? 'Loading…' : 'Load older'}
          </Button>
        )}
      </p>
      <div class="split">
        <div class="panel is-list">
          <List of={eventResource} items={events} label="Events" open={id} shown={older} />
        </div>
        {id !== null && (
          <EventSheet event={events.find(({ position }) => String(position) === id)} />
        )}
      </div>
    </>
  )
}

function Export({ filter }: { filter: EventFilter }) {
  const { count: gathered, gather } = useExport(filter)
  const run = async () => {
    try {
      const { lines, isWhole } = await gather()
      save('leasehold-events.jsonl', lines)
      const left = isWhole ? '' : '; older ones were left out: choose a shorter time'
      toast(`${count(lines.length, 'event')} exported${left}`)
    } catch (error) {
      if (!isRefusal(error, 'unavailable')) throw error
      toast('Nothing was exported: the server does not answer', 'is-bad')
    }
  }
  const n = gathered.value
  return (
    <Button kind="quiet" disabled={n !== null} act={() => void run()}>
      {n === null ? 'Export JSONL' : `Exporting, ${n.toLocaleString()}…`}
    </Button>
  )
}
