import { signal } from '@preact/signals'
import { ask } from '../ask.ts'
import { listen, type ShownEvent } from './live.ts'

const KEPT_MAX = 5_000
const FIRST = 200

/** The newest events, newest first. */
export const feed = signal<ShownEvent[]>([])

listen({
  events: (events) => {
    const fresh = events.toReversed()
    feed.value = [...fresh, ...feed.value].slice(0, KEPT_MAX)
  },
  reset: () => {
    feed.value = []
    void loadFeed()
  },
})

/** Some of the past, so that a page that was just opened is not empty. */
export async function loadFeed(): Promise<void> {
  const { items } = await ask('event.list', { limit: FIRST })
  const newest = feed.value.at(-1)?.position ?? Number.MAX_SAFE_INTEGER
  feed.value = [...feed.value, ...items.filter(({ position }) => position < newest)]
}
