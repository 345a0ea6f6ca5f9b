import { factsOf } from '../../core/event.ts'
import { ask, pagesOf } from '../ask.ts'
import { now, useAnswer, useAsked } from '../data/asked.ts'
import { locks, locksChanged, locksKnown, waiters } from '../data/locks.ts'
import { Acts } from '../parts/acts.tsx'
import { Answered, Loading, Page, Panel, Tabs } from '../parts/frame.tsx'
import { TaskLink } from '../parts/links.tsx'
import { Listing } from '../parts/list.tsx'
import { by } from '../parts/noun.tsx'
import { ago, count } from '../parts/words.ts'
import { AgentSheet, agentResource, type ShownAgent, stateOf } from '../resources/agent.tsx'
import { LandingSheet, landingResource, LANDS_ANY, useLandings } from '../resources/landing.tsx'
import { LockSheet, lockResource, WaitTree } from '../resources/lock.tsx'
import {
  type ListedWorktree,
  useWorktrees,
  worktreeResource,
  WorktreeSheet,
} from '../resources/worktree.tsx'
import { adjust, param } from '../route.ts'
import { PathBox } from './path_box.tsx'

const TABS = {
  agents: 'Agents',
  locks: 'Locks and files',
  landings: 'Landings',
  worktrees: 'Worktrees',
}
type Tab = keyof typeof TABS
const tab = param<Tab>('tab', 'agents')

const SHOW: Record<Tab, () => preact.JSX.Element> = {
  agents: Agents,
  locks: Locks,
  landings: Landings,
  worktrees: Worktrees,
}

/** Who has which file, lock and branch, and who waits for it. */
export function Who() {
  const Shown = SHOW[tab.value] ?? Agents
  return (
    <Page title="Who has what" class="is-full" aside={<PathBox />}>
      <Tabs
        label="What"
        tabs={TABS}
        chosen={tab.value}
        choose={(to) => {
          const none = { id: null, q: null, show: null, sort: null, state: null }
          adjust({ ...none, tab: to === 'agents' ? null : to })
        }}
      />
      <Shown key={tab.value} />
    </Page>
  )
}

const LOOK_MS = 20_000
const AGENTS_MAX = 10_000
/** Whoever was lost longer ago has not been here since, which says as much. */
const LOST_SECONDS = 7 * 86_400

async function allAgents(signal: AbortSignal) {
  const agents: ShownAgent['agent'][] = []
  let isWhole = true
  for await (const { items, next } of pagesOf('agent.list', { limit: 1000 }, signal)) {
    agents.push(...items)
    isWhole = next === null
    if (agents.length >= AGENTS_MAX) break
  }
  const type = 'agent.lost,lease.died'
  const asked = { type, since_seconds: LOST_SECONDS, limit: 1000 }
  const events = await ask('event.list', asked, signal)
  const lost = new Map<string, string>()
  for (const event of events.items.toReversed()) {
    lost.set(factsOf(event).holder ?? event.agent, event.at)
  }
  return { agents: agents.toSorted(by(({ last_seen_at }) => last_seen_at, -1)), isWhole, lost }
}

function Agents() {
  const asked = useAsked('agents', allAgents, {
    affects: ({ type }) => type.startsWith('agent.') || type === 'lease.died',
    every_ms: LOOK_MS,
  })
  return (
    <Answered of={asked}>
      {({ agents, isWhole, lost }) => (
        <Listing
          of={agentResource}
          items={agents.map((agent) => ({ agent, state: stateOf(agent, lost) }))}
          says={
            isWhole
              ? `${count(agents.length, 'agent')} ever seen here`
              : `The ${count(agents.length, 'agent')} seen first; there are more`
          }
          sheet={(id) => <AgentSheet key={id} id={id} />}
        />
      )}
    </Answered>
  )
}

function Locks() {
  void locksChanged.value
  if (!locksKnown.value) return <Loading />
  return (
    <>
      <Deadlock />
      {waiters.value.length > 0 && (
        <Panel title="Who waits for whom" aside={count(waiters.value.length, 'waiter')}>
          <WaitTree />
        </Panel>
      )}
      <Listing
        of={lockResource}
        items={[...locks.values()]}
        says={`${count(locks.size, 'lock')} held`}
        sheet={(id) => <LockSheet key={id} name={id} />}
      />
    </>
  )
}

const DEADLOCKS = { type: 'deadlock.found,ticket.broken', since_seconds: 3600, limit: 1 }

/** The newest deadlock that was found and broken: each wait of its cycle. */
function Deadlock() {
  const asked = useAnswer('event.list', DEADLOCKS, {
    affects: ({ type }) => DEADLOCKS.type.includes(type),
  })
  const found = asked.value?.items[0]
  if (!found) return null
  return (
    <Panel
      title={`Deadlock found ${ago(found.at, now.value)}`}
      aside={`${found.agent} was refused, so the others went on`}
    >
      <ol class="tree" aria-label="The cycle">
        {(factsOf(found).cycle ?? []).map((wait) => (
          <li key={wait}>{wait}</li>
        ))}
      </ol>
    </Panel>
  )
}

function Landings() {
  return (
    <Answered of={useLandings()}>
      {({ items, isCut }) => (
        <Listing
          of={landingResource}
          items={items}
          {...(isCut && { says: `In line, and the newest ${count(items.length, 'landing')}` })}
          tools={<Acts of={[LANDS_ANY]} />}
          sheet={(id) => <LandingSheet key={id} id={id} />}
        />
      )}
    </Answered>
  )
}

function Worktrees() {
  return (
    <Answered of={useWorktrees()}>
      {({ items, isCut }) => (
        <>
          <Overlaps trees={items} />
          <Listing
            of={worktreeResource}
            items={items}
            {...(isCut && { says: `The oldest ${count(items.length, 'worktree')}` })}
            sheet={(id) => <WorktreeSheet key={id} id={id} />}
          />
        </>
      )}
    </Answered>
  )
}

const OVERLAPS_MAX = 20

/** Branches that change the same files: one of them will have to be put on top of the other. */
function Overlaps({ trees }: { trees: ListedWorktree[] }) {
  const pairs = trees.flatMap((a, i) =>
    trees.slice(i + 1).flatMap((b) => {
      if (a.project !== b.project || a.task_id === b.task_id) return []
      const both = new Set(b.changed)
      const paths = a.changed.filter((path) => both.has(path))
      return paths.length > 0 ? [{ a, b, paths }] : []
    }),
  )
  if (pairs.length === 0) return null
  return (
    <Panel title="Branches that change the same files" aside={count(pairs.length, 'pair')}>
      <ul class="links pad">
        {pairs.slice(0, OVERLAPS_MAX).map(({ a, b, paths }) => (
          <li key={`${a.id} ${b.id}`}>
            <span>
              <TaskLink id={a.task_id} /> and <TaskLink id={b.task_id} /> in{' '}
              <code>{paths.slice(0, 3).join(', ')}</code>
              {paths.length > 3 && ` and ${paths.length - 3} more`}
            </span>
          </li>
        ))}
      </ul>
    </Panel>
  )
}
