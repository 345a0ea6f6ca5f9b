import { useComputed, useSignal } from '@preact/signals'
import { feed } from '../data/feed.ts'
import type { ShownEvent } from '../data/live.ts'
import { Button } from '../parts/buttons.tsx'
import { Empty } from '../parts/empty.tsx'
import { Page, Search, Select } from '../parts/frame.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { clockOf, count } from '../parts/words.ts'
import { route } from '../route.ts'

const KINDS = ['all', 'task', 'lease', 'ticket', 'run', 'agent', 'memory', 'queue'] as const

export function Events() {
  const wanted = useSignal(route.value.params.get('q') ?? '')
  const kind = useSignal<(typeof KINDS)[number]>('all')
  const held = useSignal<ShownEvent[] | null>(null)
  const found = useComputed(() => {
    const text = wanted.value.toLowerCase()
    return (held.value ?? feed.value).filter((event) => {
      if (kind.value !== 'all' && !event.type.startsWith(`${kind.value}.`)) return false
      return text === '' || textOf(event).includes(text)
    })
  })
  return (
    <Page
      title="Events"
      class="is-full"
      aside={
        <>
          <Search label="Filter events" text={wanted} />
          <Select
            label="Kind of event"
            of={KINDS}
            chosen={kind.value}
            choose={(each) => (kind.value = each)}
          />
          <Button
            pressed={held.value !== null}
            act={() => (held.value = held.value ? null : feed.value)}
          >
            {held.value ? 'Go on' : 'Hold still'}
          </Button>
          <Button act={() => download(found.value)}>Export JSONL</Button>
        </>
      }
    >
      <EventList events={found.value} />
    </Page>
  )
}

function EventList({ events }: { events: ShownEvent[] }) {
  if (events.length === 0) {
    return (
      <Empty title="No event fits" command="leasehold lock acquire demo --agent me">
        Everything that changes is recorded here, with who did it.
      </Empty>
    )
  }
  return (
    <>
      <p class="dim">{count(events.length, 'event')}, the newest first</p>
      <div class="panel is-list">
        <Virtual
          items={events}
          row={36}
          label="Events"
          keyOf={({ position }) => String(position)}
          render={(event) => <EventRow event={event} />}
        />
      </div>
    </>
  )
}

const textOf = (event: ShownEvent) => JSON.stringify(event).toLowerCase()

export function EventRow({ event }: { event: ShownEvent }) {
  const { at, type, agent, lock, task, data, position } = event
  const more = Object.entries(data).map(([key, value]) => {
    return `${key} ${typeof value === 'string' ? value : JSON.stringify(value)}`
  })
  return (
    <div class="row event" title={JSON.stringify(event)}>
      <span class="dim number">{position}</span>
      <time class="number" dateTime={at}>
        {clockOf(at)}
      </time>
      <code class={`event-type ${toneOf(type)}`}>{type}</code>
      <span class="event-agent">{agent}</span>
      <span class="event-what">{lock ?? (task === null ? '' : `task:${task}`)}</span>
      <span class="dim event-more">{more.join(' · ')}</span>
    </div>
  )
}

function toneOf(type: string): string {
  if (
    /expired|died|lost|overdue|fenced|quarantin|deadlock|broken|revoked|force|conflicted/.test(type)
  ) {
    return 'is-bad'
  }
  return /granted|claimed|started|created|resolved/.test(type) ? 'is-good' : ''
}

/** One event per line, the oldest first, as `leasehold event list --json` would have them. */
function download(events: ShownEvent[]): void {
  const lines = events.toReversed().map((event) => JSON.stringify(event))
  const url = URL.createObjectURL(new Blob([`${lines.join('\n')}\n`]))
  const link = document.createElement('a')
  link.href = url
  link.download = 'leasehold-events.jsonl'
  link.click()
  URL.revokeObjectURL(url)
}
