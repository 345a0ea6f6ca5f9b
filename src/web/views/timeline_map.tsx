import { useEffect, useRef } from 'preact/hooks'
import type { Span } from '../data/spans.ts'
import { theme } from '../theme.ts'
import { colours, namesIn, penFor, type Window } from './timeline_draw.ts'

const HEIGHT = 38

interface MapProps {
  spans: Span[]
  /** All of the time that was asked for, and what of it is shown below. */
  whole: Window
  shown: Window
  width: number
  choose: (frame: Window) => void
}

/** The whole time at a glance: how much was held when. Drawing a brush over it shows that part. */
export function TimelineMap({ spans, whole, shown, width, choose }: MapProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const begun = useRef<number | null>(null)
  const names = namesIn(width)
  const inner = Math.max(10, width - names)
  const length = whole.to_ms - whole.from_ms
  const msAt = (x: number) => whole.from_ms + Math.max(0, Math.min(1, (x - names) / inner)) * length
  useEffect(() => {
    const pen = penFor(canvas.current!, width, HEIGHT)
    const ink = colours()
    const xOf = (ms: number) => names + ((ms - whole.from_ms) / length) * inner
    const counts = densityOf(spans, whole, Math.floor(inner / 3))
    const most = Math.max(1, ...counts)
    pen.fillStyle = ink.dim
    pen.fillText('all of it', 10, 23)
    pen.fillStyle = ink.held
    pen.globalAlpha = 0.55
    for (const [i, n] of counts.entries()) {
      const high = (n / most) * (HEIGHT - 10)
      pen.fillRect(names + i * 3, HEIGHT - 4 - high, 2, high)
    }
    pen.globalAlpha = 0.14
    pen.fillStyle = ink.text
    const [x1, x2] = [Math.max(names, xOf(shown.from_ms)), Math.min(width, xOf(shown.to_ms))]
    pen.fillRect(x1, 2, Math.max(2, x2 - x1), HEIGHT - 4)
    pen.globalAlpha = 1
    pen.fillRect(x1, 2, 2, HEIGHT - 4)
    pen.fillRect(Math.max(x1, x2 - 2), 2, 2, HEIGHT - 4)
  }, [spans, whole.to_ms, shown.from_ms, shown.to_ms, width, theme()])
  return (
    <canvas
      ref={canvas}
      class="timeline-map"
      role="img"
      aria-label="The whole time; draw over it to see a part"
      onPointerDown={(event) => {
        begun.current = msAt(event.offsetX)
        event.currentTarget.setPointerCapture(event.pointerId)
      }}
      onPointerMove={({ offsetX }) => {
        if (begun.current === null) return
        const [from_ms, to_ms] = [begun.current, msAt(offsetX)].toSorted((a, b) => a - b)
        if (to_ms! - from_ms! > length / 200) choose({ from_ms: from_ms!, to_ms: to_ms! })
      }}
      onPointerUp={() => (begun.current = null)}
    />
  )
}

/** How many spans stand over each of `n` parts of a time. */
function densityOf(spans: Span[], { from_ms, to_ms }: Window, n: number): number[] {
  const changes = Array.from({ length: n + 1 }, () => 0)
  const partOf = (ms: number) =>
    Math.max(0, Math.min(n, Math.floor(((ms - from_ms) / (to_ms - from_ms)) * n)))
  for (const span of spans) {
    if (span.kind !== 'held' || (span.to_ms ?? to_ms) < from_ms) continue
    changes[partOf(span.from_ms)]! += 1
    const end = partOf(span.to_ms ?? to_ms)
    if (end < n) changes[end + 1]! -= 1
  }
  let standing = 0
  return changes.slice(0, n).map((change) => (standing += change))
}
