import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { clockOf, shortDay, took } from './words.ts'

/** One line of a chart: its name, its colour by the name the theme has for it, and its values. */
export interface Line<P> {
  label: string
  tone: string
  pick: (point: P) => number | null
}

interface Point {
  at: string
  /** Its time is not over yet: it will still grow. */
  is_open: boolean
}

interface ChartProps<P extends Point> {
  title: string
  points: P[]
  lines: Line<P>[]
  /** How a value is said, with its unit. */
  says?: (value: number) => string
}

const HEIGHT = 190
const PAD = { left: 56, right: 24, top: 12, bottom: 24 }
const DAY_MS = 86_400_000
const RING = 'm-2 0a2 2 0 1 0 4 0a2 2 0 1 0-4 0'

export function Chart<P extends Point>({ title, points, lines, says = String }: ChartProps<P>) {
  const box = useRef<HTMLDivElement>(null)
  const width = useSignal(600)
  const pointed = useSignal<number | null>(null)
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => (width.value = entry!.contentRect.width))
    observer.observe(box.current!)
    return () => observer.disconnect()
  }, [])
  const scale = scaleOf(points, lines, width.value, says === took)
  const closed = points.findLastIndex(({ is_open }) => !is_open)
  const at = Math.min(pointed.value ?? closed, points.length - 1)
  const move = (to: number) => (pointed.value = Math.max(0, Math.min(points.length - 1, to)))
  return (
    <div ref={box} class="chart">
      <svg
        width={width.value}
        height={HEIGHT}
        role="img"
        tabIndex={0}
        aria-label={`${title}; arrow keys go from point to point`}
        onPointerMove={({ offsetX }) => move(scale.nearest(offsetX))}
        onPointerLeave={() => (pointed.value = null)}
        onKeyDown={({ key }) => {
          if (key === 'ArrowLeft') move(at - 1)
          if (key === 'ArrowRight') move(at + 1)
        }}
      >
        <Axes scale={scale} says={says} />
        {lines.map(({ label, tone, pick }) => (
          <g key={label} class={`chart-line is-${tone}`}>
            <path d={scale.path(pick, 0, closed)} />
            <path class="is-open" d={scale.path(pick, Math.max(0, closed), points.length - 1)} />
          </g>
        ))}
        {pointed.value !== null && (
          <line class="chart-at" x1={scale.x(at)} x2={scale.x(at)} y1={PAD.top} y2={scale.floor} />
        )}
      </svg>
      <Legend points={points} at={at} lines={lines} says={says} />
    </div>
  )
}

interface LegendProps<P extends Point> {
  points: P[]
  at: number
  lines: Line<P>[]
  says: (value: number) => string
}

/** The names of the lines, each with its value where the pointer is. */
function Legend<P extends Point>({ points, at, lines, says }: LegendProps<P>) {
  const point = points[at]
  if (!point) return null
  return (
    <p class="chart-legend" role="status">
      <span class="dim number">
        {clockOf(point.at).slice(0, 5)}
        {point.is_open ? ' so far' : ''}
      </span>
      {lines.map(({ label, tone, pick }) => {
        const value = pick(point)
        return (
          <span key={label}>
            <span class={`swatch is-${tone}`} /> {label}{' '}
            <strong class="number">{value === null ? '–' : says(value)}</strong>
          </span>
        )
      })}
    </p>
  )
}

const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1440]

/** The smallest round one that needs at most four steps: by tens, and of times by minutes. */
function stepFor(max: number, isTime: boolean): number {
  const minutes = isTime && max > 120 && MINUTES.find((m) => max / 60 / m <= 4)
  if (minutes) return minutes * 60
  const power = 10 ** Math.floor(Math.log10(Math.max(max, 0.004) / 4))
  return [1, 2, 5, 10].map((n) => n * power).find((step) => max / step <= 4)!
}

function scaleOf<P extends Point>(points: P[], lines: Line<P>[], width: number, isTime: boolean) {
  const times = points.map(({ at }) => Date.parse(at))
  const [from, to] = [times[0] ?? 0, times.at(-1) ?? 1]
  const values = lines.flatMap(({ pick }) => points.map((point) => pick(point) ?? 0))
  const step = stepFor(Math.max(...values, 1), isTime)
  const top = Math.max(1, Math.ceil(Math.max(...values) / step)) * step
  const floor = HEIGHT - PAD.bottom
  const inner = Math.max(10, width - PAD.left - PAD.right)
  const xOf = (ms: number) => PAD.left + ((ms - from) / Math.max(1, to - from)) * inner
  const y = (value: number) => floor - (value / top) * (floor - PAD.top)
  return {
    floor,
    y,
    x: (i: number) => xOf(times[i] ?? from),
    nearest: (px: number) => {
      const ms = from + ((px - PAD.left) / inner) * (to - from)
      const distance = (i: number) => Math.abs(times[i]! - ms)
      return times.reduce((best, _, i) => (distance(i) < distance(best) ? i : best), 0)
    },
    levels: Array.from({ length: Math.round(top / step) + 1 }, (_, i) => i * step),
    ticks: ticksOf(from, to, Math.max(2, Math.floor(inner / 90))).map((ms) => {
      return { x: xOf(ms), text: to - from > DAY_MS ? shortDay(ms) : clockOf(ms).slice(0, 5) }
    }),
    /** A gap where nothing is known; what stands alone is a ring. */
    path: (pick: (point: P) => number | null, first: number, last: number) => {
      const known = points.slice(first, last + 1).map(pick)
      return known
        .map((value, i) => {
          if (value === null) return ''
          const isOn = typeof known[i - 1] === 'number'
          const isAlone = !isOn && typeof known[i + 1] !== 'number'
          const at = `${xOf(times[first + i]!).toFixed(1)} ${y(value).toFixed(1)}`
          return `${isOn ? 'L' : 'M'}${at}${isAlone ? RING : ''}`
        })
        .join('')
    },
  }
}

const STEPS_M = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880]

function ticksOf(from: number, to: number, most: number): number[] {
  const step = 60_000 * (STEPS_M.find((m) => (to - from) / (m * 60_000) <= most) ?? 10_080)
  const offset = new Date(from).getTimezoneOffset() * 60_000
  const first = Math.ceil((from - offset) / step) * step + offset
  return Array.from({ length: Math.max(0, Math.floor((to - first) / step) + 1) }, (_, i) => {
    return first + i * step
  })
}

interface AxesProps {
  scale: ReturnType<typeof scaleOf>
  says: (value: number) => string
}

function Axes({ scale, says }: AxesProps) {
  return (
    <g class="chart-axes" aria-hidden="true">
      {scale.levels.map((level) => (
        <g key={level}>
          <line x1={PAD.left} x2="100%" y1={scale.y(level)} y2={scale.y(level)} />
          <text x={PAD.left - 8} y={scale.y(level) + 4} text-anchor="end">
            {says(level)}
          </text>
        </g>
      ))}
      {scale.ticks.map(({ x, text }) => (
        <text key={x} x={x} y={HEIGHT - 6} text-anchor="middle">
          {text}
        </text>
      ))}
    </g>
  )
}

/** How something went over the last hour, as small as a word. */
export function Sparkline({ values, label }: { values: number[]; label: string }) {
  if (values.length < 2) return <span class="spark" />
  const top = Math.max(...values, 1)
  const at = values.map((value, i) => {
    return `${((i / (values.length - 1)) * 100).toFixed(1)} ${(22 - (value / top) * 20).toFixed(1)}`
  })
  return (
    <svg
      class="spark"
      viewBox="0 0 100 24"
      preserveAspectRatio="none"
      role="img"
      aria-label={label}
    >
      <path class="spark-area" d={`M0 24L${at.join('L')}L100 24z`} />
      <path class="spark-line" d={`M${at.join('L')}`} />
    </svg>
  )
}
