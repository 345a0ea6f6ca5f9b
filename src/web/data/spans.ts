import { type Signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { nounOf } from '../../core/event.ts'
import type { Refusal } from '../../core/refusal.ts'
import type { AnswerOf, InputOf } from '../../operations/registry.ts'
import { clock, pagesOf } from '../ask.ts'
import { askInto } from './asked.ts'
import { listen } from './live.ts'

type Shown = AnswerOf<'span.list'>['items'][number]

/** Somebody held a lock, or waited for it, for some time. */
export interface Span extends Shown {
  from_ms: number
  to_ms: number | null
}

interface Past {
  spans: Span[]
  /** Earlier ones of the time that was asked for are left out, as there are so many. */
  isCut: boolean
  /** Up to when all is known. */
  to: string
}

const SPANS_MAX = 20_000
/** How often what happened meanwhile is asked for: less often, the more stands open. */
const LOOK_MS = 1_000
const LOOK_MS_EACH = 5
const NOUNS = new Set<string>(['lease', 'ticket', 'run', 'task', 'queue'])

/**
 * Each span of the past is asked for once; later answers say what ended since. All that ended when
 * `known` ends, or later, is in them again.
 */
async function read(
  filter: InputOf<'span.list'>,
  seconds: number,
  known: Past | undefined,
  signal: AbortSignal,
): Promise<Past> {
  const since: InputOf<'span.list'> = known ? { from: known.to } : { since_seconds: seconds }
  const found: Span[] = []
  let [to, isCut] = ['', known?.isCut ?? false]
  for await (const page of pagesOf('span.list', { ...filter, ...since, limit: 1000 }, signal)) {
    to ||= page.to
    found.push(...page.items.map(timed))
    if (found.length >= SPANS_MAX && page.next !== null) {
      isCut = true
      break
    }
  }
  const oldest = clock() - seconds * 1000
  const before = known?.spans.filter((span) => {
    return span.to !== null && span.to < known.to && span.to_ms! >= oldest
  })
  return { spans: [...(before ?? []), ...found], isCut, to }
}

const timed = (span: Shown): Span => ({
  ...span,
  from_ms: Date.parse(span.from),
  to_ms: span.to === null ? null : Date.parse(span.to),
})

/** Who held and waited for what in the last `seconds`, as the store knows it. */
export function useSpans(seconds: number, filter: InputOf<'span.list'> = {}) {
  const past: Signal<Past | undefined> = useSignal<Past | undefined>(undefined)
  const refusal = useSignal<Refusal | null>(null)
  const key = JSON.stringify([seconds, filter])
  useEffect(() => {
    let known: Past | undefined
    let isStale = false
    let asked_ms = 0
    const asking = askInto(past, refusal, async (signal) => {
      asked_ms = performance.now()
      return (known = await read(filter, seconds, known, signal))
    })
    const unlisten = listen({
      events: (events) => (isStale ||= events.some((event) => NOUNS.has(nounOf(event)))),
      reset: () => {
        known = undefined
        asking.soon()
      },
    })
    const timer = setInterval(() => {
      const open = known?.spans.filter(({ to_ms }) => to_ms === null).length ?? 0
      const isDue = performance.now() - asked_ms > Math.max(LOOK_MS, open * LOOK_MS_EACH)
      if (!isStale || !isDue || document.hidden) return
      isStale = false
      asking.soon()
    }, LOOK_MS)
    asking.soon()
    return () => {
      asking.end()
      unlisten()
      clearInterval(timer)
    }
  }, [key])
  return { past, refusal }
}
