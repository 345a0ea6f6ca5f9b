import { computed, useSignal } from '@preact/signals'
import type { OutputOf } from '../../client/calls.ts'
import { pagesOf } from '../ask.ts'
import { now, useAsked } from '../data/asked.ts'
import { feed } from '../data/feed.ts'
import { Tag } from '../parts/badge.tsx'
import { Empty, Trouble } from '../parts/empty.tsx'
import { Page, Search } from '../parts/frame.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { ago, count, secondsSince } from '../parts/words.ts'
import { hrefOf } from '../route.ts'

type ShownAgent = OutputOf<'agent.list'>['items'][number]

const LOOK_MS = 20_000
const HERE_SECONDS = 60

/** When each agent was lost, as far back as the page remembers. */
const lostAt = computed(() => {
  const lost = feed.value.filter(({ type }) => type === 'agent.lost')
  return new Map(lost.toReversed().map(({ agent, at }) => [agent, at]))
})

type Standing = 'here' | 'lost' | 'away'

function standingOf({ id, holds, last_seen_at }: ShownAgent): Standing {
  if (holds.length > 0) return 'here'
  if ((lostAt.value.get(id) ?? '') > last_seen_at) return 'lost'
  return secondsSince(last_seen_at, now.value) < HERE_SECONDS ? 'here' : 'away'
}

async function allAgents(): Promise<ShownAgent[]> {
  const found: ShownAgent[] = []
  for await (const { items } of pagesOf('agent.list', { limit: 1000 })) {
    found.push(...items)
    if (found.length >= 10_000) break
  }
  return found.toSorted((a, b) => (a.last_seen_at < b.last_seen_at ? 1 : -1))
}

export function Agents() {
  const asked = useAsked('agents', allAgents, {
    affects: ({ type }) => type.startsWith('agent.'),
    every_ms: LOOK_MS,
  })
  const wanted = useSignal('')
  const all = asked.value.value ?? []
  const text = wanted.value.toLowerCase()
  const found = all.filter(({ id, host }) => `${id} ${host}`.toLowerCase().includes(text))
  return (
    <Page title="Agents" class="is-full" aside={<Search label="Find an agent" text={wanted} />}>
      <Trouble refusal={asked.refusal.value} />
      <p class="dim">{count(all.length, 'agent')} ever seen here</p>
      {all.length === 0 && asked.value.value ? (
        <Empty title="No agent has been here yet" command="leasehold init">
          Set a repository up, so that agents take part; or act as one: leasehold task claim
        </Empty>
      ) : (
        <div class="panel is-list">
          <Virtual
            items={found}
            row={64}
            label="Agents"
            keyOf={({ id }) => id}
            render={(agent) => <AgentRow agent={agent} />}
          />
        </div>
      )}
    </Page>
  )
}

function AgentRow({ agent }: { agent: ShownAgent }) {
  const { id, kind, host, pid, last_seen_at, holds } = agent
  const standing = standingOf(agent)
  return (
    <div class="row agent">
      <span class={`dot is-${standing}`} aria-hidden="true" />
      <div class="agent-what">
        <a href={hrefOf('events', { q: id })}>{id}</a>
        <span class="dim">
          {kind} {host && `on ${host}`} {pid !== null && `· PID ${pid}`}
        </span>
      </div>
      <span class="agent-holds">
        {holds.slice(0, 4).map((name) => (
          <Tag key={name}>{name}</Tag>
        ))}
        {holds.length > 4 && <Tag>+{holds.length - 4}</Tag>}
        {holds.length === 0 && <span class="dim">holds nothing</span>}
      </span>
      <span class="dim number">
        {standing}, seen {ago(last_seen_at, now.value)}
      </span>
    </div>
  )
}
