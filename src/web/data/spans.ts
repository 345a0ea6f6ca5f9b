import { useRef } from 'preact/hooks'
import type { AnswerOf, InputOf } from '../../operations/registry.ts'
import { clock, pagesOf } from '../ask.ts'
import { aboutAny, type LiveAnswer, useAsked } from './asked.ts'

type Shown = AnswerOf<'span.list'>['items'][number]
type SpanFilter = InputOf<'span.list'>

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
/** All that stands open comes with every answer. */
const CALM_MS = 2_000

/**
 * Each span of the past is asked for once; later answers say what ended since. All that ended when
 * `known` ends, or later, is in them again.
 */
async function read(
  filter: SpanFilter,
  seconds: number,
  known: Past | undefined,
  signal: AbortSignal,
): Promise<Past> {
  const since: SpanFilter = known ? { from: known.to } : { since_seconds: seconds }
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
export function useSpans(seconds: number, filter: SpanFilter): LiveAnswer<Past> {
  const key = JSON.stringify([seconds, filter])
  const last = useRef<{ key: string; past: Past }>(undefined)
  const look = async (signal: AbortSignal) => {
    const known = last.current?.key === key ? last.current.past : undefined
    const past = await read(filter, seconds, known, signal)
    last.current = { key, past }
    return past
  }
  const affects = aboutAny('lease', 'ticket', 'run', 'task', 'queue')
  return useAsked(key, look, { affects, calm_ms: CALM_MS })
}
