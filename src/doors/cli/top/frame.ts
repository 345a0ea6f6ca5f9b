import pc from 'picocolors'
import type { Now } from '../../../core/stats/now.ts'
import { span } from '../show/table.ts'
import { clean, fit } from '../show/width.ts'

/** What can be chosen: a running task, or a lock. */
export type Choice =
  | { kind: 'task'; id: string; run_id: string | null; title: string }
  | { kind: 'lock'; id: string; holder: string }

interface Look {
  now: Now
  /** The terminal's own time, on the clock of the store. */
  wall_ms: number
  width: number
  /** Undefined: as much as there is. */
  height: number | undefined
  chosen: string | undefined
  /** The last line that a run has printed, where it can be read. */
  lastLine: (run_id: string) => string
  store: string
}

export const keyOfChoice = ({ kind, id }: Choice) => `${kind}:${id}`

/** Everything that can be chosen, in the order in which it is shown. */
export function choicesIn(now: Now): Choice[] {
  const tasks = now.running.map(({ task_id, run_id, title }) => {
    return { kind: 'task' as const, id: task_id, run_id, title }
  })
  const held = locksIn(now).map(({ name, holder }) => ({ kind: 'lock' as const, id: name, holder }))
  return [...tasks, ...held]
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
    { head: stuckHead(look), rows: stuckRows(look), most: 5, more: now.more.stuck },
    { head: alertHead(look), rows: alertRows(look), most: 3, more: now.more.alerts },
    { head: runningHead(look), rows: runningRows(look), more: now.more.running },
    { head: queueHead(look), rows: queueRows(look), most: 6, more: now.more.queue },
    { head: lockHead(look), rows: lockRows(look), more: now.more.locks },
  ].filter(({ rows, head }) => rows.length > 0 || head !== '')
  const top = [titleLine(look), '']
  const room = height === undefined ? Infinity : height - top.length - parts.length * 2
  const sizes = share(parts, room)
  const lines = [...top]
  for (const [i, { head: words, rows, more }] of parts.entries()) {
    const kept = around(rows, sizes[i]!, look.chosen)
    const hidden = rows.length - kept.length + more
    const beyond = hidden > 0 ? ` +${hidden} more` : ''
    const colour = words.startsWith('!') ? pc.red : pc.dim
    lines.push(colour(fit(words, look.width - beyond.length).trimEnd() + beyond))
    for (const { line } of kept) lines.push(line)
    lines.push('')
  }
  return lines
}

interface Row {
  key: string
  line: string
}

interface Part {
  head: string
  rows: Row[]
  most?: number
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

/** So many rows, with the chosen one among them. */
function around(rows: Row[], size: number, chosen: string | undefined): Row[] {
  const at = rows.findIndex(({ key }) => key === chosen)
  const from = at < size ? 0 : at - size + 1
  return rows.slice(from, from + size)
}

function titleLine({ now, width, wall_ms, store }: Look): string {
  const { slots, pending, running, locks } = now
  const time = new Date(wall_ms).toISOString().slice(11, 19)
  const used = `${slots.used}/${slots.max}`
  const bar = width < NARROW ? '' : ` ${gauge(slots.used, slots.max, BAR)}`
  const work = now.dispatchers.length === 0 ? 'no dispatcher' : `slots ${used}${bar}`
  const paused = now.paused ? '  PAUSED' : ''
  const said = `${work}  ${running.length} running  ${pending.total} waiting  ${locks.length} locks`
  const left = `leasehold  ${said}${paused}`
  const right = width < NARROW ? '' : `${time}Z`
  const middle = Math.max(0, width - left.length - right.length - 2)
  return pc.bold(fit(`${left}  ${fit(store, middle)}${right}`, width))
}

/** One row: chosen ones are marked by a sign too, for those who see no colours. */
function row(look: Look, key: string, cells: string): Row {
  const isChosen = key === look.chosen
  const line = `${isChosen ? '>' : ' '} ${fit(cells, look.width - 2)}`
  return { key, line: isChosen ? pc.inverse(line) : line }
}

const since = (look: Look, at: string | null) =>
  at === null ? '' : span(Math.max(0, Math.round((look.wall_ms - Date.parse(at)) / 1000)))

/** How long a lease still lasts. */
function lasts(look: Look, at: string | null): string {
  if (at === null) return ''
  const seconds = Math.ceil((Date.parse(at) - look.wall_ms) / 1000)
  return seconds <= 0 ? 'over' : span(seconds)
}

const head = (text: string) => `  ${text}`

/** Columns by what there is room for: names of things last, where they may be long. */
function taskCells(look: Look, cells: string[]): string {
  const [task, agent, user, elapsed, lease, said] = cells as [string, ...string[]]
  const narrow = look.width < NARROW
  const parts = [
    fit(task, narrow ? 8 : 12),
    fit(agent!, narrow ? 14 : 22),
    ...(narrow ? [] : [fit(user!, 10)]),
    fit(elapsed!, 8, 'right'),
    fit(lease!, 8, 'right'),
  ]
  return `${parts.join(' ')}  ${said}`
}

const runningHead = (look: Look) =>
  head(taskCells(look, ['RUNNING', 'AGENT', 'USER', 'FOR', 'LEASE', 'LAST OUTPUT']))

function runningRows(look: Look): Row[] {
  const rows = look.now.running.map((task) => {
    const { task_id, run_id, title: named, agent, user, started_at, expires_at } = task
    const said = (run_id === null ? '' : clean(look.lastLine(run_id)).trim()) || named
    const times = [since(look, started_at), lasts(look, expires_at)]
    return row(
      look,
      `task:${task_id}`,
      taskCells(look, [task_id, agent ?? '', user ?? '', ...times, said]),
    )
  })
  if (rows.length > 0) return rows
  return [
    {
      key: '',
      line: pc.dim(fit('  Nothing runs. Add a task: leasehold task add TITLE', look.width)),
    },
  ]
}

const queueHead = (look: Look) =>
  look.now.queue.length === 0 ? '' : head(`${fit('WAITING FOR', 16)} TASKS  RUN  WEIGHT`)

function queueRows(look: Look): Row[] {
  const most = Math.max(0, ...look.now.queue.map(({ pending }) => pending))
  return look.now.queue.map(({ user, pending, running, weight, paused }) => {
    const numbers = `${fit(String(pending), 5, 'right')}${fit(String(running), 5, 'right')}`
    const bar = '█'.repeat(Math.ceil((pending / most) * BAR))
    const said = `${fit(user || '(no user)', 16)} ${numbers}${fit(String(weight), 8, 'right')}`
    return { key: '', line: fit(`  ${said}  ${bar}${paused ? '  paused' : ''}`, look.width) }
  })
}

function lockCells(look: Look, name: string, holder: string, lease: string, line: string): string {
  const room = Math.max(12, Math.floor((look.width - 26) / 3))
  return `${fit(name, room)} ${fit(holder, room)} ${fit(lease, 8, 'right')}  ${line}`
}

const lockHead = (look: Look) =>
  locksIn(look.now).length === 0 ? '' : head(lockCells(look, 'LOCK', 'HOLDER', 'LEASE', 'WAITERS'))

function lockRows(look: Look): Row[] {
  return locksIn(look.now).map(({ name, holder, expires_at, waiters }) => {
    const line = waiters.length === 0 ? '' : `${waiters.length}: ${waiters.join(', ')}`
    return row(look, `lock:${name}`, lockCells(look, name, holder, lasts(look, expires_at), line))
  })
}

const stuckHead = ({ now: { stuck, health } }: Look) => {
  const isBad = health.state === 'degraded'
  return stuck.length === 0 ? '' : `${isBad ? '! ' : '  '}STUCK`
}

function stuckRows({ now, width }: Look): Row[] {
  return now.stuck.map(({ severity, what }) => {
    const line = fit(`${severity === 'info' ? ' ' : '!'} ${what}`, width)
    return { key: '', line: severity === 'bad' ? pc.red(line) : line }
  })
}

/** What is stuck is told above; an alert says what happened besides. */
function alertsIn({ alerts, stuck }: Now): Now['alerts'] {
  const above = new Set(stuck.map(({ id }) => id))
  return alerts.filter(({ id }) => !above.has(id))
}

const alertHead = ({ now }: Look) => (alertsIn(now).length === 0 ? '' : '! ALERTS')

function alertRows(look: Look): Row[] {
  return alertsIn(look.now).map(({ message, since: at }) => {
    return { key: '', line: pc.red(fit(`  ${message}, ${since(look, at)} ago`, look.width)) }
  })
}

/** A bar of `width` columns, of which the part `value / max` is full. */
function gauge(value: number, max: number, width: number): string {
  const full = max <= 0 ? 0 : Math.min(width, Math.round((value / max) * width))
  return '█'.repeat(full) + '░'.repeat(width - full)
}
