import { randomBytes } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import { getRequestListener } from '@hono/node-server'
import type { AddressInfo } from 'node:net'
import type { Hono } from 'hono'
import { type Doors, httpApp } from '../doors/http/app.ts'
import { answerBadRequests, unreadable } from '../doors/http/bad_request.ts'
import { EventHub } from '../doors/http/events.ts'
import { loopbackHosts } from '../doors/http/guard.ts'
import { Strangers } from '../doors/http/strangers.ts'
import { mcpHandler } from '../doors/mcp/http.ts'
import { Access } from '../operations/access.ts'
import { Refusal } from '../core/refusal.ts'
import { grantFullTtl } from '../stores/clock.ts'
import { fileRefusal } from '../stores/errors.ts'
import { folderOf, openStore, type Place } from '../stores/open.ts'
import type { Store } from '../stores/store.ts'
import type { Event } from '../core/view.ts'
import { announce, withdraw } from '../stores/server_file.ts'
import { startAlerts } from './alerts.ts'
import { startPruner } from './pruner.ts'
import { Dispatcher } from './dispatcher.ts'
// reason: the room for background jobs
import { NoteKeeper } from './jobs/keeper.ts'
import { takeDaemonRole } from './singleton.ts'
import { startSweeper } from './sweeper.ts'

const HOST = '127.0.0.1'
/** Connections that the system keeps for us while we are busy; beyond these it drops some. */
const PENDING_MAX = 4_096
/** How long a client may take to send its headers, and the whole of its request. */
const BOUNDS = { headers_ms: 10_000, request_ms: 30_000 }
/** A client that does not take its answer is cut off when the server has waited this long. */
const STOP_MS = 3_000
const IDLE_LOOK_MS = 20
/** How often writes by other processes are looked for: somebody may wait for what they free. */
const FOLLOW_MS = 100

export interface Served {
  url: string
  /** Finishes what was accepted, then lets go of everything. */
  stop(): Promise<void>
  /** Resolves with the reason when the daemon has to end by itself. */
  ended: Promise<string>
}

/** The only place that wires all: store, doors, and what runs by itself. */
export async function serve(
  place: Place,
  port: number,
  version: string,
  bounds = BOUNDS,
): Promise<Served> {
  const store = openStore(place)
  // What expired while nobody served is noticed by the very first write.
  const noticed: Event[] = []
  const forget = store.onCommit((events) => void noticed.push(...events))
  const role = await takeDaemonRole(store, place).catch(async (error: Error) => {
    await store.close()
    throw error
  })
  const ended = new Promise<string>((resolve) => {
    role.keep(resolve)
    store.onCommit(() => undefined, undefined, resolve)
  })
  // What was begun, ended in the reverse order: when all is over, and when a step of this fails.
  const ends: (() => Promise<void>)[] = [() => store.close(), () => role.release()]
  const stop = async () => {
    for (const end of ends.splice(0).toReversed()) await end()
  }
  try {
    await store.write(grantFullTtl)
    const address: { url?: string } = {}
    const dispatcher = store.isDatabase ? dispatcherOf(store, place, () => address.url) : undefined
    const { url, close } = await openDoors(store, place, port, version, bounds)
    ends.push(close)
    address.url = url
    if (dispatcher) ends.push(() => dispatcher.stop())
    await dispatcher?.startOrStandBy()
    const keeper = store.isDatabase ? keeperOf(store, place) : undefined
    if (keeper) ends.push(() => keeper.stop())
    await keeper?.start()
    forget()
    ends.push(await startAlerts(store, place, role, noticed))
    return { url, stop, ended }
  } catch (error) {
    await stop()
    throw fileRefusal(error, folderOf(place))
  }
}

function keeperOf(store: Store, place: Place): NoteKeeper {
  return new NoteKeeper(store, { place, env: process.env, say })
}

const say = (sentence: string) => void process.stderr.write(`leasehold: ${sentence}\n`)

function dispatcherOf(store: Store, place: Place, url: () => string | undefined): Dispatcher {
  return new Dispatcher(store, { place, env: process.env, url, say })
}

/** Opens the doors of a store that is ours, and says where they are. */
async function openDoors(
  store: Store,
  place: Place,
  port: number,
  version: string,
  bounds: typeof BOUNDS,
): Promise<{ url: string; close: () => Promise<void> }> {
  const folder = folderOf(place)
  const secret = randomBytes(32).toString('base64url')
  const hub = new EventHub(store)
  const stopping = new AbortController()
  let hosts = new Set<string>()
  const access = new Access(store, secret)
  const know: Doors['know'] = (socket) => strangers.know(socket)
  const doors = { store, hub, access, hosts: () => hosts, version, stopping: stopping.signal, know }
  const app = httpApp({ ...doors, mcp: mcpHandler(store, version, stopping.signal) })
  const server = httpServer(app.fetch, bounds)
  const strangers = new Strangers(server)
  const bound = await listen(server, port)
  hosts = loopbackHosts(bound)
  const url = `http://${HOST}:${bound}`
  const stops: (() => void | Promise<void>)[] = []
  const close = async () => {
    withdraw(folder, process.pid)
    for (const stop of stops) await stop()
    stopping.abort(goingAway())
    hub.close()
    await closeServer(server)
  }
  try {
    await store.follow(FOLLOW_MS)
    stops.push(startSweeper(store), startPruner(store, place))
    announce(folder, { pid: process.pid, url, version }, secret)
    return { url, close }
  } catch (error) {
    // An open port would keep this process from ending, though nobody is served.
    await close()
    throw error
  }
}

function httpServer(fetch: Hono['fetch'], bounds: typeof BOUNDS): Server {
  const options = {
    headersTimeout: bounds.headers_ms,
    requestTimeout: bounds.request_ms,
    // Left to Node, the answer to a request without a host would say nothing.
    requireHostHeader: false,
    // How often Node looks for late clients; left alone, every half minute.
    connectionsCheckingInterval: Math.min(1_000, bounds.headers_ms),
  }
  const server = createServer(options, getRequestListener(fetch, { errorHandler: unreadable }))
  answerBadRequests(server)
  return server
}

/** The waiter's next ask finds another server, or the store; under its request id it goes on. */
function goingAway(): Refusal {
  return new Refusal('unavailable', 'The server is stopping', {
    next: 'Ask again with the same request id.',
    details: { stopping: true },
  })
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE'
      const next = 'Choose another: leasehold serve --port 0 takes any that is free.'
      reject(taken ? new Refusal('unavailable', `Port ${port} is in use`, { next }) : error)
    })
    server.listen(port, HOST, PENDING_MAX, () => resolve((server.address() as AddressInfo).port))
  })
}

/** New connections are refused, open requests are answered, idle connections are closed. */
function closeServer(server: Server): Promise<void> {
  return new Promise((resolve) => {
    const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOK_MS)
    const late = setTimeout(() => server.closeAllConnections(), STOP_MS)
    server.close(() => {
      clearInterval(idle)
      clearTimeout(late)
      resolve()
    })
  })
}
