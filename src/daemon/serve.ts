import { randomBytes } from 'node:crypto'
import { createAdaptorServer } from '@hono/node-server'
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { httpApp } from '../doors/http/app.ts'
import { EventHub } from '../doors/http/events.ts'
import { loopbackHosts } from '../doors/http/guard.ts'
import { mcpHandler } from '../doors/mcp/http.ts'
import { Access } from '../operations/access.ts'
import { Refusal } from '../core/refusal.ts'
import { grantFullTtl } from '../stores/clock.ts'
import { folderOf, openStore, type Place } from '../stores/open.ts'
import { announce, withdraw } from './files.ts'
import { startPruner } from './pruner.ts'
import { Singleton } from './singleton.ts'
import { startSweeper } from './sweeper.ts'

export const DEFAULT_PORT = 4747
const HOST = '127.0.0.1'
const HEADERS_MS = 10_000
const REQUEST_MS = 30_000
/** How often writes by other processes are looked for: what they free, somebody here may wait for. */
const FOLLOW_MS = 100

export interface Served {
  url: string
  /** Finishes what was accepted, then lets go of everything. */
  stop(): Promise<void>
  /** Resolves with the reason when the daemon has to end by itself. */
  ended: Promise<string>
}

/** The only place that wires all: store, doors, and what runs by itself. */
export async function serve(place: Place, port: number, version: string): Promise<Served> {
  const store = openStore(place)
  const folder = folderOf(place)
  const singleton = new Singleton(store, folder)
  let lose: (why: string) => void = () => undefined
  const ended = new Promise<string>((resolve) => (lose = resolve))
  try {
    await singleton.take(lose)
  } catch (error) {
    await store.close()
    throw error
  }
  await store.write(grantFullTtl)
  const secret = randomBytes(32).toString('base64url')
  const hub = new EventHub(store)
  let hosts = new Set<string>()
  const doors = { store, hub, access: new Access(store, secret), hosts: () => hosts, version }
  const app = httpApp({ ...doors, mcp: mcpHandler(store, version) })
  const server = createAdaptorServer({ fetch: app.fetch }) as Server
  server.headersTimeout = HEADERS_MS
  server.requestTimeout = REQUEST_MS
  const bound = await listen(server, port)
  hosts = loopbackHosts(bound)
  const url = `http://${HOST}:${bound}`
  await store.follow(FOLLOW_MS)
  const unsweep = startSweeper(store)
  const unprune = startPruner(place)
  announce(folder, { pid: process.pid, url, version }, secret)
  const stop = async () => {
    withdraw(folder, process.pid)
    unsweep()
    unprune()
    hub.close()
    await close(server)
    await singleton.release()
    await store.close()
  }
  return { url, stop, ended }
}

function listen(server: Server, port: number): Promise<number> {
  return new Promise((resolve, reject) => {
    server.once('error', (error: NodeJS.ErrnoException) => {
      const taken = error.code === 'EADDRINUSE'
      const next = 'Choose another: leasehold serve --port 0 takes any that is free.'
      reject(taken ? new Refusal('unavailable', `Port ${port} is in use`, { next }) : error)
    })
    server.listen(port, HOST, () => resolve((server.address() as AddressInfo).port))
  })
}

/** New connections are refused, open requests are answered, idle connections are closed. */
function close(server: Server): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeIdleConnections()
  })
}
