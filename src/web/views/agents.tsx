import { useSignal } from '@preact/signals'
import type { AnswerOf } from '../../operations/registry.ts'
import { ask, pagesOf } from '../ask.ts'
import { now, useAsked } from '../data/asked.ts'
import { waiters } from '../data/locks.ts'
import { Tag } from '../parts/badge.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { Page, Search, Select } from '../parts/frame.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { ago, count, secondsSince } from '../parts/words.ts'
import { adjust, hrefOf, param, route, wanted } from '../route.ts'
import { AgentPage } from './agent_page.tsx'

export type ShownAgent = AnswerOf<'agent.list'>['items'][number]

const LOOK_MS = 20_000
const HERE_SECONDS = 60
const AGENTS_MAX = 10_000
/** Whoever was lost longer ago has not been here since, which says as much. */
const LOST_SECONDS = 7 * 86_400

export type Standing = 'working' | 'waiting' | 'here' | 'away' | 'lost'

interface Known {
  agents: ShownAgent[]
  isWhole: boolean
  /** When each was lost, as the event log has it. */
  lost: Map<string, string>
}

const NOBODY: Known = { agents: [], isWhole: true, lost: new Map() }

const standing = param<Standing | ''>('standing', '')
const STANDINGS = ['', 'working', 'waiting', 'here', 'lost', 'away'] as const

function standingOf(agent: ShownAgent, lost: Known['lost']): Standing {
  const { id, holds, last_seen_at } = agent
  // Whatever it still holds: its process is gone, or its last lease ran out.
  if ((lost.get(id) ?? '') >= last_seen_at) return 'lost'
  if (waiters.value.some((each) => each.agent === id)) return 'waiting'
  if (holds.length > 0) return 'working'
  return secondsSince(last_seen_at, now.value) < HERE_SECONDS ? 'here' : 'away'
}

async function allAgents(): Promise<Known> {
  const agents: ShownAgent[] = []
  let isWhole = true
  for await (const { items, next } of pagesOf('agent.list', { limit: 1000 })) {
    agents.push(...items)
    if (agents.length < AGENTS_MAX) continue
    isWhole = next === null
    break
  }
  const type = 'agent.lost,lease.died'
  const lost = new Map<string, string>()
  const events = await ask('event.list', { type, since_seconds: LOST_SECONDS, limit: 1000 })
  for (const { agent, at, data } of events.items.toReversed()) {
    lost.set(('holder' in data && data.holder) || agent, at)
  }
  const newest = (a: ShownAgent, b: ShownAgent) => (a.last_seen_at < b.last_seen_at ? 1 : -1)
  return { agents: agents.toSorted(newest), isWhole, lost }
}

/** Runs of one kind, folded; or an agent by itself. */
interface Row {
  key: string
  agent: ShownAgent
  standing: Standing
  /** How many others are folded under it; null: it is not such a row. */
  folded: number | null
  isInside: boolean
}

/** `coder:42.1`, as dispatchers name the agents that they start. */
const isRun = ({ id, kind }: ShownAgent) => id.startsWith(`${kind}:`) && /\.\d+$/.test(id)

function rowsOf({ agents, lost }: Known, open: ReadonlySet<string>): Row[] {
  const all = agents
    .map((agent): Row => {
      const of = standingOf(agent, lost)
      return { key: agent.id, agent, standing: of, folded: null, isInside: false }
    })
    .filter((row) => standing.value === '' || row.standing === standing.value)
  const runs = all.filter(({ agent }) => isRun(agent))
  const folds = new Map(runs.map((row) => [row.agent.kind, [] as Row[]]))
  for (const row of runs) folds.get(row.agent.kind)!.push(row)
  const rows: Row[] = []
  for (const row of all) {
    const inside = isRun(row.agent) ? folds.get(row.agent.kind)! : []
    if (inside.length < 2) rows.push(row)
    // The newest of a kind stands for all of them.
    if (inside.length < 2 || inside[0] !== row) continue
    const { kind } = row.agent
    rows.push({ ...row, key: `kind ${kind}`, folded: inside.length })
    if (open.has(kind)) for (const each of inside) rows.push({ ...each, isInside: true })
  }
  return rows
}

export function Agents() {
  const id = route.value.params.get('id')
  return id === null ? <AllAgents /> : <AgentPage key={id} id={id} />
}

function AllAgents() {
  const asked = useAsked('agents', allAgents, {
    affects: ({ type }) => type.startsWith('agent.') || type === 'lease.died',
    every_ms: LOOK_MS,
  })
  const open = useSignal<ReadonlySet<string>>(new Set())
  const { agents, isWhole, lost } = asked.value.value ?? NOBODY
  const text = wanted.value.toLowerCase()
  const found = agents.filter(({ id, host }) => `${id} ${host}`.toLowerCase().includes(text))
  const fold = (kind: string) => {
    const next = new Set(open.value)
    if (!next.delete(kind)) next.add(kind)
    open.value = next
  }
  return (
    <Page title="Agents" class="is-full">
      <div class="filters">
        <Search label="Find an agent" text={wanted} />
        <Select
          label="Standing"
          of={STANDINGS}
          chosen={standing.value}
          choose={(to) => (standing.value = to)}
          says={(each) => each || 'Any standing'}
        />
        <span class="dim filters-says">
          {!asked.value.value
            ? ''
            : isWhole
              ? `${count(agents.length, 'agent')} ever seen here`
              : `The first ${count(agents.length, 'agent')}; there are more: leasehold agent list`}
        </span>
      </div>
      <Trouble refusal={asked.refusal.value} />
      {!asked.value.value && !asked.refusal.value && <Loading />}
      {asked.value.value && agents.length === 0 && (
        <Empty title="No agent has been here yet" command="leasehold init">
          Set a repository up, so that agents take part; or act as one: leasehold task claim
        </Empty>
      )}
      {agents.length > 0 && (
        <div class="panel is-list">
          <Virtual
            items={rowsOf({ agents: found, isWhole, lost }, open.value)}
            row={56}
            label="Agents"
            keyOf={({ key }) => key}
            render={(row) => (
              <AgentRow row={row} isOpen={open.value.has(row.agent.kind)} fold={fold} />
            )}
          />
        </div>
      )}
    </Page>
  )
}

interface AgentRowProps {
  row: Row
  isOpen: boolean
  fold: (kind: string) => void
}

function AgentRow({ row, isOpen, fold }: AgentRowProps) {
  const { agent, folded, isInside } = row
  const { id, kind, host, pid, last_seen_at, holds } = agent
  if (folded !== null) {
    return (
      <div class="row agent">
        <span class={`dot is-${row.standing}`} aria-hidden="true" />
        <button type="button" class="fold" aria-expanded={isOpen} onClick={() => fold(kind)}>
          <strong>{kind}</strong> <span class="dim">{count(folded, 'run')} by a dispatcher</span>
        </button>
        <span class="dim number">newest seen {ago(last_seen_at, now.value)}</span>
      </div>
    )
  }
  return (
    <div class={`row agent ${isInside ? 'is-inside' : ''}`}>
      <span class={`dot is-${row.standing}`} aria-hidden="true" />
      <div class="agent-what">
        <a
          data-id={id}
          href={hrefOf('agents', { id })}
          onClick={(event) => {
            event.preventDefault()
            adjust({ id })
          }}
        >
          {id}
        </a>
        <span class="dim">
          {kind} {host && `on ${host}`} {pid !== null && `· PID ${pid}`}
        </span>
      </div>
      <span class="agent-holds">
        <span class="dim">holds {holds.length === 0 ? 'nothing' : holds.length}</span>
        {holds.slice(0, 4).map((name) => (
          <Tag key={name}>{name}</Tag>
        ))}
      </span>
      <span class="dim number">
        {row.standing}, seen {ago(last_seen_at, now.value)}
      </span>
    </div>
  )
}
