import pc from 'picocolors'
import type { ShownTimes, StatsReport } from '../../../core/stats/report.ts'
import type { AnswerOf, ByAnswer } from '../../../operations/registry.ts'
import { bytesText, clock, clocked, pageTable, span, table } from './table.ts'

export const STATS_PRINTERS: ByAnswer<string> = {
  'stats.get': statsSheet,
  'stuck.get': stuckSheet,
  'alert.list': ({ items }) =>
    table(
      ['ALERT', 'SINCE', 'WHAT'],
      items.map(({ rule, since, message, undelivered }) => {
        const unsent = undelivered.map((each) => pc.yellow(` (not sent by ${each})`)).join('')
        return [pc.red(rule), since, message + unsent]
      }),
      'Nothing to worry about.',
    ),
}

const MARKS = { bad: pc.red('!'), warn: pc.yellow('!'), info: pc.dim('-') }

function stuckSheet({ health, items, more }: AnswerOf<'stuck.get'>): string {
  const how = headOf(health.state, items)
  if (items.length === 0) return `${how}: nothing is stuck`
  const causes = items.map(({ severity, what, why, next, since }) => {
    const began = since === null ? '' : pc.dim(` (since ${clock(since)})`)
    const rest = [why && why !== what && clocked(why), next && pc.dim(`next: ${next}`)]
    const lines = rest.filter(Boolean).map((line) => `    ${line}`)
    return [`${MARKS[severity]} ${what}${began}`, ...lines].join('\n')
  })
  const rest =
    more > 0 ? [pc.dim(`and ${more} more: leasehold stuck --limit ${items.length + more}`)] : []
  return [how, ...causes, ...rest].join('\n')
}

/** One word for all that follows: never "ok" above something that a person should see to. */
function headOf(state: string, items: { severity: string }[]): string {
  if (state !== 'ok') return pc.red(state)
  if (items.some(({ severity }) => severity !== 'info')) return pc.yellow('goes on, but look at:')
  return items.length === 0 ? pc.green('ok') : pc.green('ok: all that waits goes on by itself')
}

const BAR = 16
const EIGHTHS = ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉']

/** A bar of at most `BAR` characters, exact to an eighth of one. */
function bar(value: number, max: number): string {
  const eighths = max === 0 ? 0 : Math.round((value / max) * BAR * 8)
  return pc.cyan('█'.repeat(Math.floor(eighths / 8)) + EIGHTHS[eighths % 8]!)
}

/** Short times need parts of a second, long ones no longer. */
function time(seconds: number | null): string {
  if (seconds === null) return '–'
  if (seconds < 1) return `${Math.round(seconds * 1000)}ms`
  return seconds < 10 ? `${seconds.toFixed(1)}s` : span(Math.round(seconds))
}

const percent = (part: number) => `${(part * 100).toFixed(1)}%`

function statsSheet(report: AnswerOf<'stats.get'>): string {
  const { locks, tasks, agents, queue, commits } = report
  const some = (count: number, colour: (text: string) => string) =>
    count > 0 ? colour(String(count)) : '0'
  const facts = [
    ['locks', `${locks.acquisitions} acquired, ${locks.refused} refused, ${locks.waits} waited`],
    [
      '',
      `${some(locks.expired, pc.yellow)} expired, ${some(locks.died, pc.yellow)} freed by death`,
    ],
    ['', `${locks.gave_up} gave up waiting, ${some(locks.deadlocks, pc.red)} deadlocks`],
    ['stale', `${some(report.stale_writes, pc.yellow)} stale writes refused`],
    ['agents', `${agents.appeared} new, ${some(agents.lost, pc.red)} lost`],
    ['tasks', `${tasks.created} new, ${tasks.claimed} claimed, ${tasks.done} done`],
    ['', `${some(tasks.failed, pc.red)} failed, ${tasks.cancelled} cancelled`],
    ['queue', `${queue.depth_now} wait now, ${queue.enqueued} enqueued, ${queue.started} started`],
    ['commits', `${commits.count}, of ${commits.asks_mean ?? 0} asks on average`],
    ['store', bytesText(report.store)],
  ]
  const parts = [
    `${pc.bold('statistics')}  ${clock(report.from)} – ${clock(report.to)}`,
    facts.map(([name, said]) => `  ${pc.dim(name!.padEnd(9))} ${said}`).join('\n'),
    timesTable([
      { what: 'wait for a lock', ...report.wait },
      { what: 'hold of a lock', ...report.hold },
      { what: 'in the queue', ...queue.wait },
      { what: 'claim to start', ...queue.dispatch },
    ]),
    ...contended(report),
    ...longestWaits(report),
    ...fairness(report),
  ]
  return parts.join('\n\n')
}

const timesTable = (items: (ShownTimes & { what: string })[]) =>
  pageTable({ items }, '', {
    TIME: 'what',
    COUNT: 'count',
    MEAN: ({ mean_seconds }) => time(mean_seconds),
    P50: ({ p50_seconds }) => time(p50_seconds),
    P90: ({ p90_seconds }) => time(p90_seconds),
    P99: ({ p99_seconds }) => time(p99_seconds),
  })

function contended({ contended: locks }: StatsReport): string[] {
  if (locks.length === 0) return []
  const most = Math.max(...locks.map(({ refused, waits }) => refused + waits))
  const shown = pageTable({ items: locks }, '', {
    'MOST CONTENDED': 'name',
    REFUSED: 'refused',
    WAITS: 'waits',
    WAITED: ({ waited_seconds }) => time(waited_seconds),
    '': ({ refused, waits }) => bar(refused + waits, most),
  })
  return [shown]
}

function longestWaits({ longest_waits }: StatsReport): string[] {
  if (longest_waits.length === 0) return []
  const most = longest_waits[0]!.waited_seconds
  const rows = longest_waits.map(({ lock, agent, waited_seconds, at }) => {
    return [lock, agent, time(waited_seconds), clock(at), bar(waited_seconds, most)]
  })
  return [table(['LONGEST WAITS', 'AGENT', 'WAITED', 'UNTIL', ''], rows, '')]
}

function fairness({ fairness: { index, users } }: StatsReport): string[] {
  if (users.length === 0) return []
  const most = Math.max(...users.map(({ share }) => share))
  const shown = pageTable({ items: users }, '', {
    USER: 'user',
    WEIGHT: 'weight',
    RUNS: 'runs',
    'RUN TIME': ({ run_seconds }) => time(run_seconds),
    SHARE: ({ share }) => percent(share),
    'BY WEIGHT': ({ fair_share }) => percent(fair_share),
    '': ({ share }) => bar(share, most),
  })
  const said = index === null ? '' : `\n${pc.dim(`fairness ${index} (1 is even)`)}`
  return [shown + said]
}
