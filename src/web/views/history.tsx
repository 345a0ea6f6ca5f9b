import { useCalm } from '../data/asked.ts'
import { type EventFilter, useEvents } from '../data/events.ts'
import type { ShownEvent } from '../data/live.ts'
import { useSpans } from '../data/spans.ts'
import { Button } from '../parts/acts.tsx'
import { Answered, Page, Search, Select, Tabs, Trouble } from '../parts/frame.tsx'
import { List } from '../parts/list.tsx'
import { count, dayOf } from '../parts/words.ts'
import { EventSheet, eventResource } from '../resources/event.tsx'
import { opened, param } from '../route.ts'
import { LANES, Timeline } from './timeline.tsx'
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
const type = param('type', '')
/** Whose history: of one agent, one lock, one task. */
const whose = { Agent: param('by', ''), Lock: param('lock', ''), Task: param('task', '') }
const lanes = param<(typeof LANES)[number]>('lanes', 'lock')

function Happened({ seconds }: { seconds: number }) {
  // What is typed is asked for once the person has paused.
  const [by, lock, task_id] = [
    useCalm(whose.Agent.value),
    useCalm(whose.Lock.value),
    useCalm(whose.Task.value),
  ]
  const held = lock || (task_id && `task:${task_id}`)
  const filter: EventFilter = {
    since_seconds: seconds,
    ...(by && { by }),
    ...(lock && { lock }),
    ...(task_id && { task_id }),
    ...(type.value && { type: type.value }),
  }
  const past = useSpans(seconds, { ...(by && { by }), ...(held && { lock: held }) })
  return (
    <>
      <div class="filters">
        {Object.entries(whose).map(([name, text]) => (
          <Search key={name} label={name} text={text} />
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
          of={LANES}
          chosen={lanes.value}
          choose={(each) => (lanes.value = each)}
          says={(each) => `Lanes by ${each}`}
        />
      </div>
      <Answered of={past}>
        {({ spans, isCut }) => (
          <>
            {isCut && (
              <p class="dim" role="status">
                So much happened that the earliest of this time is not drawn: choose a shorter one.
              </p>
            )}
            <Timeline spans={spans} seconds={seconds} by={lanes.value} />
          </>
        )}
      </Answered>
      <Events filter={filter} />
    </>
  )
}

function Events({ filter }: { filter: EventFilter }) {
  const list = useEvents(filter)
  const events = list.items.value
  const isLoading = list.isLoading.value
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
        {saysEvents(list)}
        {list.next.value !== null && (
          <Button kind="quiet" disabled={isLoading} act={list.older}>
            {isLoading ? 'Loading…' : 'Load older'}
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

/** How many there are; that there are none is said only once all of the time was looked through. */
function saysEvents({ items, next, lookedTo, isLoading }: ReturnType<typeof useEvents>): string {
  const n = items.value.length
  const back = lookedTo.value === null ? '' : `, looked back to ${dayOf(lookedTo.value)}`
  if (isLoading.value && n === 0) return `Loading…${back}`
  if (next.value === null) return `${count(n, 'event')}, all that fit, the newest first`
  return `The newest ${count(n, 'event')} that fit${back}; there may be older ones`
}
