import type { ShownEvent } from '../data/live.ts'
import { Facts, Sheet } from '../parts/frame.tsx'
import { Opens } from '../parts/links.tsx'
import type { PageNoun } from '../parts/noun.tsx'
import { clockOf, dayOf } from '../parts/words.ts'
import { Sentence } from './sentence.tsx'

export const When = ({ at }: { at: string }) => (
  <time class="number" dateTime={at} title={dayOf(at)}>
    {clockOf(at)}
  </time>
)

/** The event as it is recorded. */
export const Raw = ({ event }: { event: ShownEvent }) => (
  <pre class="body">{JSON.stringify(event, null, 2)}</pre>
)

export const eventResource: PageNoun<ShownEvent> = {
  one: 'event',
  keyOf: ({ position }) => String(position),
  textOf: (event) => JSON.stringify(event),
  none: ['No event fits', 'Everything that changes is recorded here, with who did it.'],
  columns: [
    { name: 'When', width: '5.5rem', show: ({ at }) => <When at={at} /> },
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

export function EventSheet({ event }: { event: ShownEvent | undefined }) {
  if (!event) return <Sheet label="Event">It is not in this list.</Sheet>
  const { type, position, at } = event
  return (
    <Sheet label={`Event ${position}`} title={type}>
      <p>
        <Sentence event={event} />
      </p>
      <Facts
        of={[
          ['When', dayOf(at)],
          ['Position', String(position)],
        ]}
      />
      <Raw event={event} />
    </Sheet>
  )
}
