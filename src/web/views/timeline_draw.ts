import type { Span } from '../data/spans.ts'
import { clockOf, shortDay } from '../parts/words.ts'

export interface Window {
  from_ms: number
  to_ms: number
}

/** A span, and in which row of its lane it stands: those that overlap stand below each other. */
export interface Placed extends Span {
  y: number
}

export interface TimelineLane {
  name: string
  spans: Placed[]
  top: number
  height: number
}

const HEAD = 28
/** Room for names: a phone has more need of the time than of long names. */
const namesIn = (width: number) => (width < 600 ? 110 : 190)
const BAR = 16
const THIN = 4
const GAP = 3
const LEAST_PX = 3
/** Narrower than this, a name in a bar would be a letter and three dots. */
const LABEL_MIN = 46

/** Lanes below each other, with all that overlaps beside each other in its own lane. */
export function placed(lanes: Map<string, Span[]>): TimelineLane[] {
  let top = HEAD
  return [...lanes]
    .toSorted(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, spans]) => {
      const ends: Record<Span['kind'], number[]> = { held: [], waited: [] }
      const rows = spans
        .toSorted((a, b) => a.from_ms - b.from_ms)
        .map((span) => {
          const of = ends[span.kind]
          const free = of.findIndex((end) => end <= span.from_ms)
          const row = free === -1 ? of.length : free
          of[row] = span.to_ms ?? Number.POSITIVE_INFINITY
          return { span, row }
        })
      const held = Math.max(1, ends.held.length) * (BAR + GAP)
      const height = 10 + held + ends.waited.length * (THIN + GAP)
      const lane = {
        name,
        top,
        height,
        spans: rows.map(({ span, row }) => {
          const y = span.kind === 'held' ? row * (BAR + GAP) : held + row * (THIN + GAP)
          return Object.assign(span, { y: 5 + y })
        }),
      }
      top += height
      return lane
    })
}

export const heightOf = (lanes: TimelineLane[]) => {
  const last = lanes.at(-1)
  return last ? last.top + last.height : HEAD
}

interface Drawing {
  lanes: TimelineLane[]
  shown: Window
  /** Of what is on screen; `top` of it is scrolled away. */
  width: number
  height: number
  top: number
  now_ms: number
}

type Colours = Record<
  'text' | 'on' | 'dim' | 'line' | 'held' | 'waited' | 'bad' | 'warn' | 'handed',
  string
>

/** Colours of the theme, as the style sheet has them. */
function colours(): Colours {
  const style = getComputedStyle(document.documentElement)
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim()
  return {
    text: of('text'),
    on: of('on-accent'),
    dim: of('dim'),
    line: of('line'),
    held: of('accent'),
    waited: of('waited'),
    bad: of('bad'),
    warn: of('warn'),
    handed: of('review'),
  }
}

/** A canvas of this size in its own pixels, empty. */
function penFor(canvas: HTMLCanvasElement, width: number, height: number) {
  const scale = devicePixelRatio
  canvas.width = width * scale
  canvas.height = height * scale
  canvas.style.width = `${width}px`
  canvas.style.height = `${height}px`
  const pen = canvas.getContext('2d')!
  pen.scale(scale, scale)
  pen.font = '12px system-ui, sans-serif'
  return pen
}

/** Only the lanes that are on screen: there may be a thousand. */
export function draw(canvas: HTMLCanvasElement, drawing: Drawing): void {
  const { width, height, lanes, top } = drawing
  const pen = penFor(canvas, width, height)
  const ink = colours()
  drawScale(pen, drawing, ink)
  // Lanes scroll under the scale, not over it.
  pen.beginPath()
  pen.rect(0, HEAD, width, height)
  pen.clip()
  for (const lane of lanes) {
    if (lane.top + lane.height < top) continue
    if (lane.top > top + height) break
    drawLane(pen, lane, drawing, ink)
  }
}

const STEPS_S = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600, 86_400]
const LONG_MS = 20 * 3_600_000

/** With the day, where the window is so long that a time of day could be of several. */
const timeIn = (at_ms: number, { from_ms, to_ms }: Window) =>
  to_ms - from_ms > LONG_MS ? shortDay(at_ms) : clockOf(at_ms)

function drawScale(pen: CanvasRenderingContext2D, drawing: Drawing, ink: Colours): void {
  const { shown, width, height } = drawing
  const seconds = (shown.to_ms - shown.from_ms) / 1000
  const step_ms =
    1000 * (STEPS_S.find((s) => (seconds / s) * 84 < width - namesIn(width)) ?? 172_800)
  for (let at = Math.ceil(shown.from_ms / step_ms) * step_ms; at < shown.to_ms; at += step_ms) {
    const x = xOf(at, shown, width)
    pen.fillStyle = ink.line
    pen.fillRect(x, HEAD - 8, 1, height)
    pen.fillStyle = ink.dim
    if (x < width - 60) pen.fillText(timeIn(at, shown), x + 4, 15)
  }
}

function xOf(at_ms: number, shown: Window, width: number): number {
  const names = namesIn(width)
  return names + ((at_ms - shown.from_ms) / (shown.to_ms - shown.from_ms)) * (width - names)
}

function drawLane(
  pen: CanvasRenderingContext2D,
  lane: TimelineLane,
  { shown, width, now_ms, top }: Drawing,
  ink: Colours,
): void {
  const y = lane.top - top
  pen.fillStyle = ink.line
  pen.fillRect(0, y + lane.height - 1, width, 1)
  pen.fillStyle = ink.text
  pen.fillText(shortened(pen, lane.name, namesIn(width) - 20), 10, y + 17)
  for (const span of lane.spans) {
    const box = boxOf(span, shown, width, now_ms)
    if (!box) continue
    const waits = span.kind === 'waited'
    pen.fillStyle = colourOf(span, ink)
    pen.globalAlpha = waits ? 0.75 : 1
    // A gap of a pixel: what one agent gave back, the next may take at once.
    pen.fillRect(box.x, y + span.y, Math.max(2, box.w - 1), waits ? THIN : BAR)
    pen.globalAlpha = 1
    if (!waits && box.w > LABEL_MIN) drawLabel(pen, lane, span, box, y + span.y + 12, ink)
    // How it ended is also a shape: colour alone is not for everybody.
    if (!waits && toneOf(span) !== 'held')
      drawEnd(pen, box.x + box.w, y + span.y, colourOf(span, ink))
  }
}

/** Who, in a lane of a lock; what, in a lane of an agent or a user. */
function drawLabel(
  pen: CanvasRenderingContext2D,
  lane: TimelineLane,
  span: Span,
  box: { x: number; w: number },
  y: number,
  ink: Colours,
): void {
  pen.fillStyle = ink.on
  const text = lane.name === span.lock ? span.agent : span.lock
  pen.fillText(shortened(pen, text, box.w - 10), box.x + 5, y)
}

function drawEnd(pen: CanvasRenderingContext2D, x: number, y: number, colour: string): void {
  pen.fillStyle = colour
  pen.beginPath()
  pen.moveTo(x - 1, y - 3)
  pen.lineTo(x + 6, y + BAR / 2)
  pen.lineTo(x - 1, y + BAR + 3)
  pen.fill()
}

const TONES: Partial<Record<Span['ending'], keyof Colours>> = {
  expired: 'bad',
  died: 'bad',
  failed: 'bad',
  broken: 'bad',
  overdue: 'warn',
  cancelled: 'warn',
  forced: 'warn',
  handed_off: 'handed',
}

const toneOf = ({ ending }: Span) => TONES[ending] ?? 'held'

function colourOf(span: Span, ink: Colours): string {
  const tone = toneOf(span)
  return ink[span.kind === 'waited' && tone !== 'bad' ? 'waited' : tone]
}

function boxOf({ from_ms, to_ms }: Span, shown: Window, width: number, now_ms: number) {
  const end = to_ms ?? now_ms
  if (end < shown.from_ms || from_ms > shown.to_ms) return undefined
  const x = Math.max(namesIn(width), xOf(from_ms, shown, width))
  const w = Math.max(LEAST_PX, Math.min(width, xOf(end, shown, width)) - x)
  return { x, w }
}

/** Measuring takes longer than drawing, and the same names come again with every frame. */
const widths = new Map<string, number>()

function widthOf(pen: CanvasRenderingContext2D, text: string): number {
  let width = widths.get(text)
  if (width === undefined) {
    if (widths.size > 5_000) widths.clear()
    widths.set(text, (width = pen.measureText(text).width))
  }
  return width
}

function shortened(pen: CanvasRenderingContext2D, name: string, width: number): string {
  if (widthOf(pen, name) < width) return name
  const letters = Math.floor((name.length * width) / widthOf(pen, name)) - 1
  // Paths of one folder differ at their end.
  const last = letters < 10 ? 0 : Math.floor(letters / 2)
  return `${name.slice(0, Math.max(1, letters - last))}…${name.slice(name.length - last)}`
}

/** What is drawn at a point. */
export function spanAt(
  { lanes, shown, width, top, now_ms }: Omit<Drawing, 'height'>,
  x: number,
  y: number,
): Span | undefined {
  const at = y + top
  const lane = lanes.find((each) => at >= each.top && at < each.top + each.height)
  return lane?.spans.findLast((span) => {
    const box = boxOf(span, shown, width, now_ms)
    const below = at - lane.top - span.y
    const isOn = below >= -2 && below <= (span.kind === 'held' ? BAR : THIN) + 2
    return box && isOn && x >= box.x && x <= box.x + box.w
  })
}
