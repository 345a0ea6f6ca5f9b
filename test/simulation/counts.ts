import { sumOf } from '../../src/core/stats/histogram.ts'
import { allCounts } from '../../src/core/stats/stat.ts'
import { type Event, type EventFacts, factsOf } from '../../src/core/event.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { Broken } from './broken.ts'

/** Counts events anew, one by one, in the plainest way. */
function recount(events: Event[]) {
  const by = (key: (event: Event) => string | undefined) => {
    const found: Record<string, number> = {}
    for (const event of events) {
      const name = key(event)
      if (name !== undefined) found[name] = (found[name] ?? 0) + 1
    }
    return found
  }
  const times = (name: keyof EventFacts) => {
    const all = events.filter(({ lock }) => lock !== null).map((event) => factsOf(event)[name])
    const known = all.filter((ms): ms is number => typeof ms === 'number')
    return { count: known.length, sum_ms: known.reduce((sum, ms) => sum + Math.max(0, ms), 0) }
  }
  return {
    events: by(({ type }) => type),
    moves: by(({ type, data }) => (type === 'task.moved' ? data['to'] : undefined)),
    wait: times('waited_ms'),
    hold: times('held_ms'),
    queue: times('queued_ms'),
    launch: times('launch_ms'),
  }
}

/** What was counted commit by commit is what the events say, whatever went wrong on the way. */
export async function checkCounts(store: Store): Promise<void> {
  const expected = recount(await store.events(0, Number.MAX_SAFE_INTEGER))
  const { events, moves, wait, hold, queue, launch } = await store.read(allCounts)
  const summed = ({ buckets, sum_ms }: typeof wait) => ({ count: sumOf(buckets), sum_ms })
  const found = {
    events: sorted(events),
    moves: sorted(moves),
    wait: summed(wait),
    hold: summed(hold),
    queue: summed(queue),
    launch: summed(launch),
  }
  const text = JSON.stringify(found)
  const wanted = { ...expected, events: sorted(expected.events), moves: sorted(expected.moves) }
  if (text === JSON.stringify(wanted)) return
  throw new Broken('S10', `counted ${text}, but events say ${JSON.stringify(wanted)}`)
}

const sorted = (by: Record<string, number>) =>
  Object.fromEntries(Object.entries(by).toSorted(([a], [b]) => (a < b ? -1 : 1)))
