import { factsOf } from '../../core/event.ts'
import { useComputed } from '@preact/signals'
import { ask } from '../ask.ts'
import { now, useAsked } from '../data/asked.ts'
import type { ShownEvent } from '../data/live.ts'
import { locks, locksChanged, locksKnown, waiters, watch } from '../data/locks.ts'
import { type Edge, layOut } from './graph_layout.ts'
import { Countdown } from '../parts/countdown.tsx'
import { Empty, Loading } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { ago, count, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { ReleaseButton } from './release_button.tsx'

const SHOWN_MAX = 80
const isDeadlock = ({ type }: ShownEvent) => type === 'deadlock.found' || type === 'ticket.broken'
const DAY = 86_400
const DEADLOCKS = 'deadlock.found,ticket.broken'

/** Who waits for whom now, and the newest deadlock that was found and broken. */
export function WaitGraph() {
  const edges = useComputed(() => {
    void locksChanged.value
    return waiters.value.flatMap(({ agent, names, asked_at }) =>
      names.flatMap((lock) => {
        const holder = locks.get(lock)?.holder
        return holder === undefined ? [] : [{ from: agent, to: holder, lock, since: asked_at }]
      }),
    )
  }).value
  const past = useAsked(
    'cycles',
    () => ask('event.list', { type: DEADLOCKS, since_seconds: DAY, limit: 1 }),
    { affects: isDeadlock },
  )
  const found = past.value.value?.items[0]
  if (!locksKnown.value) return <Loading />
  return (
    <div class="stack pad-top">
      <Panel title="Now" aside={count(waiters.value.length, 'waiter')}>
        {edges.length === 0 ? (
          <Empty
            title="Nobody waits for anybody"
            command="leasehold lock acquire git:web --wait 1m"
          >
            Agents that wait for a lock show up here, with an arrow to its holder.
          </Empty>
        ) : (
          <>
            <Blockers edges={edges} />
            <Graph edges={edges.slice(0, SHOWN_MAX)} label="Who waits for whom" />
            {edges.length > SHOWN_MAX && (
              <p class="dim pad">
                Drawn are the first {SHOWN_MAX} of {edges.length} waits; the list has them all.
              </p>
            )}
          </>
        )}
      </Panel>
      {found && <FoundCycle event={found} />}
    </div>
  )
}

interface Wait extends Edge {
  since: string
}

/** Who is waited for, those first whom most wait for; each with what is left of its leases. */
function Blockers({ edges }: { edges: Wait[] }) {
  const byHolder = new Map<string, Wait[]>()
  for (const edge of edges) byHolder.set(edge.to, [...(byHolder.get(edge.to) ?? []), edge])
  const most = [...byHolder].toSorted(([, a], [, b]) => b.length - a.length)
  watch(most.flatMap(([, waits]) => waits.map(({ lock }) => lock)))
  return (
    <ul class="rows">
      {most.map(([holder, waits]) => (
        <li key={holder} class="row blocker">
          <div class="grows">
            <a href={hrefOf('agents', { id: holder })}>
              <strong>{holder}</strong>
            </a>{' '}
            is waited for by {count(new Set(waits.map(({ from }) => from)).size, 'agent')}, the
            longest for {span(Math.max(...waits.map((w) => secondsSince(w.since, now.value))))}
            <p class="dim">
              {waits.map(({ from, lock, since }) => (
                <span key={`${from} ${lock}`}>
                  <a href={hrefOf('agents', { id: from })}>{from}</a> for{' '}
                  <a href={hrefOf('locks', { id: lock })}>{lock}</a>,{' '}
                  {span(secondsSince(since, now.value))}.{' '}
                </span>
              ))}
            </p>
          </div>
          {[...new Set(waits.map(({ lock }) => lock))].map((name) => (
            <LeaseLeft key={name} name={name} />
          ))}
        </li>
      ))}
    </ul>
  )
}

function LeaseLeft({ name }: { name: string }) {
  const lock = locks.get(name)
  if (!lock) return null
  return (
    <span class="lease-left">
      <code>{name}</code>
      <Countdown until_ms={lock.until_ms} ttl_seconds={lock.ttl_seconds} />
      <ReleaseButton name={name} holder={lock.holder} />
    </span>
  )
}

/** `a waits for L, which b has`, as the deadlock was spelled out when it was found. */
function edgesIn(event: ShownEvent): Edge[] {
  const { cycle = [] } = factsOf(event)
  return cycle.flatMap((sentence) => {
    const [, from, lock, to] = /^(.+?) waits for (.+), which (.+) has$/.exec(sentence) ?? []
    return from && lock && to ? [{ from, to, lock }] : []
  })
}

function FoundCycle({ event }: { event: ShownEvent }) {
  const edges = edgesIn(event)
  return (
    <section class="panel" aria-label="Deadlock found">
      <header class="panel-head">
        <h2>Deadlock found {ago(event.at, now.value)}</h2>
        <span class="dim">{event.agent} was refused, so the others went on</span>
      </header>
      <Graph edges={edges} label="The cycle" isCycle />
      <ol class="line">
        {edges.map(({ from, lock, to }) => (
          <li key={`${from} ${lock}`}>
            <span>
              <strong>{from}</strong> waits for <code>{lock}</code>, which <strong>{to}</strong> has
            </span>
          </li>
        ))}
      </ol>
    </section>
  )
}

interface GraphProps {
  edges: Edge[]
  label: string
  isCycle?: boolean
}

function Graph({ edges, label, isCycle = false }: GraphProps) {
  const { nodes, lines, width, height } = layOut(edges, isCycle)
  const mark = isCycle ? 'arrow-bad' : 'arrow'
  return (
    <div class="graph-box" tabIndex={0} role="group" aria-label={label}>
      <svg
        class={`graph ${isCycle ? 'is-cycle' : ''}`}
        width={width}
        height={height}
        viewBox={`0 0 ${width} ${height}`}
        role="group"
        aria-label={edges.map((e) => `${e.from} waits for ${e.lock}, held by ${e.to}`).join('; ')}
      >
        <marker
          id={mark}
          viewBox="0 0 8 8"
          refX="7"
          refY="4"
          markerWidth="7"
          markerHeight="7"
          orient="auto"
        >
          <path d="M0 0L8 4L0 8z" />
        </marker>
        {lines.map(({ key, path, x, y, text }) => (
          <g key={key}>
            <path class="edge" d={path} marker-end={`url(#${mark})`} />
            <text class="edge-name" x={x} y={y} text-anchor="middle">
              {text}
            </text>
          </g>
        ))}
        {nodes.map(({ name, x, y, w }) => (
          <a key={name} href={hrefOf('agents', { id: name })}>
            <rect class="node" x={x - w / 2} y={y - 16} width={w} height={32} rx={8} />
            <text class="node-name" x={x} y={y + 4.5} text-anchor="middle">
              {name}
            </text>
          </a>
        ))}
      </svg>
    </div>
  )
}
