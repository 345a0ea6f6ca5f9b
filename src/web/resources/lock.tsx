import { useEffect } from 'preact/hooks'
import { change } from '../ask.ts'
import { now } from '../data/asked.ts'
import {
  type HeldLock,
  locks,
  locksChanged,
  lookAt,
  waiters,
  waitersOf,
  watch,
} from '../data/locks.ts'
import { type Act, Acts } from '../parts/acts.tsx'
import { Facts, Section, Sheet } from '../parts/frame.tsx'
import { AgentLink, LockLink, Opens } from '../parts/links.tsx'
import { by, type PageNoun } from '../parts/noun.tsx'
import { dayOf, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'
import { Lasts } from './task.tsx'

export const lockResource: PageNoun<HeldLock> = {
  one: 'lock',
  keyOf: ({ name }) => name,
  textOf: ({ name, holder }) => `${name} ${holder}`,
  none: ['No lock is held', 'A lock is a name that one agent at a time may hold.'],
  order: (a, b) => (a.name < b.name ? -1 : 1),
  saved: {
    all: { name: 'All held', fits: () => true },
    files: { name: 'Files', fits: ({ name }) => name.startsWith('path:') },
    awaited: { name: 'Waited for', fits: ({ name }) => waitersOf(name).length > 0 },
  },
  columns: [
    {
      name: 'Lock',
      width: 'minmax(9rem, 2fr)',
      order: ({ name }) => name,
      show: ({ name }) => <Opens id={name}>{name}</Opens>,
    },
    {
      name: 'Holder',
      width: 'minmax(6.5rem, 1.2fr)',
      order: ({ holder }) => holder,
      show: ({ holder }) => <AgentLink id={holder} />,
    },
    {
      name: 'Waiting',
      width: '5rem',
      order: ({ name }) => -waitersOf(name).length,
      show: ({ name }) => {
        const n = waitersOf(name).length
        return n > 0 && <span class="tag is-warn">{n} waiting</span>
      },
    },
    {
      name: 'Held for',
      width: '5rem',
      wide: true,
      order: ({ acquired_at }) => acquired_at,
      show: ({ acquired_at }) => <Lasts since={acquired_at} class="dim" />,
    },
    {
      name: 'Left',
      width: '9rem',
      order: ({ until_ms }) => until_ms,
      show: ({ name }) => <Countdown name={name} />,
    },
    {
      name: '_',
      width: '6.5rem',
      wide: true,
      show: (lock) => <Acts quiet of={[releases(lock)]} />,
    },
  ],
}

/** How much is left of the lease of a lock, as time and as a bar; nothing, once it is free. */
export function Countdown({ name }: { name: string }) {
  void locksChanged.value
  useEffect(() => watch(name), [name])
  const lock = locks.get(name)
  if (!lock) return null
  const left = Math.max(0, (lock.until_ms - now.value) / 1000)
  const share = Math.min(1, left / lock.ttl_seconds)
  return (
    <span class={`countdown ${share < 0.2 ? 'is-low' : ''}`}>
      <span class="countdown-bar" aria-hidden="true">
        <span style={{ width: `${Math.round(share * 100)}%` }} />
      </span>
      <span class="number">{left === 0 ? 'overdue' : span(left)}</span>
    </span>
  )
}

/** Frees a lock that another holds. */
export function releases({ name, holder }: Pick<HeldLock, 'name' | 'holder'>): Act {
  const isTask = name.startsWith('task:')
  return {
    says: 'Force-release',
    label: `Force-release ${name}`,
    kind: 'danger',
    admin: true,
    will: [
      `${holder} loses its lease at once; whatever it still writes under it is refused.`,
      'A command that leasehold started under it is stopped first.',
      ...(isTask ? ['The task goes back to To do, and another agent may claim it.'] : []),
      'The first in line gets the lock.',
    ],
    fields: [{ label: 'Reason (kept in the event log)', initial: '' }],
    run: async (reason = '') => {
      await change('lock.force_release', { name, ...(reason !== '' && { reason }) })
      return `${name} was released; ${holder} no longer holds it`
    },
  }
}

/** A lock that is held, in a line: what, how long still, and how to free it. */
export const LockLine = ({ lock }: { lock: HeldLock }) => (
  <li>
    <LockLink name={lock.name} />
    <Countdown name={lock.name} />
    <Acts quiet of={[releases(lock)]} />
  </li>
)

export function LockSheet({ name }: { name: string }) {
  void locksChanged.value
  const lock = locks.get(name)
  const line = waitersOf(name)
  // It may be one of those that were too many to be kept.
  useEffect(() => lookAt(name), [name])
  return (
    <Sheet label={`Lock ${name}`} title={name}>
      {lock ? (
        <>
          <Countdown name={name} />
          <Facts
            of={[
              ['Holder', <AgentLink id={lock.holder} />],
              ['Fence', String(lock.fence)],
              ['Since', dayOf(lock.acquired_at)],
              ['Lease', span(lock.ttl_seconds)],
              ['Process', lock.pid !== undefined && `${lock.pid} on ${lock.host}`],
            ]}
          />
          <Acts of={[releases(lock)]} />
        </>
      ) : (
        <p class="fine">It is free now.</p>
      )}
      <Section title="Line">
        {line.length === 0 && <p class="dim">Nobody waits for it.</p>}
        <ol class="links">
          {line.map(({ id, agent, asked_at, priority, called, names }) => (
            <li key={id}>
              <AgentLink id={agent} />
              <span class="dim">
                for <Lasts since={asked_at} />, priority {priority}
                {called && ', called'}
                {names.length > 1 && `, needs ${names.length} locks at once`}
              </span>
            </li>
          ))}
        </ol>
      </Section>
      <p>
        <a href={hrefOf('history', { lock: name })}>Who held it when</a>
      </p>
    </Sheet>
  )
}

interface Wait {
  from: string
  to: string
  lock: string
  since: string
}

/** Who waits for whom, now. */
const waits = (): Wait[] =>
  waiters.value.flatMap(({ agent: from, names, asked_at: since }) =>
    names.flatMap((lock) => {
      const to = locks.get(lock)?.holder
      return to === undefined ? [] : [{ from, to, lock, since }]
    }),
  )

/** Agents that others wait for, with all who wait behind each; first whom most wait for. */
export function WaitTree() {
  void locksChanged.value
  const all = waits()
  const behind = (name: string, seen = new Set([name])): number =>
    all
      .filter(({ to, from }) => to === name && !seen.has(from))
      .reduce((n, { from }) => n + 1 + behind(from, seen.add(from)), 0)
  const waiting = new Set(all.map(({ from }) => from))
  const holders = [...new Set(all.map(({ to }) => to))]
  const roots = holders.filter((name) => !waiting.has(name))
  return (
    <ul class="tree" aria-label="Who waits for whom">
      {(roots.length > 0 ? roots : holders).toSorted(by((name) => -behind(name))).map((name) => (
        <li key={name}>
          <strong>
            <AgentLink id={name} />
          </strong>
          <Behind agent={name} />
        </li>
      ))}
    </ul>
  )
}

/** All who wait for what an agent has, and who waits for them. */
export function Behind({ agent, above = [] }: { agent: string; above?: string[] }) {
  void locksChanged.value
  const mine = waits().filter(({ to, from }) => to === agent && !above.includes(from))
  if (mine.length === 0) return null
  return (
    <ul class="tree">
      {mine.map(({ from, lock, since }) => (
        <li key={`${from} ${lock}`}>
          <AgentLink id={from} />
          <span class="dim">
            {' '}
            waits for <LockLink name={lock} />, <Lasts since={since} />
          </span>
          <Behind agent={from} above={[...above, agent]} />
        </li>
      ))}
    </ul>
  )
}
