import { signal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { OutputOf } from '../../client/calls.ts'
import { ask } from '../ask.ts'
import { useAsked } from '../data/asked.ts'
import { Empty, Trouble } from '../parts/empty.tsx'
import { Page, Panel, Select, Tile } from '../parts/frame.tsx'
import { count } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import type { Line } from './stats_chart.tsx'

type Report = OutputOf<'stats.get'>
type Point = Report['series'][number]

const RANGES: Record<string, number> = { '1h': 3600, '6h': 21_600, '1d': 86_400, '7d': 604_800 }
const LOOK_MS = 15_000

/** Charts are a large part of the page, and for this view only. */
const charting = signal<typeof import('./stats_chart.tsx').Chart | null>(null)

export function Stats() {
  useEffect(() => {
    if (charting.value) return
    void import('./stats_chart.tsx').then(({ Chart }) => (charting.value = Chart))
  }, [])
  const range = useSignal('1h')
  const seconds = RANGES[range.value]!
  const asked = useAsked(range.value, () => ask('stats.get', { since_seconds: seconds }), {
    every_ms: LOOK_MS,
  })
  const report = asked.value.value
  return (
    <Page
      title="Stats"
      aside={
        <Select
          label="Time"
          of={Object.keys(RANGES)}
          chosen={range.value}
          choose={(each) => (range.value = each)}
          says={(each) => `Last ${each}`}
        />
      }
    >
      <Trouble refusal={asked.refusal.value} />
      {report && <Sheet report={report} />}
    </Page>
  )
}

function Sheet({ report }: { report: Report }) {
  const { locks, tasks, stale_writes, agents, series } = report
  const Chart = charting.value
  const tiles: [string, number, string][] = [
    ['Acquisitions', locks.acquisitions, `${locks.refused} refused, ${locks.waits} waited`],
    ['Expired', locks.expired + locks.died, `${count(agents.lost, 'agent')} lost`],
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
        {CHARTS.map(({ title, lines }) => (
          <Panel key={title} title={title}>
            {series.length < 2 ? (
              <Empty title="Not enough to draw yet">Counts are kept minute by minute.</Empty>
            ) : (
              Chart && <Chart points={series} lines={lines} title={title} />
            )}
          </Panel>
        ))}
        <Times report={report} />
        <Contended report={report} />
        <Waits report={report} />
        <Fairness report={report} />
      </div>
    </>
  )
}

const CHARTS: { title: string; lines: Line<Point>[] }[] = [
  {
    title: 'Locks',
    lines: [
      { label: 'acquired', tone: 'accent', pick: (p) => p.acquisitions },
      { label: 'refused', tone: 'warn', pick: (p) => p.refused },
      { label: 'waited', tone: 'waited', pick: (p) => p.waits },
      { label: 'expired', tone: 'bad', pick: (p) => p.expired },
    ],
  },
  {
    title: 'Tasks',
    lines: [
      { label: 'enqueued', tone: 'waited', pick: (p) => p.enqueued },
      { label: 'started', tone: 'accent', pick: (p) => p.started },
      { label: 'done', tone: 'good', pick: (p) => p.done },
      { label: 'failed', tone: 'bad', pick: (p) => p.failed },
    ],
  },
]

const seconds = (value: number | null) => (value === null ? '–' : `${value}s`)

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
      head={['lock', 'refused', 'waits', 'waited']}
      rows={report.contended.map(({ name, refused, waits, waited_seconds }) => [
        <a href={hrefOf('timeline', { by: 'lock', q: name })}>{name}</a>,
        refused,
        waits,
        seconds(Math.round(waited_seconds)),
      ])}
    />
  )
}

function Waits({ report }: { report: Report }) {
  return (
    <Table
      title="Longest waits"
      head={['agent', 'lock', 'waited']}
      rows={report.longest_waits.map(({ agent, lock, waited_seconds }) => [
        agent,
        lock,
        seconds(Math.round(waited_seconds)),
      ])}
    />
  )
}

function Fairness({ report }: { report: Report }) {
  const percent = (part: number) => `${Math.round(part * 100)}%`
  return (
    <Table
      title={`Fairness${report.fairness.index === null ? '' : ` ${report.fairness.index}`}`}
      head={['user', 'runs', 'share', 'fair share']}
      rows={report.fairness.users.map(({ user, runs, share, fair_share }) => [
        user || '(no user)',
        runs,
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
}

function Table({ title, head, rows }: TableProps) {
  return (
    <Panel title={title}>
      {rows.length === 0 ? (
        <p class="dim pad">Nothing in this time.</p>
      ) : (
        <table>
          <thead>
            <tr>{head.map((name) => (name ? <th key={name}>{name}</th> : <td key="none" />))}</tr>
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
      )}
    </Panel>
  )
}
