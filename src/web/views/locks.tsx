import { useComputed } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import { now } from '../data/asked.ts'
import {
  type HeldLock,
  locks,
  locksChanged,
  locksKnown,
  lookAt,
  waitersOf,
  watch,
} from '../data/locks.ts'
import { IconButton } from '../parts/buttons.tsx'
import { Countdown } from '../parts/countdown.tsx'
import { Empty, Loading } from '../parts/empty.tsx'
import { Facts, Page, Search, Tabs } from '../parts/frame.tsx'
import { Icon } from '../parts/icon.tsx'
import { Virtual } from '../parts/virtual.tsx'
import { count, dayOf, secondsSince, span } from '../parts/words.ts'
import { adjust, hrefOf, route, wanted } from '../route.ts'
import { PathTree } from './path_tree.tsx'
import { ReleaseButton } from './release_button.tsx'
import { WaitGraph } from './wait_graph.tsx'

const TABS = { held: 'Held', waits: 'Who waits for whom', paths: 'Reservations' }
type Tab = keyof typeof TABS

export function Locks() {
  const { params } = route.value
  const tab = (params.get('tab') ?? 'held') as Tab
  return (
    <Page
      title="Locks"
      class="is-full"
      aside={<Search label="Find a lock or holder" text={wanted} />}
    >
      <Tabs label="Locks" tabs={TABS} chosen={tab} choose={(key) => adjust({ tab: key })} />
      {tab === 'held' && <Held />}
      {tab === 'waits' && <WaitGraph />}
      {tab === 'paths' && <PathTree wanted={wanted.value} />}
    </Page>
  )
}

/** Locks that the server holds for itself say nothing about anybody's work. */
const isOurs = ({ name }: HeldLock) => name.startsWith('leasehold:')

function Held() {
  const text = wanted.value.toLowerCase()
  const open = route.value.params.get('id')
  const all = useComputed(() => {
    void locksChanged.value
    return [...locks.values()].filter((lock) => !isOurs(lock)).toSorted(byName)
  }).value
  const found = all.filter(({ name, holder }) => `${name} ${holder}`.toLowerCase().includes(text))
  if (!locksKnown.value) return <Loading />
  if (all.length === 0 && open === null) {
    return (
      <Empty title="No lock is held" command="leasehold lock acquire git:web --wait 30s">
        A lock is a name that one agent at a time may hold.
      </Empty>
    )
  }
  return (
    <>
      <p class="dim">{count(all.length, 'lock')} held</p>
      <div class="split">
        <div class="panel is-list">
          <Virtual
            items={found}
            row={60}
            label="Held locks"
            keyOf={({ name }) => name}
            shown={(items) => watch(items.map(({ name }) => name))}
            render={(lock) => <LockRow lock={lock} isOpen={lock.name === open} />}
          />
        </div>
        {open !== null && <LockSheet name={open} />}
      </div>
    </>
  )
}

const byName = (a: HeldLock, b: HeldLock) => (a.name < b.name ? -1 : 1)

function LockRow({ lock, isOpen }: { lock: HeldLock; isOpen: boolean }) {
  const { name, holder, until_ms, ttl_seconds } = lock
  const line = waitersOf(name)
  return (
    <div class={`row lock ${isOpen ? 'is-open' : ''}`}>
      <Icon name="locks" />
      <div class="lock-what">
        <a
          data-id={name}
          href={hrefOf('locks', { id: name })}
          onClick={(event) => {
            event.preventDefault()
            adjust({ id: name })
          }}
        >
          {name}
        </a>
        <span class="dim">{holder}</span>
      </div>
      {line.length > 0 && (
        <span class="tag is-waiting">
          {line.length} <span class="only-wide">waiting</span>
        </span>
      )}
      <Countdown until_ms={until_ms} ttl_seconds={ttl_seconds} />
      <ReleaseButton name={name} holder={holder} />
    </div>
  )
}

function LockSheet({ name }: { name: string }) {
  void locksChanged.value
  const lock = locks.get(name)
  const line = waitersOf(name)
  useEffect(() => lookAt(name), [name])
  return (
    <aside class="panel sheet" aria-label={`Lock ${name}`}>
      <header class="panel-head">
        <h2>{name}</h2>
        <IconButton icon="close" label="Close" act={() => adjust({ id: null })} />
      </header>
      {lock ? <LockFacts lock={lock} /> : <p class="fine">It is free now.</p>}
      <h3>Line</h3>
      {line.length === 0 && <p class="dim">Nobody waits for it.</p>}
      <ol class="line">
        {line.map(({ id, agent, asked_at, priority, called, names }) => (
          <li key={id}>
            <a href={hrefOf('agents', { id: agent })}>
              <strong>{agent}</strong>
            </a>
            <span class="dim">
              for {span(secondsSince(asked_at, now.value))}, priority {priority}
              {called && ', called'}
              {names.length > 1 && `, needs ${names.length} locks at once`}
            </span>
          </li>
        ))}
      </ol>
      <p>
        <a href={hrefOf('timeline', { q: name })}>Who held it when</a>
      </p>
    </aside>
  )
}

function LockFacts({ lock }: { lock: HeldLock }) {
  const { holder, fence, acquired_at, pid, host, ttl_seconds } = lock
  return (
    <Facts
      of={[
        ['Holder', <a href={hrefOf('agents', { id: holder })}>{holder}</a>],
        ['Fence', String(fence)],
        ['Since', dayOf(acquired_at)],
        ['Lease', span(ttl_seconds)],
        ['Process', pid !== undefined && `${pid} on ${host}`],
      ]}
    />
  )
}
