import pc from 'picocolors'
import { agentKind } from '../../../core/caller.ts'
import type { Now } from '../../../core/reasons/now.ts'
import { span } from '../../reads/pen.ts'
import { clock } from './table.ts'
import { clean, fit, widthOf } from './width.ts'

interface Look {
  now: Now
  width: number
  /** Undefined: as much as there is. */
  height: number | undefined
  /** The last line that a run has printed, where it can be read. */
  lastLine: (run_id: string) => string
  store: string
}

/** Those that somebody waits for first; those of running tasks are above already. */
function locksIn({ running, locks }: Now): Now['locks'] {
  const above = new Set(running.map(({ task_id }) => `task:${task_id}`))
  const others = locks.filter(({ name, waiters }) => waiters.length > 0 || !above.has(name))
  return others.toSorted((a, b) => b.waiters.length - a.waiters.length)
}

const BAR = 10
const NARROW = 70

/** The whole view as lines of at most `width` columns, and no more than `height` of them. */
export function frame(look: Look): string[] {
  const { now, height } = look
  const parts: Part[] = [
    { head: stuckHead(look), rows: stuckRows(look), most: height && 5, more: now.more.stuck },
    { head: alertHead(look), rows: alertRows(look), most: 3, more: now.more.alerts },
    { ...runningPart(look), more: now.more.running },
    { ...queuePart(look), most: 6, more: now.more.queue },
    { ...lockPart(look), more: now.more.locks },
  ].filter(({ rows, head }) => rows.length > 0 || head !== '')
  const top = [titleLine(look), '']
  const room = height === undefined ? Infinity : height - top.length - parts.length * 2 + 1
  const sizes = share(parts, room)
  const lines = [...top]
  for (const [i, { head: words, rows, more }] of parts.entries()) {
    const kept = rows.slice(0, sizes[i])
    const hidden = rows.length - kept.length + more
    const beyond = hidden > 0 ? ` +${hidden} more` : ''
    const colour = words.startsWith('!') ? pc.red : pc.dim
    lines.push(colour(fit(words, look.width - beyond.length).trimEnd() + beyond))
    lines.push(...kept, '')
  }
  // Below the last part is the end.
  return lines.slice(0, -1)
}

interface Part {
  head: string
  rows: string[]
  most?: number | undefined
  more: number
}

/** How many rows each part gets: one each in turn, until all are shown or the room is used. */
function share(parts: Part[], room: number): number[] {
  const wants = parts.map(({ rows, most = Infinity }) => Math.min(rows.length, most))
  const sizes = wants.map(() => 0)
  let left = Math.max(0, room)
  while (left > 0 && sizes.some((size, i) => size < wants[i]!)) {
    for (const [i, want] of wants.entries()) {
      if (left > 0 && sizes[i]! < want) {
        sizes[i]! += 1
        left -= 1
      }
    }
  }
  return sizes
}

/** A place that is cut shorter than this says nothing. */
const STORE_MIN = 12

function titleLine({ now, width, store }: Look): string {
  const { slots, pending, running, locks, health } = now
  const time = clock(now.at)
  const used = `slots ${slots.used}/${slots.max}`
  const work = now.dispatchers.length === 0 ? 'no dispatcher' : used
  const state = health.state === 'ok' ? [] : [health.state.toUpperCase()]
  const held = locks.length === 1 ? '1 lock' : `${locks.length} locks`
  const counts = [`${running.length} running`, `${pending.total} waiting`, held]
  const left = ['leasehold', ...state, work, ...counts].join('  ')
  const middle = width - left.length - time.length - 4
  // The rest in the order of what it is worth: the time, a picture of the slots, the store.
  if (middle < -2) return pc.bold(fit(left, width))
  const bar = ` ${gauge(slots.used, slots.max, BAR)}`
  const isDrawn = work === used && middle > bar.length
  const more = isDrawn ? middle - bar.length : middle
  const said = isDrawn ? left.replace(used, used + bar) : left
  const where = more < STORE_MIN ? ' '.repeat(Math.max(0, more)) : fit(store, more)
  return pc.bold(fit(`${said}  ${where}  ${time}`, width))
}

const nowOf = ({ now }: Look) => Date.parse(now.at)

const since = (look: Look, at: string | null) =>
  at === null ? '' : span(Math.max(0, Math.round((nowOf(look) - Date.parse(at)) / 1000)))

/** How long a lease still lasts. */
function lasts(look: Look, at: string | null): string {
  if (at === null) return ''
  const seconds = Math.ceil((Date.parse(at) - nowOf(look)) / 1000)
  return seconds <= 0 ? 'over' : span(seconds)
}

interface Column {
  name: string
  most: number
  /** Numbers and times stand at the right. */
  side?: 'right'
}

/** A part as a table: no column is wider than what stands in it, and the last takes the rest. */
function partOf(look: Look, columns: Column[], rows: string[][]) {
  const widths = columns.map(({ name, most }, i) =>
    Math.min(most, Math.max(widthOf(name), ...rows.map((cells) => widthOf(clean(cells[i]!))))),
  )
  const line = (cells: string[]) =>
    cells
      .map((cell, i) => (i < columns.length ? fit(cell, widths[i]!, columns[i]!.side) : cell))
      .join('  ')
  return {
    head: rows.length === 0 ? '' : `  ${line(columns.map(({ name }) => name))}`,
    rows: rows.map((cells) => fit(`  ${line(cells)}`, look.width)),
  }
}

function runningPart(look: Look): Pick<Part, 'head' | 'rows'> {
  const { running } = look.now
  const isNarrow = look.width < NARROW
  if (running.length === 0) {
    const line = '  Nothing runs. Add a task: leasehold task add TITLE'
    return { head: '  RUNNING', rows: [pc.dim(fit(line, look.width))] }
  }
  const columns: Column[] = [
    { name: 'RUNNING', most: isNarrow ? 8 : 12 },
    { name: 'AGENT', most: isNarrow ? 14 : 22 },
    ...(isNarrow ? [] : [{ name: 'USER', most: 10 }]),
    { name: 'FOR', most: 8, side: 'right' },
    { name: 'LEASE', most: 8, side: 'right' },
  ]
  const rows = running.map(({ task_id, run_id, title, agent, user, started_at, expires_at }) => {
    const said = (run_id === null ? '' : clean(look.lastLine(run_id)).trim()) || title
    const times = [since(look, started_at), lasts(look, expires_at)]
    const whose = isNarrow ? [] : [user ?? '']
    const by = agentKind(agent ?? '', task_id)
    return [task_id, by].concat(whose, times, said)
  })
  const { head, rows: lines } = partOf(look, columns, rows)
  return { head: `${head}  LAST OUTPUT`, rows: lines }
}

function queuePart(look: Look): Pick<Part, 'head' | 'rows'> {
  const most = Math.max(0, ...look.now.queue.map(({ pending }) => pending))
  const columns: Column[] = [
    { name: 'WAITING FOR', most: 24 },
    { name: 'TASKS', most: 8, side: 'right' },
    { name: 'RUN', most: 8, side: 'right' },
    { name: 'WEIGHT', most: 8, side: 'right' },
  ]
  const rows = look.now.queue.map(({ user, pending, running, weight, paused }) => {
    const bar = '█'.repeat(Math.ceil((pending / most) * BAR)) + (paused ? '  paused' : '')
    const numbers = [pending, running, weight].map(String)
    return [user || '(no user)', ...numbers, bar]
  })
  return partOf(look, columns, rows)
}

function lockPart(look: Look): Pick<Part, 'head' | 'rows'> {
  const room = Math.max(12, Math.floor((look.width - 16) / 3))
  const columns: Column[] = [
    { name: 'LOCK', most: room },
    { name: 'HOLDER', most: room },
    { name: 'LEASE', most: 8, side: 'right' },
  ]
  const rows = locksIn(look.now).map(({ name, holder, expires_at, waiters }) => {
    const line = waiters.length === 0 ? '' : `${waiters.length}: ${waiters.join(', ')}`
    return [name, holder, lasts(look, expires_at), line]
  })
  const { head, rows: lines } = partOf(look, columns, rows)
  return { head: head && `${head}  WAITERS`, rows: lines }
}

const stuckHead = ({ now: { stuck, health } }: Look) => {
  const isBad = health.state === 'degraded'
  return stuck.length === 0 ? '' : `${isBad ? '! ' : '  '}STUCK`
}

/** Once, with what can be done; on a screen there is no room for that. */
function stuckRows({ now, width, height }: Look): string[] {
  return now.stuck.flatMap(({ severity, what, next }) => {
    const line = fit(`${severity === 'info' ? ' ' : '!'} ${what}`, width)
    const shown = severity === 'bad' ? pc.red(line) : line
    return height === undefined && next ? [shown, pc.dim(`    next: ${next}`)] : [shown]
  })
}

/** What is stuck is told above; an alert says what happened besides. */
function alertsIn({ alerts, stuck }: Now): Now['alerts'] {
  const above = new Set(stuck.map(({ id }) => id))
  return alerts.filter(({ id }) => !above.has(id))
}

const alertHead = ({ now }: Look) => (alertsIn(now).length === 0 ? '' : '! ALERTS')

function alertRows(look: Look): string[] {
  return alertsIn(look.now).map(({ message, since: at }) => {
    return pc.red(fit(`  ${message}, ${since(look, at)} ago`, look.width))
  })
}

/** A bar of `width` columns, of which the part `value / max` is full. */
function gauge(value: number, max: number, width: number): string {
  const full = max <= 0 ? 0 : Math.min(width, Math.round((value / max) * width))
  return '█'.repeat(full) + '░'.repeat(width - full)
}
