import { useComputed } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import { now } from '../data/asked.ts'
import { locks, locksChanged, locksKnown, waiters } from '../data/locks.ts'
import { changed, running, runningKnown } from '../data/tasks.ts'
import { Loading } from '../parts/empty.tsx'
import { Opens } from '../parts/opens.tsx'
import type { PageNoun } from '../parts/resource.ts'
import { Section, Sheet } from '../parts/sheet.tsx'
import { ago, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { Story } from '../views/story.tsx'
import { LockLine, LockLink } from './lock.tsx'
import { TaskLink } from './task.tsx'

/** How its leases stand, and whether it is here at all. */
const LEASE_STATES = ['working', 'waiting', 'here', 'lost', 'away'] as const
type LeaseState = (typeof LEASE_STATES)[number]

const HERE_SECONDS = 60

export interface ShownAgent {
  agent: AnswerOf<'agent.list'>['items'][number]
  state: LeaseState
}

export function stateOf(agent: ShownAgent['agent'], lost: Map<string, string>): LeaseState {
  const { id, holds, last_seen_at } = agent
  // Whatever it still holds: its process is gone, or its last lease ran out.
  if ((lost.get(id) ?? '') >= last_seen_at) return 'lost'
  if (waiters.value.some((each) => each.agent === id)) return 'waiting'
  if (holds.length > 0) return 'working'
  return secondsSince(last_seen_at, now.value) < HERE_SECONDS ? 'here' : 'away'
}

const HOLDS_SHOWN = 4

export const agentResource: PageNoun<ShownAgent> = {
  one: 'agent',
  keyOf: ({ agent }) => agent.id,
  textOf: ({ agent: { id, host, kind, holds } }) => `${id} ${kind} ${host} ${holds.join(' ')}`,
  none: ['No agent has been here yet', 'An agent appears here when it first asks for something.'],
  saved: {
    here: { name: 'Here', fits: ({ state }) => state !== 'away' },
    all: { name: 'All ever seen', fits: () => true },
  },
  filters: [{ name: 'state', of: ({ state }) => state, choices: LEASE_STATES }],
  columns: [
    {
      name: 'State',
      width: '6.5rem',
      order: ({ state }) => LEASE_STATES.indexOf(state),
      show: ({ state }) => (
        <span class="state">
          <span class={`dot is-${state}`} aria-hidden="true" /> {state}
        </span>
      ),
    },
    {
      name: 'Agent',
      width: 'minmax(9rem, 1.4fr)',
      order: ({ agent }) => agent.id,
      show: ({ agent: { id } }) => <Opens id={id}>{id}</Opens>,
    },
    {
      name: 'Holds',
      width: 'minmax(9rem, 2.4fr)',
      order: ({ agent }) => -agent.holds.length,
      show: ({ agent: { holds } }) => (
        <>
          {holds.slice(0, HOLDS_SHOWN).map((name) => (
            <a key={name} class="tag" href={hrefOf('who', { tab: 'locks', id: name })}>
              {name}
            </a>
          ))}
          {holds.length > HOLDS_SHOWN && (
            <span class="dim">and {holds.length - HOLDS_SHOWN} more</span>
          )}
        </>
      ),
    },
    {
      name: 'Host',
      width: 'minmax(5rem, 0.8fr)',
      wide: true,
      order: ({ agent }) => agent.host ?? '',
      show: ({ agent: { host, pid } }) => (
        <span class="dim">
          {host}
          {pid !== null && `, PID ${pid}`}
        </span>
      ),
    },
    {
      name: 'Last seen',
      width: '8rem',
      order: ({ agent }) => agent.last_seen_at,
      show: ({ agent }) => <span class="dim number">{ago(agent.last_seen_at, now.value)}</span>,
    },
  ],
}

/** One agent: what it does, waits for and holds now, and what it did before. */
export function AgentSheet({ id }: { id: string }) {
  void locksChanged.value
  const tasks = useComputed(() => {
    void changed.value
    return running().filter(({ assignee }) => assignee === id)
  }).value
  const held = [...locks.values()].filter(({ holder }) => holder === id)
  const waits = waiters.value.filter(({ agent }) => agent === id)
  return (
    <Sheet label={`Agent ${id}`} title={id}>
      {!(runningKnown.value && locksKnown.value) && <Loading />}
      {tasks.length > 0 && (
        <Section title="Does">
          <ul class="links">
            {tasks.map((task) => (
              <li key={task.id}>
                <TaskLink id={task.id} />
                <span class="number">
                  {task.assigned_at && span(secondsSince(task.assigned_at, now.value))}
                </span>
              </li>
            ))}
          </ul>
        </Section>
      )}
      {waits.length > 0 && (
        <Section title="Waits for">
          <ul class="links">
            {waits.flatMap(({ id: key, names, asked_at }) =>
              names.map((name) => (
                <li key={`${key} ${name}`}>
                  <span>
                    <LockLink name={name} /> <span class="dim">{heldSays(name)}</span>
                  </span>
                  <span class="number">{span(secondsSince(asked_at, now.value))}</span>
                </li>
              )),
            )}
          </ul>
        </Section>
      )}
      {held.length > 0 && (
        <Section title="Holds">
          <ul class="links">
            {held.map((lock) => (
              <LockLine key={lock.fence} lock={lock} />
            ))}
          </ul>
        </Section>
      )}
      <Story title="What it did" none="Nothing is kept of it." filter={{ by: id }} />
      <p>
        <a href={hrefOf('history', { by: id })}>All of it, beside others</a>
      </p>
    </Sheet>
  )
}

const heldSays = (name: string) => {
  const holder = locks.get(name)?.holder
  return holder === undefined ? 'free' : `held by ${holder}`
}
