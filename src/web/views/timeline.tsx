import { type Signal, useComputed, useSignal } from '@preact/signals'
import { useEffect, useLayoutEffect, useMemo, useRef } from 'preact/hooks'
import { now } from '../data/asked.ts'
import { type Span, useSpans } from '../data/spans.ts'
import { Button } from '../parts/buttons.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { Page, Search, Select } from '../parts/frame.tsx'
import { clockOf, dayOf, took } from '../parts/words.ts'
import { param, wanted } from '../route.ts'
import { theme } from '../theme.ts'
import {
  draw,
  heightOf,
  namesIn,
  placed,
  spanAt,
  timeIn,
  type TimelineLane,
  type Window,
} from './timeline_draw.ts'
import { TimelineMap } from './timeline_map.tsx'

const RANGES = { '1m': 60, '5m': 300, '15m': 900, '1h': 3600, '6h': 21_600, '1d': 86_400 }
type Range = keyof typeof RANGES
type By = 'lock' | 'agent' | 'user'

const by = param<By>('by', 'lock')
const range = param<Range>('time', '15m')
/** A part of the time, as `from-to` in milliseconds; none: all of it, up to now. */
const part = param('part', '')

export function Timeline() {
  const seconds = RANGES[range.value] ?? RANGES['15m']
  const { past, refusal } = useSpans(seconds)
  const whole = { from_ms: now.value - seconds * 1000, to_ms: now.value }
  // Locks that the server holds for itself say nothing about anybody's work.
  const spans = useComputed(() => {
    return past.value?.spans.filter(({ lock }) => !lock.startsWith('leasehold:'))
  }).value
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
            of={Object.keys(RANGES) as Range[]}
            chosen={range.value}
            choose={(each) => ([range.value, part.value] = [each, ''])}
            says={(each) => `Last ${each}`}
          />
        </>
      }
    >
      <Trouble refusal={refusal.value} />
      <Legend />
      {past.value?.isCut && (
        <p class="dim" role="status">
          So much happened that the earliest of this time is left out: choose a shorter one.
        </p>
      )}
      {!spans && !refusal.value && <Loading />}
      {spans && (
        <TimelineOf {...{ spans, whole, by: by.value, text: wanted.value.toLowerCase() }} />
      )}
    </Page>
  )
}

const MARKS = [
  ['held', 'held'],
  ['waited', 'waited'],
  ['expired', 'expired, died or failed'],
  ['killed', 'killed or cancelled'],
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

function lanesOf(spans: Span[], of: By, text: string): TimelineLane[] {
  const lanes = new Map<string, Span[]>()
  for (const each of spans) {
    const name = of === 'user' ? userOf(each) : each[of]
    if (name === null || !name.toLowerCase().includes(text)) continue
    const lane = lanes.get(name)
    if (lane) lane.push(each)
    else lanes.set(name, [each])
  }
  return placed(lanes)
}

const userOf = ({ lock, user }: Span) => (lock.startsWith('user:') ? lock.slice(5) : user)

function partIn(said: string): Window | null {
  const [from_ms, to_ms] = said.split('-').map(Number)
  return from_ms && to_ms && to_ms > from_ms ? { from_ms, to_ms } : null
}

interface TimelineProps {
  spans: Span[]
  whole: Window
  by: By
  text?: string
  /** One run, of a few spans: there is nothing to choose from. */
  isBrief?: boolean
}

/** Lanes of what was held and waited for, with the whole time above them to choose a part of. */
export function TimelineOf({ spans, whole, by: of, text = '', isBrief = false }: TimelineProps) {
  const frame = useSignal(partIn(part.value))
  const lanes = useMemo(() => lanesOf(spans, of, text), [spans, of, text])
  useEffect(() => {
    // Not with every step of the pointer: browsers bound how often an address may change.
    const { value: at } = frame
    const said = at ? `${Math.round(at.from_ms)}-${Math.round(at.to_ms)}` : ''
    const timer = setTimeout(() => said !== part.value && (part.value = said), 400)
    return () => clearTimeout(timer)
  }, [frame.value])
  if (lanes.length === 0) {
    return (
      <Empty title="Nothing was held in this time" command="leasehold lock acquire demo">
        Choose a longer time, or take a lock.
      </Empty>
    )
  }
  return <Chart {...{ lanes, spans, whole, frame, isBrief }} />
}

interface ChartProps {
  lanes: TimelineLane[]
  spans: Span[]
  whole: Window
  frame: Signal<Window | null>
  isBrief: boolean
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

function Chart({ lanes, spans, whole, frame, isBrief }: ChartProps) {
  const { box, size } = useSized()
  const canvas = useRef<HTMLCanvasElement>(null)
  const top = useSignal(0)
  const tip = useSignal<{ x: number; y: number; span: Span } | null>(null)
  const shown = frame.value ?? whole
  const { width, height } = size.value
  const seen = { lanes, shown, width, top: top.value, now_ms: whole.to_ms }
  useEffect(() => {
    draw(canvas.current!, { ...seen, height })
  }, [lanes, shown.from_ms, shown.to_ms, size.value, top.value, theme()])
  const move = (step: number, zoom: number) => {
    const length = (shown.to_ms - shown.from_ms) * zoom
    const middle = (shown.to_ms + shown.from_ms) / 2 + step * length
    frame.value = { from_ms: middle - length / 2, to_ms: middle + length / 2 }
  }
  const point = (event: PointerEvent) => {
    const { offsetX: x, offsetY: y } = event
    if (event.buttons === 1) return move(-event.movementX / (width - namesIn(width)), 1)
    const span = spanAt(seen, x, y)
    tip.value = span ? { x: Math.min(x, width - 240), y, span } : null
  }
  return (
    <>
      <Controls move={move} shown={shown} live={() => (frame.value = null)} />
      {!isBrief && (
        <TimelineMap {...{ spans, whole, shown, width }} choose={(to) => (frame.value = to)} />
      )}
      <div
        ref={box}
        class="timeline panel"
        style={{ '--tall': `${heightOf(lanes)}px` }}
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
          aria-label={summary(lanes)}
          onPointerMove={point}
          onPointerLeave={() => (tip.value = null)}
        />
        <div style={{ height: `${Math.max(0, heightOf(lanes) - height)}px` }} />
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
  const length = (shown.to_ms - shown.from_ms) / 1000
  return (
    <div class="buttons">
      {buttons.map(([sign, label, step, zoom]) => (
        <Button key={label} label={label} act={() => move(step, zoom)}>
          {sign}
        </Button>
      ))}
      <Button act={live}>Now</Button>
      <span class="dim number">
        {timeIn(shown.from_ms, shown)}
        {length < 10 ? `, ${took(length)}` : ` to ${timeIn(shown.to_ms, shown)}`}
      </span>
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
