import { useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { now } from '../data/asked.ts'
import type { Span } from '../data/spans.ts'
import { clockOf, dayOf, took } from '../parts/words.ts'
import { theme } from '../theme.ts'
import { draw, heightOf, placed, spanAt, type TimelineLane } from './timeline_draw.ts'

type By = 'lock' | 'agent' | 'user'

function lanesOf(spans: Span[], of: By): TimelineLane[] {
  const lanes = new Map<string, Span[]>()
  for (const each of spans) {
    const name = of === 'user' ? userOf(each) : each[of]
    if (name === null) continue
    const lane = lanes.get(name)
    if (lane) lane.push(each)
    else lanes.set(name, [each])
  }
  return placed(lanes)
}

const userOf = ({ lock, user }: Span) => (lock.startsWith('user:') ? lock.slice(5) : user)

const MARKS = [
  ['held', 'held'],
  ['waited', 'waited'],
  ['expired', 'expired, died or failed'],
  ['killed', 'killed or cancelled'],
  ['handed', 'handed off'],
]

interface TimelineProps {
  spans: Span[]
  /** So much of the past, up to now. */
  seconds: number
  by: By
}

/** Lanes of what was held and waited for. */
export function Timeline({ spans, seconds, by }: TimelineProps) {
  const lanes = useMemo(() => lanesOf(spans, by), [spans, by])
  if (lanes.length === 0) return <p class="dim">Nothing was held in this time.</p>
  return (
    <section class="panel timeline-panel" aria-label="Timeline">
      <ul class="legend" aria-label="Legend">
        {MARKS.map(([key, says]) => (
          <li key={key}>
            <span class={`mark is-${key}`} aria-hidden="true" /> {says}
          </li>
        ))}
      </ul>
      <Lanes lanes={lanes} seconds={seconds} />
    </section>
  )
}

/** A box, and how large it is: known before it is first seen, or a hand would be a step behind. */
function useSized() {
  const box = useRef<HTMLDivElement>(null)
  const size = useSignal({ width: 800, height: 400 })
  useLayoutEffect(() => {
    const { clientWidth: width, clientHeight: height } = box.current!
    size.value = { width, height }
    const observer = new ResizeObserver(([entry]) => (size.value = entry!.contentRect))
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])
  return { box, size }
}

function Lanes({ lanes, seconds }: { lanes: TimelineLane[]; seconds: number }) {
  const { box, size } = useSized()
  const canvas = useRef<HTMLCanvasElement>(null)
  const top = useSignal(0)
  const tip = useSignal<{ x: number; y: number; span: Span } | null>(null)
  const { width, height } = size.value
  const shown = { from_ms: now.value - seconds * 1000, to_ms: now.value }
  const seen = { lanes, shown, width, top: top.value, now_ms: now.value }
  useEffect(() => {
    draw(canvas.current!, { ...seen, height })
  }, [lanes, shown.to_ms, size.value, top.value, theme()])
  const point = ({ offsetX: x, offsetY: y }: PointerEvent) => {
    const span = spanAt(seen, x, y)
    tip.value = span ? { x: Math.max(0, Math.min(x, width - 260)), y, span } : null
  }
  return (
    <div
      ref={box}
      class="timeline"
      style={{ '--tall': `${heightOf(lanes)}px` }}
      tabIndex={0}
      role="group"
      aria-label="Lanes"
      onScroll={(event) => (top.value = event.currentTarget.scrollTop)}
    >
      <canvas
        ref={canvas}
        role="img"
        aria-label={summary(lanes)}
        onPointerMove={point}
        onPointerLeave={() => (tip.value = null)}
      />
      <div style={{ height: `${Math.max(0, heightOf(lanes) - height)}px` }} />
      {tip.value && <Tip {...tip.value} y={tip.value.y + top.value} />}
    </div>
  )
}

function Tip({ x, y, span }: { x: number; y: number; span: Span }) {
  const until = span.to_ms ?? now.value
  const how = span.ending === 'open' ? 'until now' : span.ending.replace('_', ' ')
  return (
    <div class="tip" style={{ left: `${x + 12}px`, top: `${y + 12}px` }}>
      <strong>{span.agent}</strong> {span.kind === 'held' ? 'held' : 'waited for'} {span.lock}
      <br />
      {took((until - span.from_ms) / 1000)}, {how}
      {span.fence !== null && `, fence ${span.fence}`}
      <br />
      {dayOf(span.from)}
      {span.to !== null && ` to ${clockOf(span.to)}`}
    </div>
  )
}

function summary(lanes: TimelineLane[]): string {
  const all = lanes.flatMap(({ spans }) => spans)
  const bad = all.filter(({ ending }) => ending === 'expired' || ending === 'died').length
  return `${lanes.length} lanes, ${all.length} spans of time, ${bad} of them expired or died`
}
