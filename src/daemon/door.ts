import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { createServer, type Server } from 'node:http'
import { type AddressInfo, createServer as createBareServer, type Server as Bare } from 'node:net'
import { join } from 'node:path'
import { getRequestListener } from '@hono/node-server'
import type { Hono } from 'hono'
import { isRefusal, Refusal } from '../core/refusal.ts'
import { type Doors, httpApp } from '../doors/http/app.ts'
import { answerBadRequests, unreadable } from '../doors/http/bad_request.ts'
import { EventHub } from '../doors/http/events.ts'
import { loopbackHosts } from '../doors/http/guard.ts'
import { Strangers } from '../doors/http/strangers.ts'
import { mcpHandler } from '../doors/mcp/http.ts'
import { writePrivate } from '../machine/private_file.ts'
import { VERSION } from '../machine/version.ts'
import { Access } from '../operations/access.ts'
import { whoHas } from '../reach/server_file.ts'
import type { Store } from '../stores/writer/store.ts'

const HOST = '127.0.0.1'
const HOST_6 = '::1'
/** Connections that the system keeps for us while we are busy; beyond these it drops some. */
const PENDING_MAX = 4_096
/** How long a client may take to send its headers, and the whole of its request. */
export const BOUNDS = { headers_ms: 10_000, request_ms: 30_000 }
/** A client that does not take its answer is cut off when the server has waited this long. */
const STOP_MS = 3_000
const IDLE_LOOK_MS = 20
/** Any port was asked for, and the one that we got is another's at ::1. */
const TRIES = 20

export interface Door {
  url: string
  /** Answers what was asked, and refuses what is new. */
  close(): Promise<void>
}

export interface DoorAsk {
  /** 0 takes any that is free. Of several, the first that nobody has. */
  port: number | readonly number[]
  version: string
  /** A caller with this secret is an admin. */
  secret: string
  bounds?: typeof BOUNDS
}

/** Opens HTTP and MCP on a store that somebody follows; at loopback only. */
export async function openDoor(store: Store, ask: DoorAsk): Promise<Door> {
  const { port, version, secret, bounds = BOUNDS } = ask
  const hub = new EventHub(store)
  const stopping = new AbortController()
  let hosts = new Set<string>()
  const access = new Access(store, secret)
  const know: Doors['know'] = (socket, budget) => strangers.know(socket, budget)
  const doors = { store, hub, access, hosts: () => hosts, version, stopping: stopping.signal, know }
  const app = httpApp({ ...doors, mcp: mcpHandler(store, version, stopping.signal) })
  const server = httpServer(app.fetch, bounds)
  const strangers = new Strangers(server)
  const servers = await listenOn(server, [port].flat())
  const bound = (server.address() as AddressInfo).port
  hosts = loopbackHosts(bound)
  const close = async () => {
    stopping.abort(goingAway())
    hub.close()
    await closeServers(server, servers)
  }
  return { url: `http://${HOST}:${bound}`, close }
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

async function listenOn(server: Server, [port, ...others]: number[]): Promise<Bare[]> {
  return listenTwice(server, port!).catch((error: unknown) => {
    if (others.length > 0 && isRefusal(error, 'unavailable')) return listenOn(server, others)
    throw error
  })
}

/**
 * Listens at 127.0.0.1 and, where there is IPv6, at the same port of ::1: `localhost` may mean
 * either, and what we do not take there another login can, and be sent what is meant for us.
 */
async function listenTwice(server: Server, port: number): Promise<Bare[]> {
  for (let tries = TRIES; ; tries -= 1) {
    await listen(server, port, HOST)
    const { port: bound } = server.address() as AddressInfo
    const options = { allowHalfOpen: true, noDelay: true }
    const other = createBareServer(options, (socket) => void server.emit('connection', socket))
    other.maxConnections = server.maxConnections
    try {
      await listen(other, bound, HOST_6)
      return [server, other]
    } catch (error) {
      if (!(error instanceof Refusal)) return [server]
      await new Promise((resolve) => void server.close(resolve))
      if (port !== 0 || tries === 0) throw error
    }
  }
}

/** Refuses when the port is taken (`unavailable`), or not for this login to take (`forbidden`). */
function listen(server: Bare, port: number, host: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const fail = (error: NodeJS.ErrnoException) => {
      const where = `${port}${host === HOST ? '' : ` at ${host}`}`
      if (error.code === 'EADDRINUSE') {
        const next = 'Choose another: --port 0 takes any that is free.'
        reject(new Refusal('unavailable', `Port ${where} is in use by ${whoHas(port)}`, { next }))
      } else if (error.code === 'EACCES') {
        const next = 'Choose one from 1024 up, or leave --port out.'
        reject(new Refusal('forbidden', `This login may not listen at port ${where}`, { next }))
      } else reject(error)
    }
    server.once('error', fail)
    server.listen(port, host, PENDING_MAX, () => {
      server.off('error', fail)
      resolve()
    })
  })
}

/** New connections are refused, open requests are answered, idle connections are closed. */
async function closeServers(server: Server, all: Bare[]): Promise<void> {
  const idle = setInterval(() => server.closeIdleConnections(), IDLE_LOOK_MS)
  const late = setTimeout(() => server.closeAllConnections(), STOP_MS)
  await Promise.all(all.map((each) => new Promise((resolve) => void each.close(resolve))))
  clearInterval(idle)
  clearTimeout(late)
}

const PORT_FILE = 'dispatch.json'

export interface AgentDoor extends Door {
  /** The next dispatcher shall open its door here. */
  remember(): void
}

/**
 * The door of a dispatcher that has no daemon beside it: agents come in with the tokens of their
 * runs, exactly as they do at a daemon's, and nobody is told its admin's secret. It is opened where
 * the last one was, if that port is free: agents that outlived that dispatcher find it there again.
 */
export async function openAgentDoor(store: Store, folder: string): Promise<AgentDoor> {
  const secret = randomBytes(32).toString('base64url')
  const door = await openDoor(store, { port: [lastPort(folder), 0], version: VERSION, secret })
  const port = Number(new URL(door.url).port)
  return {
    ...door,
    remember: () => writePrivate(folder, PORT_FILE, `${JSON.stringify({ port })}\n`),
  }
}

/** 0, which takes any, when there was none. */
function lastPort(folder: string): number {
  try {
    const { port } = JSON.parse(readFileSync(join(folder, PORT_FILE), 'utf8')) as { port: unknown }
    return Number.isInteger(port) && Number(port) > 1023 && Number(port) < 65_536 ? Number(port) : 0
  } catch {
    return 0
  }
}
