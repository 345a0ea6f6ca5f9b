import type { AnswerOf } from '../../operations/registry.ts'
import { ask, clock } from '../ask.ts'
import { useAsked } from '../data/asked.ts'
import { Countdown } from '../parts/countdown.tsx'
import { Empty, Loading, Trouble } from '../parts/empty.tsx'
import { Panel } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { ReleaseButton } from './release_button.tsx'

type Reservation = AnswerOf<'reserve.list'>['items'][number] & { until_ms: number }

/** A folder, or a path or glob that somebody has reserved. */
interface Branch {
  name: string
  inside: Map<string, Branch>
  held: Reservation[]
}

const LOOK_MS = 10_000

async function allReserved(): Promise<Reservation[]> {
  const { items } = await ask('reserve.list', { limit: 1000 })
  const at = clock()
  return items.map((each) => Object.assign(each, { until_ms: at + each.expires_in_seconds * 1000 }))
}

/** Reserved paths, as the tree of files that people know. */
export function PathTree({ wanted }: { wanted: string }) {
  const asked = useAsked('reservations', allReserved, {
    affects: ({ lock, type }) => (lock?.startsWith('path:') ?? false) || /^reserv|^path/.test(type),
    every_ms: LOOK_MS,
  })
  const all = asked.value.value ?? []
  const text = wanted.toLowerCase()
  const found = all.filter(({ path, holder }) => `${path} ${holder}`.toLowerCase().includes(text))
  return (
    <div class="stack pad-top">
      <Trouble refusal={asked.refusal.value} />
      {!asked.value.value && !asked.refusal.value && <Loading />}
      {asked.value.value && all.length === 0 && (
        <Empty title="No path is reserved" command="leasehold reserve add 'src/**' --project web">
          While an agent has a path reserved, no other can take it.
        </Empty>
      )}
      {treesOf(found).map((tree) => (
        <Panel key={tree.name} title={tree.name}>
          <ul class="tree">
            <Branches of={tree} />
          </ul>
        </Panel>
      ))}
    </div>
  )
}

function treesOf(reserved: Reservation[]): Branch[] {
  const root = branch('')
  for (const each of reserved) {
    const place = each.project ?? each.checkout ?? 'here'
    const parts = [place, ...each.path.split('/').filter((part) => part !== '')]
    let at = root
    for (const part of parts) {
      let next = at.inside.get(part)
      if (!next) at.inside.set(part, (next = branch(part)))
      at = next
    }
    at.held.push(each)
  }
  return [...root.inside.values()]
}

const branch = (name: string): Branch => ({ name, inside: new Map(), held: [] })

function Branches({ of }: { of: Branch }) {
  return (
    <>
      {[...of.inside.values()].map((each) => (
        <li key={each.name}>
          <span class="tree-name">
            <Icon name={each.inside.size > 0 ? 'folder' : 'file'} size={14} /> {each.name}
          </span>
          {each.held.map((reservation) => (
            <Reserved key={reservation.lock_id} reservation={reservation} />
          ))}
          {each.inside.size > 0 && (
            <ul class="tree">
              <Branches of={each} />
            </ul>
          )}
        </li>
      ))}
    </>
  )
}

function Reserved({ reservation }: { reservation: Reservation }) {
  const { name, holder, shared, reason, until_ms, ttl_seconds } = reservation
  return (
    <span class="reserved">
      <strong>{holder}</strong>
      <span class={`tag ${shared ? '' : 'is-waiting'}`}>{shared ? 'shared' : 'exclusive'}</span>
      <Countdown until_ms={until_ms} ttl_seconds={ttl_seconds} />
      {reason && <span class="dim">{reason}</span>}
      <ReleaseButton name={name} holder={holder} />
    </span>
  )
}
