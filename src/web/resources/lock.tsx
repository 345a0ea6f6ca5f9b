import { useEffect } from 'preact/hooks'
import { forceRelease } from '../actions.ts'
import { now } from '../data/asked.ts'
import { type HeldLock, locks, locksChanged, lookAt, waiters, waitersOf } from '../data/locks.ts'
import { Acts } from '../parts/buttons.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Opens } from '../parts/opens.tsx'
import type { Act, PageNoun } from '../parts/resource.ts'
import { Section, Sheet } from '../parts/sheet.tsx'
import { dayOf, secondsSince, span } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

export const LockLink = ({ name }: { name: string }) => (
  <a href={hrefOf('who', { tab: 'locks', id: name })}>{name}</a>
)

const isPath = ({ name }: HeldLock) => name.startsWith('path:')

export const lockResource: PageNoun<HeldLock> = {
  one: 'lock',
  keyOf: ({ name }) => name,
  textOf: ({ name, holder }) => `${name} ${holder}`,
  none: ['No lock is held', 'A lock is a name that one agent at a time may hold.'],
  order: (a, b) => (a.name < b.name ? -1 : 1),
  saved: {
    all: { name: 'All held', fits: () => true },
    files: { name: 'Files', fits: isPath },
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
      show: ({ holder }) => <a href={hrefOf('who', { id: holder })}>{holder}</a>,
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
      show: ({ acquired_at }) => (
        <span class="dim number">{span(secondsSince(acquired_at, now.value))}</span>
      ),
    },
    {
      name: 'Left',
      width: '9rem',
      order: ({ until_ms }) => until_ms,
      show: ({ name }) => <Countdown name={name} />,
    },
    {
      name: '_',
      width: '4.5rem',
      wide: true,
      show: (lock) => <Acts kind="quiet" of={[releases(lock)]} />,
    },
  ],
}

/** Frees a lock that another holds, after asking; for admins only. */
export const releases = ({ name, holder }: HeldLock): Act => ({
  says: 'Release',
  label: `Force-release ${name}`,
  admin: true,
  act: () => forceRelease(name, holder),
})

/** A lock that is held, in a line: what, how long still, and how to free it. */
export function LockLine({ lock }: { lock: HeldLock }) {
  return (
    <li>
      <LockLink name={lock.name} />
      <Countdown name={lock.name} />
      <Acts kind="quiet" of={[releases(lock)]} />
    </li>
  )
}

export function LockSheet({ name }: { name: string }) {
  void locksChanged.value
  const lock = locks.get(name)
  const line = waitersOf(name)
  // It may be one of those that were too many to be kept.
  useEffect(() => lookAt(name), [name])
  return (
    <Sheet
      label={`Lock ${name}`}
      title={name}
      first={lock ? <Countdown name={name} /> : <p class="fine">It is free now.</p>}
      {...(lock && {
        facts: [
          ['Holder', <a href={hrefOf('who', { id: lock.holder })}>{lock.holder}</a>],
          ['Fence', String(lock.fence)],
          ['Since', dayOf(lock.acquired_at)],
          ['Lease', span(lock.ttl_seconds)],
          ['Process', lock.pid !== undefined && `${lock.pid} on ${lock.host}`],
        ],
        acts: [{ ...releases(lock), says: 'Force-release', kind: 'danger-quiet' }],
      })}
    >
      <Section title="Line">
        {line.length === 0 && <p class="dim">Nobody waits for it.</p>}
        <ol class="links">
          {line.map(({ id, agent, asked_at, priority, called, names }) => (
            <li key={id}>
              <a href={hrefOf('who', { id: agent })}>{agent}</a>
              <span class="dim">
                for {span(secondsSince(asked_at, now.value))}, priority {priority}
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
function waits(): Wait[] {
  return waiters.value.flatMap(({ agent, names, asked_at }) =>
    names.flatMap((lock) => {
      const to = locks.get(lock)?.holder
      return to === undefined ? [] : [{ from: agent, to, lock, since: asked_at }]
    }),
  )
}

/** Agents that others wait for, with all who wait behind each; first whom most wait for. */
export function WaitTree() {
  void locksChanged.value
  const all = waits()
  const behind = (name: string, seen: Set<string>): number =>
    all
      .filter(({ to, from }) => to === name && !seen.has(from))
      .reduce((n, { from }) => n + 1 + behind(from, seen.add(from)), 0)
  const waiting = new Set(all.map(({ from }) => from))
  const holders = [...new Set(all.map(({ to }) => to))]
  const roots = holders.filter((name) => !waiting.has(name))
  const counted = (roots.length > 0 ? roots : holders).map((name) => {
    return [name, behind(name, new Set([name]))] as const
  })
  return (
    <ul class="tree" aria-label="Who waits for whom">
      {counted
        .toSorted(([, a], [, b]) => b - a)
        .map(([name]) => (
          <li key={name}>
            <a href={hrefOf('who', { id: name })}>
              <strong>{name}</strong>
            </a>
            <WaitersOf {...{ name, all }} above={[name]} />
          </li>
        ))}
    </ul>
  )
}

function WaitersOf({ name, all, above }: { name: string; all: Wait[]; above: string[] }) {
  const mine = all.filter(({ to }) => to === name)
  if (mine.length === 0) return null
  return (
    <ul class="tree">
      {mine.map(({ from, lock, since }) => (
        <li key={`${from} ${lock}`}>
          <a href={hrefOf('who', { id: from })}>{from}</a>
          <span class="dim">
            {' '}
            waits for <LockLink name={lock} />, {span(secondsSince(since, now.value))}
          </span>
          {!above.includes(from) && <WaitersOf name={from} all={all} above={[...above, from]} />}
        </li>
      ))}
    </ul>
  )
}
