import { useComputed, useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { now } from '../data/asked.ts'
import { locks } from '../data/locks.ts'
import { useSpans } from '../data/past.ts'
import type { Span } from '../data/spans.ts'
import { tasks } from '../data/tasks.ts'
import { Button } from '../parts/buttons.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { Page, Search, Select } from '../parts/frame.tsx'
import { clockOf, span as lengthOf } from '../parts/words.ts'
import { route } from '../route.ts'
import { theme } from '../theme.ts'
import { draw, HEAD, LANE, NAMES, type TimelineLane, spanAt, type Window } from './timeline_draw.ts'

const RANGES = { '1m': 60, '5m': 300, '15m': 900, '1h': 3600, '6h': 21_600, '1d': 86_400 }
type By = 'lock' | 'agent' | 'user'

export function Timeline() {
  const { params } = route.value
  const by = useSignal<By>((params.get('by') as By | null) ?? 'lock')
  const wanted = useSignal(params.get('q') ?? '')
  const range = useSignal((params.get('time') ?? '15m') as keyof typeof RANGES)
  const frame = useSignal<Window | null>(null)
  const seconds = RANGES[range.value] ?? RANGES['15m']
  const past = useSpans(seconds)
  const lanes = useComputed(() => {
    const from_ms = Date.now() - seconds * 1000
    const spans = withStanding(past.spans.value ?? [], from_ms)
    return lanesOf(spans, by.value, wanted.value.toLowerCase())
  })
  return (
    <Page
      title="Timeline"
      class="is-full"
      aside={
        <>
          <Search label="Find a lane" text={wanted} />
          <Select
            label="Lanes by"
            of={['lock', 'agent', 'user']}
            chosen={by.value}
            choose={(each) => (by.value = each)}
            says={(each) => `By ${each}`}
          />
          <Select
            label="Time"
            of={Object.keys(RANGES) as (keyof typeof RANGES)[]}
            chosen={range.value}
            choose={(each) => ([range.value, frame.value] = [each, null])}
            says={(each) => `Last ${each}`}
          />
        </>
      }
    >
      <Trouble refusal={past.refusal.value} />
      <Legend />
      {lanes.value.length === 0 && past.spans.value ? (
        <Empty title="Nothing was held in this time" command="leasehold lock acquire demo">
          Choose a longer time, or take a lock.
        </Empty>
      ) : (
        <Chart lanes={lanes} frame={frame} seconds={seconds} />
      )}
    </Page>
  )
}

const MARKS = [
  ['held', 'held'],
  ['waited', 'waited'],
  ['expired', 'expired or died'],
  ['killed', 'killed or broken'],
  ['handed', 'handed off'],
]

function Legend() {
  return (
    <ul class="legend" aria-label="Legend">
      {MARKS.map(([key, says]) => (
        <li key={key}>
          <span class={`mark is-${key}`} aria-hidden="true" /> {says}
        </li>
      ))}
    </ul>
  )
}

/** Locks that are held now, but were granted before the first event we have. */
function withStanding(spans: Span[], from_ms: number): Span[] {
  const open = new Set(spans.filter((s) => s.to_ms === null).map((s) => s.lock))
  const standing = [...locks.values()].filter(({ name }) => !open.has(name))
  const more = standing.map(({ name, holder, fence, acquired_at }) => ({
    kind: 'held' as const,
    lock: name,
    agent: holder,
    from_ms: Math.max(from_ms, Date.parse(acquired_at)),
    to_ms: null,
    ending: 'open' as const,
    fence,
  }))
  return [...spans, ...more].filter(({ lock }) => !lock.startsWith('leasehold:'))
}

function lanesOf(spans: Span[], by: By, text: string): TimelineLane[] {
  const lanes = new Map<string, Span[]>()
  for (const each of spans) {
    const name = by === 'user' ? userOf(each) : each[by]
    if (name === undefined || !name.toLowerCase().includes(text)) continue
    const lane = lanes.get(name)
    if (lane) lane.push(each)
    else lanes.set(name, [each])
  }
  return [...lanes]
    .map(([name, found]) => ({ name, spans: found }))
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
}

function userOf({ lock }: Span): string | undefined {
  if (lock.startsWith('user:')) return lock.slice(5)
  return lock.startsWith('task:') ? (tasks.get(lock.slice(5))?.user ?? undefined) : undefined
}

interface ChartProps {
  lanes: { value: TimelineLane[] }
  frame: { value: Window | null }
  seconds: number
}

function Chart({ lanes, frame, seconds }: ChartProps) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const size = useSignal({ width: 800, height: 400 })
  const top = useSignal(0)
  const tip = useSignal<{ x: number; y: number; span: Span } | null>(null)
  const to_ms = now.value
  const shown = frame.value ?? { from_ms: to_ms - seconds * 1000, to_ms }
  useEffect(() => {
    const observer = new ResizeObserver(([entry]) => {
      if (entry) size.value = entry.contentRect
    })
    observer.observe(canvas.current!.closest('.timeline')!)
    return () => observer.disconnect()
  }, [])
  const { width, height } = size.value
  useEffect(() => {
    const seen = { width, height, top: top.value }
    draw(canvas.current!, { lanes: lanes.value, shown, ...seen, now_ms: to_ms })
  }, [lanes.value, shown.from_ms, shown.to_ms, size.value, top.value, theme()])
  const move = (by: number, zoom: number) => {
    const length = (shown.to_ms - shown.from_ms) * zoom
    const middle = (shown.to_ms + shown.from_ms) / 2 + by * length
    frame.value = { from_ms: middle - length / 2, to_ms: middle + length / 2 }
  }
  return (
    <>
      <Controls move={move} shown={shown} live={() => (frame.value = null)} />
      <div
        class="timeline panel"
        tabIndex={0}
        role="group"
        aria-label="Timeline; arrow keys move, plus and minus zoom"
        onKeyDown={(event) => keyMove(event, move)}
        onScroll={(event) => (top.value = event.currentTarget.scrollTop)}
        onWheel={(event) => {
          if (!event.ctrlKey && !event.shiftKey) return
          event.preventDefault()
          move(0, event.deltaY > 0 ? 1.25 : 0.8)
        }}
      >
        <canvas
          ref={canvas}
          role="img"
          aria-label={summary(lanes.value)}
          onPointerMove={(event) => {
            const { offsetX: x, offsetY: y } = event
            if (event.buttons === 1) return move(-event.movementX / (width - NAMES), 1)
            const span = spanAt(lanes.value, shown, width, x, y + top.value, to_ms)
            tip.value = span ? { x, y, span } : null
          }}
          onPointerLeave={() => (tip.value = null)}
        />
        <div style={{ height: `${HEAD + lanes.value.length * LANE - height}px` }} />
        {tip.value && <Tip {...tip.value} y={tip.value.y + top.value} />}
      </div>
    </>
  )
}

function keyMove(event: KeyboardEvent, move: (by: number, zoom: number) => void): void {
  const moves: Record<string, [number, number]> = {
    ArrowLeft: [-0.2, 1],
    ArrowRight: [0.2, 1],
    '+': [0, 0.7],
    '=': [0, 0.7],
    '-': [0, 1.4],
  }
  const found = moves[event.key]
  if (!found) return
  event.preventDefault()
  move(...found)
}

interface ControlsProps {
  move: (by: number, zoom: number) => void
  shown: Window
  live: () => void
}

function Controls({ move, shown, live }: ControlsProps) {
  const buttons: [string, string, number, number][] = [
    ['←', 'Earlier', -0.3, 1],
    ['→', 'Later', 0.3, 1],
    ['+', 'Zoom in', 0, 0.6],
    ['−', 'Zoom out', 0, 1.7],
  ]
  return (
    <div class="buttons">
      {buttons.map(([sign, label, by, zoom]) => (
        <Button key={label} label={label} act={() => move(by, zoom)}>
          {sign}
        </Button>
      ))}
      <Button act={live}>Now</Button>
      <span class="dim number">
        {clockOf(shown.from_ms)} to {clockOf(shown.to_ms)}
      </span>
    </div>
  )
}

function Tip({ x, y, span }: { x: number; y: number; span: Span }) {
  const until = span.to_ms ?? Date.now()
  const how = span.ending === 'open' ? 'until now' : span.ending
  return (
    <div class="tip" style={{ left: `${x + 12}px`, top: `${y + 12}px` }}>
      <strong>{span.agent}</strong> {span.kind === 'held' ? 'held' : 'waited for'} {span.lock}
      <br />
      {lengthOf((until - span.from_ms) / 1000)}, {how}
      {span.fence !== null && `, fence ${span.fence}`}
    </div>
  )
}

function summary(lanes: TimelineLane[]): string {
  const all = lanes.flatMap(({ spans }) => spans)
  const bad = all.filter(({ ending }) => ending === 'expired' || ending === 'died').length
  return `${lanes.length} lanes, ${all.length} spans of time, ${bad} of them expired or died`
}
