import { type EventFilter, useEvents } from '../data/events.ts'
import { Button } from '../parts/buttons.tsx'
import { Loading, Trouble } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { EventRow } from './events.tsx'

interface PastProps {
  title: string
  /** Said when there are none. */
  none: string
  filter: EventFilter
}

/** Events of one thing, beside what else is known of it. */
export function Past({ title, none, filter }: PastProps) {
  const list = useEvents(filter)
  const events = list.items.value
  const hasMore = list.next.value !== null
  const isKnown = events.length > 0 || !list.isLoading.value
  return (
    <Panel
      title={title}
      aside={isKnown && <span class="number">{`${events.length}${hasMore ? '+' : ''}`}</span>}
    >
      <Trouble refusal={list.refusal.value} />
      {!isKnown && <Loading />}
      {isKnown && events.length === 0 && !hasMore && !list.refusal.value && (
        <p class="dim pad">{none}</p>
      )}
      <div class="history" tabIndex={0} role="group" aria-label={title}>
        {events.map((event) => (
          <EventRow key={event.position} event={event} />
        ))}
        {hasMore && (
          <Button kind="small" disabled={list.isLoading.value} act={list.older}>
            Load older
          </Button>
        )}
      </div>
    </Panel>
  )
}
