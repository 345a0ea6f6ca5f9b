import type { Span } from '../data/spans.ts'
import { clockOf } from '../parts/words.ts'

export interface Window {
  from_ms: number
  to_ms: number
}

export interface TimelineLane {
  name: string
  spans: Span[]
}

export const LANE = 30
export const HEAD = 28
export const NAMES = 190
const LEAST_PX = 3
/** Narrower than this, a name in a bar would be a letter and three dots. */
const LABEL_MIN = 46

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
  'text' | 'on' | 'dim' | 'line' | 'held' | 'waited' | 'bad' | 'killed' | 'handed',
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
    killed: of('warn'),
    handed: of('review'),
  }
}

/** Only the lanes that are on screen: there may be a thousand. */
export function draw(canvas: HTMLCanvasElement, drawing: Drawing): void {
  const { width, height, lanes, top } = drawing
  const scale = devicePixelRatio
  canvas.width = width * scale
  canvas.height = height * scale
  canvas.style.width = `${width}px`
  canvas.style.height = `${height}px`
  const pen = canvas.getContext('2d')!
  pen.scale(scale, scale)
  pen.font = '12px system-ui, sans-serif'
  const ink = colours()
  const first = Math.floor(top / LANE)
  const last = Math.ceil((top + height) / LANE)
  drawScale(pen, drawing, ink)
  // Lanes scroll under the scale, not over it.
  pen.beginPath()
  pen.rect(0, HEAD, width, height)
  pen.clip()
  for (const [i, lane] of lanes.slice(first, last).entries()) {
    drawLane(pen, lane, HEAD + (first + i) * LANE - top, drawing, ink)
  }
}

const STEPS_S = [1, 5, 15, 30, 60, 300, 900, 1800, 3600, 10_800, 21_600]

function drawScale(pen: CanvasRenderingContext2D, drawing: Drawing, ink: Colours): void {
  const { shown, width, height } = drawing
  const seconds = (shown.to_ms - shown.from_ms) / 1000
  const step_ms = 1000 * (STEPS_S.find((s) => (seconds / s) * 84 < width - NAMES) ?? 43_200)
  for (let at = Math.ceil(shown.from_ms / step_ms) * step_ms; at < shown.to_ms; at += step_ms) {
    const x = xOf(at, shown, width)
    pen.fillStyle = ink.line
    pen.fillRect(x, HEAD - 8, 1, height)
    pen.fillStyle = ink.dim
    if (x < width - 60) pen.fillText(clockOf(at), x + 4, 15)
  }
}

function xOf(at_ms: number, shown: Window, width: number): number {
  return NAMES + ((at_ms - shown.from_ms) / (shown.to_ms - shown.from_ms)) * (width - NAMES)
}

function drawLane(
  pen: CanvasRenderingContext2D,
  lane: TimelineLane,
  y: number,
  { shown, width, now_ms }: Drawing,
  ink: Colours,
): void {
  pen.fillStyle = ink.line
  pen.fillRect(0, y + LANE - 1, width, 1)
  pen.fillStyle = ink.text
  pen.fillText(shortened(pen, lane.name, NAMES - 20), 10, y + 17)
  for (const span of lane.spans) {
    const box = boxOf(span, shown, width, now_ms)
    if (!box) continue
    const waits = span.kind === 'waited'
    pen.fillStyle = colourOf(span, ink)
    pen.globalAlpha = waits ? 0.75 : 1
    // A gap of a pixel: what one agent gave back, the next may take at once.
    pen.fillRect(box.x, y + (waits ? 23 : 5), Math.max(2, box.w - 1), waits ? 4 : 16)
    pen.globalAlpha = 1
    if (!waits && box.w > LABEL_MIN) drawLabel(pen, lane, span, box, y, ink)
    // How it ended is also a shape: colour alone is not for everybody.
    if (isBad(span)) drawEnd(pen, box.x + box.w, y, ink)
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
  pen.fillText(
    shortened(pen, lane.name === span.lock ? span.agent : span.lock, box.w - 10),
    box.x + 5,
    y + 17,
  )
}

const isBad = ({ ending }: Span) => ending === 'expired' || ending === 'died' || ending === 'killed'

function drawEnd(pen: CanvasRenderingContext2D, x: number, y: number, ink: Colours): void {
  pen.fillStyle = ink.bad
  pen.beginPath()
  pen.moveTo(x - 1, y + 2)
  pen.lineTo(x + 6, y + 12)
  pen.lineTo(x - 1, y + 22)
  pen.fill()
}

function colourOf({ kind, ending }: Span, ink: Colours): string {
  if (kind === 'waited') return ending === 'killed' ? ink.bad : ink.waited
  if (ending === 'expired' || ending === 'died') return ink.bad
  if (ending === 'killed') return ink.killed
  return ending === 'handed off' ? ink.handed : ink.held
}

function boxOf({ from_ms, to_ms }: Span, shown: Window, width: number, now_ms: number) {
  const end = to_ms ?? now_ms
  if (end < shown.from_ms || from_ms > shown.to_ms) return undefined
  const x = Math.max(NAMES, xOf(from_ms, shown, width))
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
  return `${name.slice(0, Math.max(1, letters))}…`
}

/** What is drawn at a point. */
export function spanAt(
  lanes: TimelineLane[],
  shown: Window,
  width: number,
  x: number,
  y: number,
  now_ms: number,
): Span | undefined {
  const lane = lanes[Math.floor((y - HEAD) / LANE)]
  return lane?.spans.findLast((span) => {
    const box = boxOf(span, shown, width, now_ms)
    return box && x >= box.x && x <= box.x + box.w
  })
}
