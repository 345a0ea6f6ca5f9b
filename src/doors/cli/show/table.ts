import pc from 'picocolors'
import { fit, widthOf } from './width.ts'
import { io } from '../../io.ts'
import type { SheetFact } from '../../reads/pen.ts'

const GAP = 2
/** A column is not made narrower than this. */
const LEAST = 6

/**
 * Columns for a person, within the terminal if there is one: the widest give way. Text from tasks
 * cannot colour or move the cursor: it is stripped.
 */
export function table(head: string[], rows: string[][]): string {
  const all = [head, ...rows]
  const wanted = head.map((_, i) => Math.max(...all.map((row) => widthOf(row[i] ?? ''))))
  const widths = within(wanted, io().stdout.columns ?? Number.POSITIVE_INFINITY)
  const line = (row: string[]) =>
    row
      .map((cell, i) => {
        const space = widths[i]! - widthOf(cell)
        return space < 0 ? fit(cell, widths[i]!) : cell + ' '.repeat(space)
      })
      .join(' '.repeat(GAP))
      .trimEnd()
  return [pc.dim(line(head)), ...rows.map(line)].join('\n')
}

export const moreOf = (next: string) => pc.dim(`more: --after ${next}`)

/** What is known, one fact per line. */
export const factLines = (facts: SheetFact[]) =>
  facts
    .filter(([, value]) => value !== null && value !== '')
    .map(([name, value]) => `  ${pc.dim(name.padEnd(11))} ${value}`)

function within(wanted: number[], columns: number): number[] {
  const widths = [...wanted]
  let over = wanted.reduce((sum, each) => sum + each + GAP, -GAP) - columns
  while (over > 0 && Math.max(...widths) > LEAST) {
    const widest = widths.indexOf(Math.max(...widths))
    // Down to the next widest at most, so that several give way alike.
    const next = Math.max(LEAST, ...widths.filter((_, i) => i !== widest))
    const given = Math.min(over, Math.max(1, widths[widest]! - next))
    widths[widest]! -= given
    over -= given
  }
  return widths
}

const two = (part: number) => String(part).padStart(2, '0')
const dayOf = (time: Date) =>
  `${time.getFullYear()}-${two(time.getMonth() + 1)}-${two(time.getDate())}`

/** A time as a clock here shows it, to the second; of another day, with its date. */
export function clock(at: string | null): string {
  if (at === null) return ''
  const time = new Date(at)
  const shown = `${two(time.getHours())}:${two(time.getMinutes())}`
  const isToday = dayOf(time) === dayOf(new Date())
  return isToday ? `${shown}:${two(time.getSeconds())}` : `${dayOf(time)} ${shown}`
}

/** Our own sentences, with such times. */
export const clocked = (sentence: string) =>
  sentence.replaceAll(/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, clock)

/** Text of others below lines of ours: none of its lines begins where ours do. */
export const indented = (text: string) =>
  text
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n')
