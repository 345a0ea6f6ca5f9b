import { useComputed } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { now } from '../data/asked.ts'
import { locks, locksChanged, locksKnown, waiters, watch } from '../data/locks.ts'
import { useSpans } from '../data/spans.ts'
import { changed, running, runningKnown } from '../data/tasks.ts'
import { Countdown } from '../parts/countdown.tsx'
import { Loading, Trouble } from '../parts/empty.tsx'
import { Page, Panel } from '../parts/frame.tsx'
import { secondsSince, span } from '../parts/words.ts'
import { hrefOf, leave } from '../route.ts'
import { Past } from './past.tsx'
import { ReleaseButton } from './release_button.tsx'
import { TimelineOf } from './timeline.tsx'

const HOUR = 3600
const REFUSED = 'write.fenced_off,deadlock.found,ticket.broken,lease.force_released,hook.bypassed'

/** One agent: what it does, waits for and holds now, and what it did before. */
export function AgentPage({ id }: { id: string }) {
  return (
    <Page
      title={id}
      above={
        <p class="task-head">
          <button type="button" class="back" onClick={leave}>
            ← Agents
          </button>
          <a href={hrefOf('events', { by: id })}>All its events</a>
        </p>
      }
    >
      <div class="agent-grid">
        <div class="stack">
          <Doing id={id} />
          <WaitsFor id={id} />
        </div>
        <Holds id={id} />
      </div>
      <Hour id={id} />
      <div class="task-grid">
        <Past title="Last runs" none="None in the log." filter={{ by: id, type: 'run' }} />
        <Past title="Refusals" none="None in the log." filter={{ by: id, type: REFUSED }} />
      </div>
    </Page>
  )
}

interface ListProps {
  title: string
  none: string
  isKnown: boolean
  children: ComponentChildren[]
}

function List({ title, none, isKnown, children }: ListProps) {
  return (
    <Panel title={title} aside={isKnown && <span class="number">{children.length}</span>}>
      {!isKnown && <Loading />}
      {isKnown && children.length === 0 && <p class="dim pad">{none}</p>}
      <ul class="rows">{children}</ul>
    </Panel>
  )
}

function Doing({ id }: { id: string }) {
  const mine = useComputed(() => {
    void changed.value
    return running().filter(({ assignee }) => assignee === id)
  }).value
  return (
    <List title="Doing" none="No task." isKnown={runningKnown.value}>
      {mine.map((task) => (
        <li key={task.id} class="row">
          <a class="grows" href={hrefOf('tasks', { id: task.id })}>
            <span class="id">{task.id}</span> {task.title}
          </a>
          <span class="number">
            {task.assigned_at && span(secondsSince(task.assigned_at, now.value))}
          </span>
        </li>
      ))}
    </List>
  )
}

function WaitsFor({ id }: { id: string }) {
  const mine = waiters.value.filter(({ agent }) => agent === id)
  void locksChanged.value
  return (
    <List title="Waits for" none="Nothing." isKnown={locksKnown.value}>
      {mine.map(({ id: key, names, asked_at }) => (
        <li key={key} class="row">
          <span class="grows">
            {names.map((name) => (
              <span key={name}>
                <a href={hrefOf('locks', { id: name })}>{name}</a>{' '}
                <span class="dim">{heldSays(name)} </span>
              </span>
            ))}
          </span>
          <span class="number">{span(secondsSince(asked_at, now.value))}</span>
        </li>
      ))}
    </List>
  )
}

const heldSays = (name: string) => {
  const holder = locks.get(name)?.holder
  return holder === undefined ? 'free' : `held by ${holder}`
}

function Holds({ id }: { id: string }) {
  const mine = useComputed(() => {
    void locksChanged.value
    return [...locks.values()].filter(({ holder }) => holder === id)
  }).value
  watch(mine.map(({ name }) => name))
  return (
    <List title="Holds" none="Nothing." isKnown={locksKnown.value}>
      {mine.map(({ name, holder, until_ms, ttl_seconds }) => (
        <li key={name} class="row">
          <a class="grows" href={hrefOf('locks', { id: name })}>
            {name}
          </a>
          <Countdown until_ms={until_ms} ttl_seconds={ttl_seconds} />
          <ReleaseButton name={name} holder={holder} />
        </li>
      ))}
    </List>
  )
}

function Hour({ id }: { id: string }) {
  const { past, refusal } = useSpans(HOUR, { by: id })
  const whole = { from_ms: now.value - HOUR * 1000, to_ms: now.value }
  return (
    <Panel title="The last hour" class="run-spans">
      <Trouble refusal={refusal.value} />
      {past.value && <TimelineOf spans={past.value.spans} whole={whole} by="lock" />}
    </Panel>
  )
}
