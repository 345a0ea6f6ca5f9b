import type { useEvents } from '../data/events.ts'
import type { ShownEvent } from '../data/live.ts'
import { Opens } from '../parts/opens.tsx'
import type { PageNoun } from '../parts/resource.ts'
import { Sheet } from '../parts/sheet.tsx'
import { clockOf, count, dayOf } from '../parts/words.ts'
import { Sentence } from '../story.tsx'

export const eventResource: PageNoun<ShownEvent> = {
  one: 'event',
  keyOf: ({ position }) => String(position),
  textOf: (event) => JSON.stringify(event),
  none: ['No event fits', 'Everything that changes is recorded here, with who did it.'],
  columns: [
    {
      name: 'When',
      width: '5.5rem',
      show: ({ at }) => (
        <time class="number" dateTime={at} title={dayOf(at)}>
          {clockOf(at)}
        </time>
      ),
    },
    {
      name: 'What happened',
      width: 'minmax(14rem, 1fr)',
      show: (event) => <Sentence event={event} />,
    },
    {
      name: 'Event',
      width: '13rem',
      show: ({ type, position }) => (
        <Opens id={String(position)} class="event-type">
          {type}
        </Opens>
      ),
    },
  ],
}

type Events = Pick<ReturnType<typeof useEvents>, 'next' | 'lookedTo' | 'isLoading'>

/** How many there are; that there are none is said only once all of the time was looked through. */
export function saysEvents(n: number, { next, lookedTo, isLoading }: Events): string {
  if (isLoading.value && n === 0) return 'Loading…'
  if (next.value === null) return `${count(n, 'event')}, all that fit, the newest first`
  const back = lookedTo.value === null ? '' : `, looked back to ${dayOf(lookedTo.value)}`
  return `The newest ${count(n, 'event')} that fit${back}; there may be older ones`
}

/** The event as it is recorded. */
export function EventSheet({ event }: { event: ShownEvent | undefined }) {
  if (!event) return <Sheet label="Event" title="Event" first={<p>It is not in this list.</p>} />
  const { type, position, at } = event
  return (
    <Sheet
      label={`Event ${position}`}
      title={type}
      first={<Sentence event={event} />}
      facts={[
        ['When', dayOf(at)],
        ['Position', String(position)],
      ]}
    >
      <pre class="body">{JSON.stringify(event, null, 2)}</pre>
    </Sheet>
  )
}
