import { useSignal } from '@preact/signals'
import { useMemo } from 'preact/hooks'
import { now } from '../data/asked.ts'
import type { Span } from '../data/spans.ts'
import { Panel } from '../parts/frame.tsx'
import { useSized } from '../parts/sized.ts'
import { clockOf, dayOf, shortDay, took } from '../parts/words.ts'

export const LANES = ['lock', 'agent', 'user'] as const
type LaneKind = (typeof LANES)[number]

const BAR = { held: 16, waited: 4 }
const GAP = 3
const PAD = 6
/** About as wide as a letter is. */
const LETTER_PX = 7
const LABEL_PX = 46
const TICK_PX = 84
const HOUR_MS = 3_600_000

interface TimelineLane {
  name: string
  /** Each with how far below the top of the lane it stands: what overlaps does not meet. */
  spans: (Span & { y: number })[]
  top: number
  height: number
}

function lanesOf(spans: Span[], of: LaneKind): TimelineLane[] {
  const lanes = new Map<string, Span[]>()
  for (const each of spans) {
    const name = of === 'user' ? userOf(each) : each[of]
    if (name === null) continue
    const lane = lanes.get(name)
    if (lane) lane.push(each)
    else lanes.set(name, [each])
  }
  let top = 0
  return [...lanes]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, mine]) => {
      const lane = Object.assign(stacked(mine), { name, top })
      top += lane.height
      return lane
    })
}

const userOf = ({ lock, user }: Span) => (lock.startsWith('user:') ? lock.slice(5) : user)

/** Rows of what was held, and below them rows of what was waited for. */
function stacked(spans: Span[]): Pick<TimelineLane, 'spans' | 'height'> {
  let height = PAD
  const found = (['held', 'waited'] as const).flatMap((kind) => {
    const ends: number[] = []
    const mine = spans.filter((span) => span.kind === kind)
    const rows = mine
      .toSorted((a, b) => a.from_ms - b.from_ms)
      .map((span) => {
        const free = ends.findIndex((end) => end <= span.from_ms)
        const row = free === -1 ? ends.length : free
        ends[row] = span.to_ms ?? Number.POSITIVE_INFINITY
        return Object.assign(span, { y: height + row * (BAR[kind] + GAP) })
      })
    height += Math.max(kind === 'held' ? 1 : 0, ends.length) * (BAR[kind] + GAP)
    return rows
  })
  return { spans: found, height: height + PAD }
}

/** How it ended, in a colour of the theme. */
const TONES: Partial<Record<Span['ending'], string>> = {
  expired: 'bad',
  died: 'bad',
  failed: 'bad',
  broken: 'bad',
  overdue: 'warn',
  cancelled: 'warn',
  forced: 'warn',
  handed_off: 'review',
}
const toneOf = ({ ending, kind }: Span) => {
  const tone = TONES[ending] ?? 'accent'
  return kind === 'waited' && tone !== 'bad' ? 'waited' : tone
}

const LEGEND = {
  accent: 'held',
  waited: 'waited',
  bad: 'expired, died or failed',
  warn: 'killed or cancelled',
  review: 'handed off',
}

/** What is seen of the past, and where a time stands in it. */
function viewOf(seconds: number, width: number) {
  const to_ms = now.value
  const from_ms = to_ms - seconds * 1000
  // A phone has more need of the time than of long names.
  const names = width < 600 ? 110 : 190
  const x = (at_ms: number) => names + ((at_ms - from_ms) / (to_ms - from_ms)) * (width - names)
  const boxOf = (span: Span) => {
    const left = Math.max(names, x(span.from_ms))
    return { x: left, w: Math.max(2, Math.min(width, x(span.to_ms ?? to_ms)) - left - 1) }
  }
  const isSeen = (span: Span) => (span.to_ms ?? to_ms) >= from_ms && span.from_ms <= to_ms
  return { from_ms, to_ms, names, x, boxOf, isSeen }
}
type View = ReturnType<typeof viewOf>

interface TimelineProps {
  spans: Span[]
  /** So much of the past, up to now. */
  seconds: number
  by: LaneKind
}

/** Lanes of what was held and waited for. */
export function Timeline({ spans, seconds, by }: TimelineProps) {
  const lanes = useMemo(() => lanesOf(spans, by), [spans, by])
  const legend = Object.entries(LEGEND).map(([tone, says]) => (
    <li key={tone}>
      <span class={`mark is-${tone}`} aria-hidden="true" /> {says}
    </li>
  ))
  if (lanes.length === 0) return <p class="dim">Nothing was held in this time.</p>
  return (
    <Panel title="Timeline" class="timeline-panel" aside={<ul class="legend">{legend}</ul>}>
      <Lanes lanes={lanes} seconds={seconds} />
    </Panel>
  )
}

/** Only the lanes that are on screen: there may be a thousand. */
function Lanes({ lanes, seconds }: { lanes: TimelineLane[]; seconds: number }) {
  const { box, size } = useSized()
  const scrolled = useSignal(0)
  const tip = useSignal<{ x: number; y: number; span: Span } | null>(null)
  const { width, height } = size
  const view = viewOf(seconds, width)
  const last = lanes.at(-1)!
  const tall = last.top + last.height
  const top = scrolled.value
  const point = ({ offsetX: x, offsetY: y }: PointerEvent) => {
    const lane = lanes.find((each) => y >= each.top && y < each.top + each.height)
    const span = lane?.spans.findLast((each) => {
      const at = view.boxOf(each)
      const below = y - lane.top - each.y
      const isOn = below >= -2 && below <= BAR[each.kind] + 2
      return view.isSeen(each) && isOn && x >= at.x && x <= at.x + at.w + 1
    })
    tip.value = span ? { x: Math.max(0, Math.min(x, width - 260)), y, span } : null
  }
  return (
    <div
      ref={box}
      class="timeline"
      tabIndex={0}
      role="group"
      aria-label="Lanes"
      onScroll={(event) => (scrolled.value = event.currentTarget.scrollTop)}
    >
      <Scale view={view} width={width} />
      <svg
        width={width}
        height={tall}
        role="img"
        aria-label={summary(lanes)}
        onPointerMove={point}
        onPointerLeave={() => (tip.value = null)}
      >
        {lanes
          .filter((lane) => lane.top + lane.height >= top && lane.top <= top + height)
          .map((lane) => (
            <Lane key={lane.name} lane={lane} view={view} />
          ))}
      </svg>
      {tip.value && <Tip {...tip.value} />}
    </div>
  )
}

const STEPS_S = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 86_400]

function Scale({ view: { from_ms, to_ms, names, x }, width }: { view: View; width: number }) {
  const most = (width - names) / TICK_PX
  const step_ms = 1000 * (STEPS_S.find((s) => (to_ms - from_ms) / 1000 / s < most) ?? 172_800)
  const first = Math.ceil(from_ms / step_ms) * step_ms
  const ticks = Array.from({ length: Math.floor((to_ms - first) / step_ms) + 1 }, (_, i) => {
    return first + i * step_ms
  })
  // With the day, where a time of day could be of several.
  const says = to_ms - from_ms > 20 * HOUR_MS ? shortDay : clockOf
  return (
    <div class="scale dim" aria-hidden="true">
      {ticks.map((at) => (
        <span key={at} style={{ left: `${x(at)}px` }}>
          {x(at) < width - 60 && says(at)}
        </span>
      ))}
    </div>
  )
}

function Lane({ lane: { name, spans, top, height }, view }: { lane: TimelineLane; view: View }) {
  const paths = new Map<string, string>()
  const labels: preact.JSX.Element[] = []
  for (const span of spans.filter(view.isSeen)) {
    const { y, kind, lock, agent } = span
    const { x, w } = view.boxOf(span)
    const tone = toneOf(span)
    // How it ended is also a shape: colour alone is not for everybody.
    const end = kind === 'held' && tone !== 'accent' ? `M${x + w} ${y - 3}h3v22h-3z` : ''
    const bar = `M${x.toFixed(1)} ${y}h${w.toFixed(1)}v${BAR[kind]}h-${w.toFixed(1)}z`
    paths.set(tone, `${paths.get(tone) ?? ''}${bar}${end}`)
    if (kind === 'waited' || w < LABEL_PX) continue
    labels.push(
      <text key={`${span.fence} ${lock}`} class="lane-label" x={x + 5} y={y + 12}>
        {shortened(name === lock ? agent : lock, w - 10)}
      </text>,
    )
  }
  return (
    <g transform={`translate(0 ${top})`}>
      <path class="lane-line" d={`M0 ${height - 1}h9999`} />
      <text x={10} y={19}>
        {shortened(name, view.names - 20)}
      </text>
      {[...paths].map(([tone, d]) => (
        <path key={tone} class={`is-${tone}`} d={d} />
      ))}
      {labels}
    </g>
  )
}

/** Paths of one folder differ at their end, so something is left of both. */
function shortened(name: string, width: number): string {
  const letters = Math.floor(width / LETTER_PX)
  if (name.length <= letters) return name
  const last = letters < 10 ? 0 : Math.floor(letters / 2)
  return `${name.slice(0, Math.max(1, letters - last - 1))}…${name.slice(name.length - last)}`
}

function Tip({ x, y, span }: { x: number; y: number; span: Span }) {
  const { agent, kind, lock, ending, from, to, fence } = span
  const lasted = took(((span.to_ms ?? now.value) - span.from_ms) / 1000)
  return (
    <div class="tip" style={{ left: `${x + 12}px`, top: `${y + 36}px` }}>
      <strong>{agent}</strong> {kind === 'held' ? 'held' : 'waited for'} {lock}
      <br />
      {lasted}, {ending === 'open' ? 'until now' : ending.replace('_', ' ')}
      {fence !== null && `, fence ${fence}`}
      <br />
      {dayOf(from)}
      {to !== null && ` to ${clockOf(to)}`}
    </div>
  )
}

function summary(lanes: TimelineLane[]): string {
  const all = lanes.flatMap(({ spans }) => spans)
  const bad = all.filter(({ ending }) => ending === 'expired' || ending === 'died').length
  return `${lanes.length} lanes, ${all.length} spans of time, ${bad} of them expired or died`
}
