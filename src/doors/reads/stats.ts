import type { ShownTimes, StatsReport } from '../../core/stats/report.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { bytesText, pageTable, type Pen, type Readings, span } from './pen.ts'

/** What is stuck, what to worry about, and how a period was. */
export const STATS: Readings = {
  'stats.get': statsSheet,
  'stuck.get': stuckSheet,
  'alert.list': (page, pen) =>
    pageTable(pen, page, 'Nothing to worry about.', {
      ALERT: ({ rule }) => pen.bad(rule),
      SINCE: 'since',
      WHAT: ({ message, undelivered }) =>
        message + undelivered.map((each) => pen.warn(` (not sent by ${each})`)).join(''),
    }),
}

const MARKS = { bad: '!', warn: '!', info: '-' } as const
const WEIGHTS = { bad: 'bad', warn: 'warn', info: 'dim' } as const

function stuckSheet({ health, items, more }: AnswerOf<'stuck.get'>, pen: Pen): string {
  const how = headOf(health.state, items, pen)
  if (items.length === 0) return `${how}: nothing is stuck`
  const causes = items.map(({ severity, what, why, next, since }) => {
    const began = since === null ? '' : pen.dim(` (since ${pen.time(since)})`)
    const rest = [why && why !== what && pen.sentence(why), next && pen.dim(`next: ${next}`)]
    const lines = rest.filter(Boolean).map((line) => `    ${line}`)
    return [`${pen[WEIGHTS[severity]](MARKS[severity])} ${what}${began}`, ...lines].join('\n')
  })
  const rest =
    more > 0 ? [pen.dim(`and ${more} more: ${pen.call(wider(items.length + more))}`)] : []
  return [how, ...causes, ...rest].join('\n')
}

const wider = (limit: number) => ({ operation: 'stuck.get', input: { limit } })

/** One word for all that follows: never "ok" above something that a person should see to. */
function headOf(state: string, items: { severity: string }[], pen: Pen): string {
  if (state !== 'ok') return pen.bad(state)
  if (items.some(({ severity }) => severity !== 'info')) return pen.warn('goes on, but look at:')
  return items.length === 0 ? pen.good('ok') : pen.good('ok: all that waits goes on by itself')
}

const BAR = 16
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** A bar of at most `BAR` characters, exact to an eighth of one. */
function bar(value: number, max: number, pen: Pen): string {
  const eighths = max === 0 ? 0 : Math.round((value / max) * BAR * 8)
  return pen.good('█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!)
}

/** Short times need parts of a second, long ones no longer. */
function time(seconds: number | null): string {
  if (seconds === null) return '–'
  if (seconds < 1) return `${Math.round(seconds * 1000)}ms`
  return seconds < 10 ? `${seconds.toFixed(1)}s` : span(Math.round(seconds))
}

const percent = (part: number) => `${(part * 100).toFixed(1)}%`

function statsSheet(report: AnswerOf<'stats.get'>, pen: Pen): string {
  const { locks, tasks, agents, queue, commits } = report
  const some = (count: number, colour: (text: string) => string) =>
    count > 0 ? colour(String(count)) : '0'
  const facts = [
    ['locks', `${locks.acquisitions} acquired, ${locks.refused} refused, ${locks.waits} waited`],
    ['', `${some(locks.expired, pen.warn)} expired, ${some(locks.died, pen.warn)} freed by death`],
    ['', `${locks.gave_up} gave up waiting, ${some(locks.deadlocks, pen.bad)} deadlocks`],
    ['stale', `${some(report.stale_writes, pen.warn)} stale writes refused`],
    ['agents', `${agents.appeared} new, ${some(agents.lost, pen.bad)} lost`],
    ['tasks', `${tasks.created} new, ${tasks.claimed} claimed, ${tasks.done} done`],
    ['', `${some(tasks.failed, pen.bad)} failed, ${tasks.cancelled} cancelled`],
    ['queue', `${queue.depth_now} wait now, ${queue.enqueued} enqueued, ${queue.started} started`],
    ['commits', `${commits.count}, of ${commits.asks_mean ?? 0} asks on average`],
    ['store', bytesText(report.store)],
  ]
  const parts = [
    `${pen.strong('statistics')}  ${pen.time(report.from)} – ${pen.time(report.to)}`,
    facts.map(([name, said]) => `  ${pen.dim(name!.padEnd(9))} ${said}`).join('\n'),
    timesTable(pen, [
      { what: 'wait for a lock', ...report.wait },
      { what: 'hold of a lock', ...report.hold },
      { what: 'in the queue', ...queue.wait },
      { what: 'claim to start', ...queue.dispatch },
    ]),
    ...contended(report, pen),
    ...longestWaits(report, pen),
    ...fairness(report, pen),
  ]
  return parts.join('\n\n')
}

const timesTable = (pen: Pen, items: (ShownTimes & { what: string })[]) =>
  pageTable(pen, { items }, '', {
    TIME: 'what',
    COUNT: 'count',
    MEAN: ({ mean_seconds }) => time(mean_seconds),
    P50: ({ p50_seconds }) => time(p50_seconds),
    P90: ({ p90_seconds }) => time(p90_seconds),
    P99: ({ p99_seconds }) => time(p99_seconds),
  })

function contended({ contended: locks }: StatsReport, pen: Pen): string[] {
  if (locks.length === 0) return []
  const most = Math.max(...locks.map(({ refused, waits }) => refused + waits))
  const shown = pageTable(pen, { items: locks }, '', {
    'MOST CONTENDED': 'name',
    REFUSED: 'refused',
    WAITS: 'waits',
    WAITED: ({ waited_seconds }) => time(waited_seconds),
    '': ({ refused, waits }) => bar(refused + waits, most, pen),
  })
  return [shown]
}

function longestWaits({ longest_waits }: StatsReport, pen: Pen): string[] {
  if (longest_waits.length === 0) return []
  const most = longest_waits[0]!.waited_seconds
  const rows = longest_waits.map(({ lock, agent, waited_seconds, at }) => {
    return [lock, agent, time(waited_seconds), pen.time(at), bar(waited_seconds, most, pen)]
  })
  return [pen.table(['LONGEST WAITS', 'AGENT', 'WAITED', 'UNTIL', ''], rows)]
}

function fairness({ fairness: { index, users } }: StatsReport, pen: Pen): string[] {
  if (users.length === 0) return []
  const most = Math.max(...users.map(({ share }) => share))
  const shown = pageTable(pen, { items: users }, '', {
    USER: 'user',
    WEIGHT: 'weight',
    RUNS: 'runs',
    'RUN TIME': ({ run_seconds }) => time(run_seconds),
    SHARE: ({ share }) => percent(share),
    'BY WEIGHT': ({ fair_share }) => percent(fair_share),
    '': ({ share }) => bar(share, most, pen),
  })
  const said = index === null ? '' : `\n${pen.dim(`fairness ${index} (1 is even)`)}`
  return [shown + said]
}
