import { useMemo } from 'preact/hooks'
import { factsOf } from '../../core/event.ts'
import { ask, clock } from '../ask.ts'
import { aboutMemory, type TaskRun } from '../data/about.ts'
import { now, useAsked } from '../data/asked.ts'
import { timed } from '../data/spans.ts'
import { Tag } from '../parts/badge.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Trouble } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { hrefOf } from '../route.ts'
import { TimelineOf } from './timeline.tsx'

const LOOK_MS = 10_000

/** What the agent of a run held and waited for while it ran. */
export function RunSpans({ run }: { run: TaskRun }) {
  const { agent: by, started_at: from, ended_at } = run
  const until = ended_at === null ? {} : { to: ended_at }
  const asked = useAsked(
    `spans ${run.id} ${ended_at}`,
    () => ask('span.list', { by, from, ...until, limit: 1000 }),
    { affects: ({ agent }) => agent === by, every_ms: LOOK_MS },
  )
  const items = asked.value.value?.items
  const spans = useMemo(() => (items ?? []).map(timed), [items])
  const whole = {
    from_ms: Date.parse(from),
    to_ms: ended_at === null ? now.value : Date.parse(ended_at) + 1,
  }
  return (
    <Panel title="Held and waited" class="run-spans">
      <Trouble refusal={asked.refusal.value} />
      {items && <TimelineOf spans={spans} whole={whole} by="lock" isBrief />}
    </Panel>
  )
}

/** Paths that the agent of a run has reserved. */
export function RunFiles({ run }: { run: TaskRun }) {
  const asked = useAsked(`files ${run.id}`, () => ask('reserve.list', { limit: 1000 }), {
    affects: ({ lock }) => lock?.startsWith('path:') ?? false,
    every_ms: LOOK_MS,
  })
  const at = useMemo(() => clock(), [asked.value.value])
  const mine = (asked.value.value?.items ?? []).filter(({ holder }) => holder === run.agent)
  if (mine.length === 0 || run.ended_at !== null) return null
  return (
    <Panel title="Files" aside={<span class="number">{mine.length}</span>}>
      <ul class="rows">
        {mine.map(({ lock_id, path, shared, ttl_seconds, expires_in_seconds }) => (
          <li key={lock_id} class="row">
            <code class="grows">{path}</code>
            <Tag tone={shared ? '' : 'is-waiting'}>{shared ? 'shared' : 'exclusive'}</Tag>
            <Countdown until_ms={at + expires_in_seconds * 1000} ttl_seconds={ttl_seconds} />
          </li>
        ))}
      </ul>
    </Panel>
  )
}

/** Notes that the agent of a run wrote while it ran. */
export function RunNotes({ run }: { run: TaskRun }) {
  const { agent: by, started_at: from, ended_at } = run
  const until = ended_at === null ? {} : { to: ended_at }
  const wanted = { by, from, ...until, type: 'memory.put', limit: 100 }
  const asked = useAsked(`notes ${run.id}`, () => ask('event.list', wanted), {
    affects: aboutMemory,
  })
  const items = asked.value.value?.items ?? []
  if (items.length === 0) return null
  return (
    <Panel title="Notes" aside={<span class="number">{items.length}</span>}>
      <ul class="rows">
        {items.map((event) => {
          const { scope, key, version } = factsOf(event)
          return (
            <li key={event.position} class="row">
              <a class="grows" href={hrefOf('memory', { scope: scope ?? '', id: key ?? '' })}>
                {key}
              </a>
              <span class="dim">
                {scope}, version {version}
              </span>
            </li>
          )
        })}
      </ul>
    </Panel>
  )
}
