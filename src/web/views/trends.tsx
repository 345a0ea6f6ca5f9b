import type { AnswerOf } from '../../operations/registry.ts'
import { now, useAnswer } from '../data/asked.ts'
import { Sparkline } from '../parts/sparkline.tsx'
import { Answered, Panel, Table, Tile } from '../parts/frame.tsx'
import { AgentLink } from '../parts/links.tsx'
import { ago, count, percent, shortDay, took } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

type Report = AnswerOf<'stats.get'>
type Point = Report['series'][number]

const LOOK_MS = 5_000

/** What was counted in so much of the past. */
export function Trends({ seconds: since }: { seconds: number }) {
  const asked = useAnswer('stats.get', { since_seconds: since }, { every_ms: LOOK_MS })
  return (
    <Answered of={asked}>
      {(report) => (
        <>
          <Tiles report={report} />
          <div class="stats-grid">
            {tablesFor(report).map(({ title, head, rows }, i) => (
              <Panel key={title} title={title} class={i < 2 ? 'is-across' : ''}>
                <Table label={title} head={head} rows={rows} />
              </Panel>
            ))}
          </div>
        </>
      )}
    </Answered>
  )
}

function Tiles({ report: { locks, tasks, stale_writes, agents } }: { report: Report }) {
  const tiles: [string, number, string][] = [
    ['Acquisitions', locks.acquisitions, `${locks.refused} refused, ${locks.waits} waited`],
    ['Expired', locks.expired, 'leases whose time ran out'],
    ['Died', locks.died, `holders gone; ${count(agents.lost, 'agent')} lost`],
    ['Stale writes refused', stale_writes, 'each would have overwritten newer work'],
    ['Tasks done', tasks.done, `${tasks.failed} failed, ${tasks.cancelled} cancelled`],
  ]
  return (
    <div class="tiles">
      {tiles.map(([name, value, says]) => (
        <Tile key={name} {...{ name, value, says }} />
      ))}
    </div>
  )
}

const seconds = (value: number | null) => (value === null ? '–' : took(value))

interface Tabled {
  title: string
  head: string[]
  rows: preact.ComponentChildren[][]
}

/** What is told of each minute, or hour; of times, in seconds. */
const MEASURES = {
  acquisitions: 'locks acquired',
  refused: 'refused, as another held it',
  waits: 'waited for',
  expired: 'leases expired',
  died: 'holders died',
  wait_p50_seconds: 'half waited for a lock less than',
  wait_p95_seconds: '95 % less than',
  enqueued: 'tasks enqueued',
  claimed: 'claimed',
  done: 'done',
  failed: 'failed',
  cancelled: 'cancelled',
  queue_p50_seconds: 'half were in the queue less than',
  queue_p95_seconds: '95 % less than',
} satisfies { [K in keyof Point]?: string }
const KEYS = Object.keys(MEASURES) as (keyof typeof MEASURES)[]

/** How each went, and when it was highest. */
function seriesTable({ series, resolution_seconds }: Report): Tabled {
  const rows = KEYS.map((key) => {
    const values = series.map((point) => point[key] ?? 0)
    const most = Math.max(0, ...values)
    const at = most === 0 ? undefined : series[values.indexOf(most)]?.at
    const isTime = key.endsWith('_seconds')
    const all = values.reduce((sum, value) => sum + value, 0)
    return [
      MEASURES[key],
      isTime ? '' : all.toLocaleString(),
      <Sparkline values={values} label={`${MEASURES[key]}, over time`} />,
      isTime ? took(most) : most.toLocaleString(),
      at && shortDay(at),
    ]
  })
  const title = resolution_seconds === 60 ? 'Minute by minute' : 'Hour by hour'
  return { title, head: ['', 'in all', '', 'most', 'at'], rows }
}

const KINDS = { projects: 'project', users: 'user', agents: 'agent' } as const

function throughputTable({ throughput }: Report): Tabled {
  const rows = (Object.keys(KINDS) as (keyof typeof KINDS)[]).flatMap((kind) =>
    throughput[kind].map((each) => {
      const name = each.name || '(none)'
      return [
        <>
          <span class="dim">{KINDS[kind]}</span> {name}
        </>,
        each.claimed.toLocaleString(),
        <Sparkline values={each.claimed_series} label={`Runs of ${name} that began`} />,
        each.ended.toLocaleString(),
        <Sparkline values={each.ended_series} label={`Runs of ${name} that ended`} />,
        each.failed.toLocaleString(),
        seconds(each.queue_p50_seconds),
        seconds(each.queue_p95_seconds),
        seconds(each.ended === 0 ? null : each.run_seconds / each.ended),
      ]
    }),
  )
  const counts = ['began', '', 'ended', '', 'failed']
  return { title: 'Runs by whom', head: ['', ...counts, 'queued, p50', 'p95', 'on average'], rows }
}

function tablesFor(report: Report): Tabled[] {
  const { contended, longest_waits, fairness } = report
  const times = [
    ['Waiting for a lock', report.wait],
    ['Holding a lock', report.hold],
    ['In the queue', report.queue.wait],
    ['From claim to start', report.queue.dispatch],
  ] as const
  return [
    seriesTable(report),
    throughputTable(report),
    {
      title: 'How long',
      head: ['', 'count', 'p50', 'p90', 'p99'],
      rows: times.map(([name, t]) => [
        name,
        t.count.toLocaleString(),
        seconds(t.p50_seconds),
        seconds(t.p90_seconds),
        seconds(t.p99_seconds),
      ]),
    },
    {
      title: 'Most contended locks',
      head: ['lock', 'refused', 'waits', 'waited in all'],
      rows: contended.map(({ name, refused, waits, waited_seconds }) => [
        <a href={hrefOf('history', { lock: name })}>{name}</a>,
        refused.toLocaleString(),
        waits.toLocaleString(),
        seconds(waited_seconds),
      ]),
    },
    {
      title: 'Longest waits',
      head: ['agent', 'lock', 'waited', 'until'],
      rows: longest_waits.map(({ agent, lock, waited_seconds, at }) => [
        <AgentLink id={agent} />,
        <a href={hrefOf('history', { lock })}>{lock}</a>,
        seconds(waited_seconds),
        ago(at, now.value),
      ]),
    },
    {
      title: fairness.index === null ? 'Fairness' : `Fairness ${fairness.index} of 1`,
      head: ['user', 'runs', 'ran', 'share', 'by weight'],
      rows: fairness.users.map(({ user, runs, run_seconds, share, fair_share }) => [
        user || '(no user)',
        runs.toLocaleString(),
        seconds(run_seconds),
        percent(share),
        percent(fair_share),
      ]),
    },
  ]
}
