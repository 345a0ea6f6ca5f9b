import type { AnswerOf } from '../../operations/registry.ts'
import { now } from '../data/asked.ts'
import { locks, locksChanged, locksKnown, waiters } from '../data/locks.ts'
import { changed, running, runningKnown } from '../data/tasks.ts'
import { Loading, Section, Sheet } from '../parts/frame.tsx'
import { LockLink, Opens, TaskLink } from '../parts/links.tsx'
import { dim, type PageNoun, since } from '../parts/noun.tsx'
import { secondsSince } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { Story } from '../views/story.tsx'
import { LockLine } from './lock.tsx'
import { Lasts } from './task.tsx'

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

/** Of many names, the first as links. */
export const Held = ({ names, max }: { names: string[]; max: number }) => (
  <span class="tags">
    {names.slice(0, max).map((name) => (
      <span key={name} class="tag">
        <LockLink name={name} />
      </span>
    ))}
    {names.length > max && <span class="dim">and {names.length - max} more</span>}
  </span>
)

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
      show: ({ agent: { holds } }) => <Held names={holds} max={4} />,
    },
    dim({ name: 'Host', width: 'minmax(5rem, 0.8fr)', wide: true }, ({ agent: { host, pid } }) =>
      pid === null ? host : `${host}, PID ${pid}`,
    ),
    since({ name: 'Last seen', width: '8rem' }, ({ agent }) => agent.last_seen_at),
  ],
}

/** One agent: what it does, waits for and holds now, and what it did before. */
export function AgentSheet({ id }: { id: string }) {
  void locksChanged.value
  void changed.value
  const tasks = running().filter(({ assignee }) => assignee === id)
  const held = [...locks.values()].filter(({ holder }) => holder === id)
  const waits = waiters.value
    .filter(({ agent }) => agent === id)
    .flatMap(({ names, asked_at }) => names.map((name) => ({ name, asked_at })))
  return (
    <Sheet label={`Agent ${id}`} title={id}>
      {!(runningKnown.value && locksKnown.value) && <Loading />}
      <Section
        title="Does"
        of={tasks.map((task) => (
          <li key={task.id}>
            <TaskLink id={task.id} />
            {task.assigned_at && <Lasts since={task.assigned_at} />}
          </li>
        ))}
      />
      <Section
        title="Waits for"
        of={waits.map(({ name, asked_at }) => (
          <li key={`${name} ${asked_at}`}>
            <span>
              <LockLink name={name} /> <span class="dim">{heldSays(name)}</span>
            </span>
            <Lasts since={asked_at} />
          </li>
        ))}
      />
      <Section
        title="Holds"
        of={held.map((lock) => (
          <LockLine key={lock.fence} lock={lock} />
        ))}
      />
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
