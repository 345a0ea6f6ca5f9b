import pc from 'picocolors'
import type { ShownTimes, StatsReport } from '../../../core/stats/report.ts'
import type { AnswerOf, ByAnswer } from '../../../operations/registry.ts'
import { bytesText, clock, span, table } from './table.ts'

export const STATS_PRINTERS: ByAnswer<string> = {
  'stats.get': statsSheet,
  'alert.list': ({ items }) =>
    table(
      ['ALERT', 'SINCE', 'WHAT'],
      items.map(({ rule, since, message, undelivered }) => {
        const untold = undelivered.map((each) => pc.yellow(` (not told by ${each})`)).join('')
        return [pc.red(rule), since, message + untold]
      }),
      'Nothing to worry about.',
    ),
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

const timesRow = (name: string, times: ShownTimes) => [
  name,
  String(times.count),
  time(times.mean_seconds),
  time(times.p50_seconds),
  time(times.p90_seconds),
  time(times.p99_seconds),
]

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
    table(
      ['TIME', 'COUNT', 'MEAN', 'P50', 'P90', 'P99'],
      [
        timesRow('wait for a lock', report.wait),
        timesRow('hold of a lock', report.hold),
        timesRow('in the queue', queue.wait),
        timesRow('claim to start', queue.dispatch),
      ],
      '',
    ),
    ...contended(report),
    ...longestWaits(report),
    ...fairness(report),
  ]
  return parts.join('\n\n')
}

function contended({ contended: locks }: StatsReport): string[] {
  if (locks.length === 0) return []
  const most = Math.max(...locks.map(({ refused, waits }) => refused + waits))
  const rows = locks.map(({ name, refused, waits, waited_seconds }) => [
    name,
    String(refused),
    String(waits),
    time(waited_seconds),
    bar(refused + waits, most),
  ])
  return [table(['MOST CONTENDED', 'REFUSED', 'WAITS', 'WAITED', ''], rows, '')]
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
  const rows = users.map((each) => [
    each.user,
    String(each.weight),
    String(each.runs),
    time(each.run_seconds),
    percent(each.share),
    percent(each.fair_share),
    bar(each.share, most),
  ])
  const head = ['USER', 'WEIGHT', 'RUNS', 'RUN TIME', 'SHARE', 'BY WEIGHT', '']
  const said = index === null ? '' : `\n${pc.dim(`fairness ${index} (1 is even)`)}`
  return [table(head, rows, '') + said]
}
