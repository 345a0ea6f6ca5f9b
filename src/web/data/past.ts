import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { Refusal } from '../../core/refusal.ts'
import { pagesOf } from '../ask.ts'
import { listen, type ShownEvent } from './live.ts'
import { type Span, SpanReader } from './spans.ts'

const EVENTS_MAX = 20_000
/** How often what happened meanwhile is drawn. */
const DRAW_MS = 1_000

/** Enough of the past to show `seconds` of it, the oldest first. */
async function pastOf(seconds: number): Promise<ShownEvent[]> {
  const found: ShownEvent[] = []
  for await (const { items } of pagesOf('event.list', { since_seconds: seconds, limit: 1000 })) {
    found.push(...items)
    if (found.length >= EVENTS_MAX) break
  }
  return found.toReversed()
}

interface Spans {
  spans: ReadonlySignal<Span[] | undefined>
  refusal: ReadonlySignal<Refusal | null>
}

/** Who held what in the last `seconds`: asked for once, then kept up with what happens. */
export function useSpans(seconds: number): Spans {
  const spans = useSignal<Span[] | undefined>(undefined)
  const refusal = useSignal<Refusal | null>(null)
  useEffect(() => {
    let reader = new SpanReader(0)
    let fresh: ShownEvent[] = []
    let isRead = false
    const read = async () => {
      try {
        const past = await pastOf(seconds)
        reader = new SpanReader(Date.now() - seconds * 1000)
        reader.takeAll(past)
        isRead = true
        spans.value = [...reader.spans]
      } catch (error) {
        if (!(error instanceof Refusal)) throw error
        refusal.value = error
      }
    }
    const unlisten = listen({ events: (events) => fresh.push(...events), reset: () => void read() })
    const timer = setInterval(() => {
      if (!isRead || document.hidden || fresh.length === 0) return
      reader.takeAll(fresh)
      fresh = []
      reader.forget(Date.now() - seconds * 1000)
      spans.value = [...reader.spans]
    }, DRAW_MS)
    void read()
    return () => {
      unlisten()
      clearInterval(timer)
    }
  }, [seconds])
  return { spans, refusal }
}
