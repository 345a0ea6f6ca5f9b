import type { AnswerOf } from '../../operations/registry.ts'
import { now, useAnswer } from '../data/asked.ts'
import { Chart, type Line, Sparkline } from '../parts/chart.tsx'
import { Answered, Empty } from '../parts/empty.tsx'
import { Panel, Tile } from '../parts/frame.tsx'
import { ago, count, took } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

type Report = AnswerOf<'stats.get'>
type Point = Report['series'][number]

const LOOK_MS = 5_000

/** What was counted in so much of the past. */
export function Trends({ seconds: since }: { seconds: number }) {
  const asked = useAnswer('stats.get', { since_seconds: since }, { every_ms: LOOK_MS })
  return <Answered of={asked}>{(report) => <Sheet report={report} />}</Answered>
}

function Sheet({ report }: { report: Report }) {
  const { locks, tasks, stale_writes, agents, series } = report
  const tiles: [string, number, string][] = [
    ['Acquisitions', locks.acquisitions, `${locks.refused} refused, ${locks.waits} waited`],
    ['Expired', locks.expired, 'leases whose time ran out'],
    ['Died', locks.died, `holders gone; ${count(agents.lost, 'agent')} lost`],
    ['Stale writes refused', stale_writes, 'each would have overwritten newer work'],
    ['Tasks done', tasks.done, `${tasks.failed} failed, ${tasks.cancelled} cancelled`],
  ]
  return (
    <>
      <div class="tiles">
        {tiles.map(([name, value, says]) => (
          <Tile key={name} name={name} value={value} says={says} />
        ))}
      </div>
      <div class="stats-grid">
        {chartsFor(report.resolution_seconds).map(({ title, lines, says }) => (
          <Panel key={title} title={title}>
            {series.length < 2 ? (
              <Empty title="Not enough to draw yet">Counts are kept minute by minute.</Empty>
            ) : (
              <Chart points={series} lines={lines} title={title} {...(says && { says })} />
            )}
          </Panel>
        ))}
        <Throughput report={report} />
        <Times report={report} />
        <Contended report={report} />
        <Waits report={report} />
        <Fairness report={report} />
      </div>
    </>
  )
}

interface Drawn {
  title: string
  lines: Line<Point>[]
  says?: (value: number) => string
}

function chartsFor(resolution_seconds: number): Drawn[] {
  const each = resolution_seconds === 60 ? 'a minute' : 'an hour'
  return [
    {
      title: `Locks, ${each}`,
      lines: [
        { label: 'acquired', tone: 'accent', pick: (p) => p.acquisitions },
        { label: 'refused', tone: 'warn', pick: (p) => p.refused },
        { label: 'waited', tone: 'waited', pick: (p) => p.waits },
        { label: 'expired', tone: 'review', pick: (p) => p.expired },
        { label: 'died', tone: 'bad', pick: (p) => p.died },
      ],
    },
    {
      title: `Tasks, ${each}`,
      lines: [
        { label: 'enqueued', tone: 'waited', pick: (p) => p.enqueued },
        { label: 'claimed', tone: 'accent', pick: (p) => p.claimed },
        { label: 'done', tone: 'good', pick: (p) => p.done },
        { label: 'failed', tone: 'bad', pick: (p) => p.failed },
        { label: 'cancelled', tone: 'review', pick: (p) => p.cancelled },
      ],
    },
    {
      title: 'Waiting for a lock',
      lines: [
        { label: 'half waited less than', tone: 'accent', pick: (p) => p.wait_p50_seconds },
        { label: '95 % less than', tone: 'warn', pick: (p) => p.wait_p95_seconds },
      ],
      says: took,
    },
    {
      title: 'Waiting in the queue',
      lines: [
        { label: 'half waited less than', tone: 'accent', pick: (p) => p.queue_p50_seconds },
        { label: '95 % less than', tone: 'warn', pick: (p) => p.queue_p95_seconds },
      ],
      says: took,
    },
  ]
}

const seconds = (value: number | null) => (value === null ? '–' : took(value))

const KINDS = { projects: 'project', users: 'user', agents: 'agent' } as const

function Throughput({ report: { throughput } }: { report: Report }) {
  const rows = (Object.keys(KINDS) as (keyof typeof KINDS)[]).flatMap((kind) =>
    throughput[kind].map((each) => {
      const name = each.name || '(none)'
      return [
        <>
          <span class="dim">{KINDS[kind]}</span> {name}
        </>,
        each.claimed.toLocaleString(),
        <Sparkline values={each.claimed_series} label={`Runs of ${name} that began, over time`} />,
        each.ended.toLocaleString(),
        <Sparkline values={each.ended_series} label={`Runs of ${name} that ended, over time`} />,
        each.failed.toLocaleString(),
        seconds(each.queue_p50_seconds),
        seconds(each.queue_p95_seconds),
        seconds(each.ended === 0 ? null : each.run_seconds / each.ended),
      ]
    }),
  )
  const head = [
    '',
    'began',
    '',
    'ended',
    '',
    'failed',
    'in the queue, p50',
    'p95',
    'took on average',
  ]
  return <Table title="Runs by whom" class="is-across" head={head} rows={rows} />
}

function Times({ report }: { report: Report }) {
  const rows = [
    ['Waiting for a lock', report.wait],
    ['Holding a lock', report.hold],
    ['In the queue', report.queue.wait],
    ['From claim to start', report.queue.dispatch],
  ] as const
  return (
    <Table
      title="How long"
      head={['', 'count', 'p50', 'p90', 'p99']}
      rows={rows.map(([name, t]) => [
        name,
        t.count.toLocaleString(),
        seconds(t.p50_seconds),
        seconds(t.p90_seconds),
        seconds(t.p99_seconds),
      ])}
    />
  )
}

function Contended({ report }: { report: Report }) {
  return (
    <Table
      title="Most contended locks"
      head={['lock', 'refused', 'waits', 'waited in all']}
      rows={report.contended.map(({ name, refused, waits, waited_seconds }) => [
        <a href={hrefOf('history', { lock: name })}>{name}</a>,
        refused.toLocaleString(),
        waits.toLocaleString(),
        seconds(waited_seconds),
      ])}
    />
  )
}

function Waits({ report }: { report: Report }) {
  return (
    <Table
      title="Longest waits"
      head={['agent', 'lock', 'waited', 'until']}
      rows={report.longest_waits.map(({ agent, lock, waited_seconds, at }) => [
        <a href={hrefOf('who', { id: agent })}>{agent}</a>,
        <a href={hrefOf('history', { lock })}>{lock}</a>,
        seconds(waited_seconds),
        ago(at, now.value),
      ])}
    />
  )
}

function Fairness({ report }: { report: Report }) {
  const percent = (part: number) => `${Math.round(part * 100)} %`
  const { index, users } = report.fairness
  return (
    <Table
      title={index === null ? 'Fairness' : `Fairness ${index} of 1`}
      head={['user', 'runs', 'ran', 'share', 'by weight']}
      rows={users.map(({ user, runs, run_seconds, share, fair_share }) => [
        user || '(no user)',
        runs.toLocaleString(),
        seconds(run_seconds),
        percent(share),
        percent(fair_share),
      ])}
    />
  )
}

interface TableProps {
  title: string
  head: string[]
  rows: preact.ComponentChildren[][]
  class?: string
}

function Table({ title, head, rows, class: more }: TableProps) {
  return (
    <Panel title={title} {...(more && { class: more })}>
      {rows.length === 0 ? (
        <p class="dim pad">Nothing in this time.</p>
      ) : (
        <div class="table-box" tabIndex={0} role="group" aria-label={title}>
          <table>
            <thead>
              <tr>{head.map((name, i) => (name ? <th key={i}>{name}</th> : <td key={i} />))}</tr>
            </thead>
            <tbody>
              {rows.map((row, i) => (
                <tr key={i}>
                  {row.map((cell, column) => (
                    <td key={column}>{cell}</td>
                  ))}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
    </Panel>
  )
}
