import type { Store } from './store.ts'

/** Where a stream of events begins: `reset` when what came before cannot be told any more. */
interface EventPlace {
  epoch: number
  position: number
  reset: boolean
}

/** The id of a place in the events, as streams state it. */
export function eventId(epoch: number, position: number): string {
  return `${epoch}-${position}`
}

/**
 * The place behind the event with the id `last`; without one, behind the newest. Of a place that is
 * no longer kept, or of a store that was replaced, nothing can be told: the stream begins now.
 */
export async function eventPlace(store: Store, last: string | undefined): Promise<EventPlace> {
  const { epoch, position: newest } = await store.head()
  if (last === undefined) return { epoch, position: newest, reset: false }
  const [oldest] = await store.events(0, 1)
  const kept = oldest ? oldest.position - 1 : newest
  const [, of, text] = /^(\d+)-(\d+)$/.exec(last) ?? []
  const position = Number(text)
  const isKnown = Number(of) === epoch && position >= kept && position <= newest
  return isKnown ? { epoch, position, reset: false } : { epoch, position: newest, reset: true }
}
