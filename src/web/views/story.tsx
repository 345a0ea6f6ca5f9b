import { useSignal } from '@preact/signals'
import { factsOf } from '../../core/event.ts'
import { type EventFilter, useEvents } from '../data/events.ts'
import type { ShownEvent } from '../data/live.ts'
import { Button } from '../parts/acts.tsx'
import { Loading, Panel, Trouble } from '../parts/frame.tsx'
import { Raw, When } from '../resources/event.tsx'
import { Sentence } from '../resources/sentence.tsx'

interface StoryProps {
  title: string
  /** Said when there are none. */
  none: string
  filter: EventFilter
}

/** All that happened to one thing, as sentences, the newest first; by run, where it had any. */
export function Story({ title, none, filter }: StoryProps) {
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
      {isKnown && events.length === 0 && !list.refusal.value && <p class="dim pad">{none}</p>}
      <div class="story" tabIndex={0} role="group" aria-label={title}>
        {byRun(events).map(({ run, told }) => (
          <div key={told[0]!.position}>
            {run !== null && <h3>Run {run}</h3>}
            <ol>
              {told.map((event) => (
                <StoryLine key={event.position} event={event} />
              ))}
            </ol>
          </div>
        ))}
        {hasMore && (
          <Button kind="quiet" disabled={list.isLoading.value} act={list.older}>
            Load older
          </Button>
        )}
      </div>
    </Panel>
  )
}

interface Part {
  run: string | null
  told: ShownEvent[]
}

/** A run goes from its end, or its newest event, back to the claim that it began with. */
function byRun(events: ShownEvent[]): Part[] {
  const parts: Part[] = []
  let run: string | null = null
  for (const event of events) {
    run = factsOf(event).run ?? run
    const last = parts.at(-1)
    if (last && last.run === run) last.told.push(event)
    else parts.push({ run, told: [event] })
    if (event.type === 'task.claimed') run = null
  }
  return parts
}

/** What happened, when; and the event as it is recorded, for those who want to know. */
function StoryLine({ event }: { event: ShownEvent }) {
  const isRaw = useSignal(false)
  const toggle = () => (isRaw.value = !isRaw.value)
  return (
    <li>
      <When at={event.at} />
      <span>
        <Sentence event={event} />{' '}
        <button type="button" class="raw" aria-expanded={isRaw.value} onClick={toggle}>
          …<span class="only-read">event {event.position}</span>
        </button>
        {isRaw.value && <Raw event={event} />}
      </span>
    </li>
  )
}
