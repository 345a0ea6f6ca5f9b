import { createInterface } from 'node:readline'
import { plant, type Promised } from '../../src/core/planted.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { Leading } from '../../src/daemon/leading.ts'
import { startSweeper } from '../../src/daemon/sweeper.ts'
import { type Machine, machine } from '../../src/machine/machine.ts'
import { call } from '../../src/operations/call.ts'
import { operationNamed } from '../../src/operations/registry.ts'
import type { LeaderRow } from '../../src/stores/port.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { type Mood, Relay } from '../../lab/rig/relay.ts'

/**
 * A process that leads or follows, as a daemon does, on the database `URL`. It takes orders, one
 * JSON object per line: to ask something, to say how things stand, to begin with load or end it,
 * and to treat what passes between it and the database, or its followers, in another way. `SEAT`
 * makes it the process of another host, as far as proofs of death go.
 */
const { URL: url = '', NAME = '', TTL_MS = '', SEAT, BUG, RELAYS } = process.env
plant(BUG as Promised | undefined)

interface Order {
  id?: number
  operation?: string
  input?: Record<string, unknown>
  agent?: string
  load?: number
  to?: 'database' | 'followers'
  mood?: Mood
  reset?: boolean
  end?: boolean
}

const say = (what: object) => void process.stdout.write(`${JSON.stringify(what)}\n`)
const relays: Partial<Record<'database' | 'followers', Relay>> = {}

async function databaseUrl(): Promise<string> {
  const to = new globalThis.URL(url)
  if (!RELAYS) return url
  const port = Number(to.port)
  relays.database = new Relay(() => port)
  to.port = String(await relays.database.listen())
  return to.href
}

/** Nothing but ourselves lives on the other host. */
const there: Machine = SEAT
  ? { ...machine, seat: SEAT, process: ({ seat }) => (seat === SEAT ? 'dead' : 'unknown') }
  : machine
const address = addressOf(await databaseUrl())
const store = new Store(new PostgresBackend({ address, busy_timeout_ms: 5_000 }), there)
const leaders = store.leaders!
const write = leaders.write.bind(leaders)
/** Followers come by the relay, which is where they think that we are. */
leaders.write = async (row: LeaderRow) => {
  if (!RELAYS) return write(row)
  const port = Number(row.address.split(':').at(-1))
  relays.followers = new Relay(() => port)
  return write({ ...row, address: `127.0.0.1:${await relays.followers.listen()}` })
}

const leading = new Leading(store, {
  listen: () => ({ host: '127.0.0.1', port: 0 }),
  version: 'test',
  say: (said) => say({ said }),
  ...(TTL_MS && { ttl_ms: Number(TTL_MS) }),
})
await store.follow(100)
// There is none on the other host: what is dead there is found out by who asks.
if (!SEAT) startSweeper(store)
await leading.start()

const callerOf = (agent: string) => {
  return { agent, given: true, process: null, admin: false, under: null }
}

function ask(operation: string, input: Record<string, unknown>, agent: string): Promise<unknown> {
  return call(store, operationNamed.get(operation)!, input, callerOf(agent))
}

/** Tries until there is an answer that is no "not now", under one request id. */
async function once(
  operation: string,
  input: Record<string, unknown>,
  agent: string,
  mark: string,
): Promise<{ answer?: unknown; code?: string }> {
  for (;;) {
    try {
      return {
        answer: await ask(operation, { ...input, request_id: `${operation} ${mark}` }, agent),
      }
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      if (error.code !== 'unavailable') return { code: error.code }
    }
  }
}

interface Claimed {
  task: { id: string } | null
  lease: { fence: number } | null
}

/** Adds a task, claims one, completes it; takes a lock that others want, and gives it back. */
async function turn(agent: string, mark: string): Promise<void> {
  const made = await once('task.create', { title: mark }, agent, mark)
  say({ did: 'made', title: mark, ...made })
  const { answer } = await once('task.claim', {}, agent, mark)
  const { task, lease } = (answer ?? { task: null, lease: null }) as Claimed
  if (task && lease) {
    const done = { id: task.id, status: 'done', fence: lease.fence }
    const ended = await once('task.status', done, agent, mark)
    say({ did: 'done', task: task.id, fence: lease.fence, code: ended.code })
  }
  const name = `lock-${Math.floor(Math.random() * 4)}`
  const taken = await once('lock.acquire', { names: [name] }, agent, mark)
  if (taken.code !== undefined) return
  const { fence } = taken.answer as { fence: number }
  // Without a request id: nobody knows of one that broke off.
  const renewed = await ask('lock.renew', { name, fence }, agent).then(
    () => 'ok',
    (error: Refusal) => error.code,
  )
  const released = await once('lock.release', { name, fence }, agent, mark)
  say({ did: 'held', name, fence, renewed, released: released.code ?? 'ok' })
}

let isLoaded = false
let working: Promise<unknown> = Promise.resolve()

async function work(agent: string): Promise<void> {
  for (let n = 0; isLoaded; n += 1) await turn(agent, `${agent}/${n}`)
}

async function obey({ id, operation, input, agent, ...order }: Order): Promise<void> {
  if (operation !== undefined) {
    const said = await ask(operation, input ?? {}, agent ?? NAME).then(
      (answer) => ({ answer }),
      (error: Refusal) => ({ refusal: error.toJSON?.().error ?? String(error) }),
    )
    return say({ id, ...said })
  }
  if (order.load !== undefined) {
    isLoaded = true
    const agents = Array.from({ length: order.load }, (_, i) => `${NAME}-${process.pid}-${i}`)
    working = Promise.all(agents.map(work))
  } else if (order.to !== undefined) {
    const relay = relays[order.to]
    if (relay) relay.mood = order.mood ?? 'pass'
    if (order.reset) relay?.reset()
  } else if (order.end) {
    isLoaded = false
    await working
  }
  const { isLed } = leading.follower
  say({ id, isLeading: leading.isLeading, isLed, asks: store.meter.asks })
}

say({ ready: process.pid })
for await (const line of createInterface(process.stdin)) void obey(JSON.parse(line) as Order)
await leading.stop()
leading.follower.close()
await store.close()
for (const relay of Object.values(relays)) relay.close()
process.exit()
