import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { connect, type Socket } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface, type Interface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { type Server, startServer, stopServer } from './http.ts'
import { type Goal, printGoals, printTable, progress, whole } from './report.ts'

const LISTENERS = 10_000
const PROCESSES = 4
/** Listeners that connect and then read nothing. */
const STUCK = 20
const EVENTS_PER_SECOND = 5
const SECONDS = 12
const SECONDS_QUICK = 4
const IDLE_SECONDS = 30
const IDLE_SECONDS_QUICK = 5
const LATE_MS_MAX = 500
const MEMORY_MB_MAX = 300
/** New connections per process that are not answered yet. */
const CONNECTING = 50

export interface Sse {
  listeners: number
  delivered: number
  expected: number
  p50_ms: number
  p99_ms: number
  worst_ms: number
  memory_mb: number
  memory_before_mb: number
  processor: number
  idle: Record<string, number>
  goals: Goal[]
}

/** Events to many listeners in processes of their own; and what a daemon costs that is idle. */
export async function measureSse(quick: boolean): Promise<Sse> {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  // More streams than a token of an agent may open.
  const server = await startServer(folder, join(folder, 'leasehold.db'), 'admin')
  const { child, url, secret } = server
  try {
    const idle = await measureIdle(server, quick ? IDLE_SECONDS_QUICK : IDLE_SECONDS)
    const memory_before_mb = memoryOf(child)
    progress(`connecting ${whole(LISTENERS)} listeners`)
    const crowds = await Promise.all(
      Array.from({ length: PROCESSES }, () => startCrowd(server, LISTENERS / PROCESSES)),
    )
    const stuck = Array.from({ length: STUCK }, () => openStream(url, secret).pause())
    for (const socket of stuck) socket.on('error', () => undefined)
    const seconds = quick ? SECONDS_QUICK : SECONDS
    progress(`${EVENTS_PER_SECOND} events per second for ${seconds} s`)
    const begun = processorOf(child)
    const sent = await act(server, seconds)
    const processor = (processorOf(child) - begun) / seconds
    await pause(2_000)
    const found = await Promise.all(crowds.map((crowd) => resultOf(crowd)))
    const memory_mb = memoryOf(child)
    for (const socket of stuck) socket.destroy()
    progress('')
    const all = found.flatMap(({ late_ms }) => late_ms).toSorted((a, b) => a - b)
    const at = (p: number) => all[Math.min(all.length - 1, Math.floor(all.length * p))] ?? NaN
    const measured = { listeners: LISTENERS, delivered: all.length, expected: sent * LISTENERS }
    const times = { p50_ms: at(0.5), p99_ms: at(0.99), worst_ms: at(1) }
    const goals = goalsOf({ ...measured, ...times, memory_mb })
    return { ...measured, ...times, memory_mb, memory_before_mb, processor, idle, goals }
  } finally {
    await stopServer(server)
    rmSync(folder, { recursive: true })
  }
}

function goalsOf(found: Pick<Sse, 'delivered' | 'expected' | 'p99_ms' | 'memory_mb'>): Goal[] {
  const goal = (name: string, value: number, max: number, of: string): Goal => {
    return { name, ratio: value / max, goal: `≤ 1 (${max} ${of})`, met: value <= max }
  }
  const missing = found.expected - found.delivered
  return [
    goal(`events come late by ${found.p99_ms} ms (p99)`, found.p99_ms, LATE_MS_MAX, 'ms'),
    goal(`memory ${whole(found.memory_mb)} MB`, found.memory_mb, MEMORY_MB_MAX, 'MB'),
    { name: 'events not delivered', ratio: missing, goal: '0', met: missing === 0 },
  ]
}

/** Takes and gives back a lock, so often per second. Returns how many events that were. */
async function act({ url, secret }: Server, seconds: number): Promise<number> {
  const until_ms = performance.now() + seconds * 1000
  let sent = 0
  const ask = async (name: string, input: object) => {
    const response = await fetch(new URL(`/v1/${name}`, url), {
      method: 'POST',
      headers: { authorization: `Bearer ${secret}`, 'content-type': 'application/json' },
      body: JSON.stringify(input),
    })
    if (!response.ok) throw new Error(await response.text())
    sent += 1
  }
  while (performance.now() < until_ms) {
    const began_ms = performance.now()
    await ask(sent % 2 === 0 ? 'lock.acquire' : 'lock.release', nameOf(sent))
    const left_ms = 1000 / EVENTS_PER_SECOND - (performance.now() - began_ms)
    if (left_ms > 0) await pause(left_ms)
  }
  return sent
}

const nameOf = (sent: number) => (sent % 2 === 0 ? { names: ['bench'] } : { name: 'bench' })

interface Crowd {
  child: ChildProcess
  lines: Interface
}

async function startCrowd({ url, secret }: Server, listeners: number): Promise<Crowd> {
  const child = spawn(process.execPath, [process.argv[1]!, 'listen', url, String(listeners)], {
    env: { ...process.env, LEASEHOLD_TOKEN: secret },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const lines = createInterface({ input: child.stdout })
  await once(lines, 'line')
  return { child, lines }
}

async function resultOf({ child, lines }: Crowd): Promise<{ late_ms: number[] }> {
  child.stdin?.end()
  const [line] = (await once(lines, 'line')) as [string]
  return JSON.parse(line) as { late_ms: number[] }
}

/**
 * `listen URL COUNT`, with `LEASEHOLD_TOKEN` set: many listeners in one process. Prints `ready`,
 * and when its input ends how late each `lease.` event of the lock `bench` came to each listener.
 */
export async function listen([url, count]: string[]): Promise<void> {
  const late_ms: number[] = []
  const secret = process.env['LEASEHOLD_TOKEN'] ?? ''
  const sockets: Socket[] = []
  for (let i = 0; i < Number(count); i += CONNECTING) {
    const some = Array.from({ length: Math.min(CONNECTING, Number(count) - i) }, () =>
      openStream(url!, secret),
    )
    for (const socket of some) hear(socket, late_ms)
    await Promise.all(some.map((socket) => once(socket, 'begun')))
    sockets.push(...some)
  }
  console.log('ready')
  process.stdin.resume()
  await once(process.stdin, 'end')
  console.log(JSON.stringify({ late_ms }))
  for (const socket of sockets) socket.destroy()
}

function openStream(url: string, secret: string): Socket {
  const { host, hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  socket.write(
    `GET /v1/events HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${secret}\r\n\r\n`,
  )
  return socket
}

/** Tells `begun` when the stream says where it begins. Looks for little: there are many of them. */
function hear(socket: Socket, late_ms: number[]): void {
  let rest = ''
  socket.on('data', (bytes: Buffer) => {
    const now_ms = Date.now()
    const text = rest + bytes.toString('latin1')
    const end = text.lastIndexOf('\n\n')
    rest = text.slice(end < 0 ? 0 : end + 2)
    if (text.startsWith('HTTP/1.1 200') && end > 0) socket.emit('begun')
    for (let at = 0; (at = text.indexOf('"at":"', at)) >= 0 && at < end; at += 1) {
      const lock = text.indexOf('"lock":', at)
      if (!text.startsWith('"lock":"bench"', lock)) continue
      late_ms.push(now_ms - Date.parse(text.slice(at + 6, at + 30)))
    }
  })
}

const HEARTBEATING = 100
const HEARTBEAT_MS = 30_000
const DASHBOARDS = 3

/** The part of a core that a daemon uses when nobody wants anything. */
async function measureIdle(server: Server, seconds: number): Promise<Record<string, number>> {
  const part = async () => {
    const begun = processorOf(server.child)
    await pause(seconds * 1000)
    return (processorOf(server.child) - begun) / seconds
  }
  progress(`idle for ${seconds} s`)
  await pause(2_000)
  const alone = await part()
  const { url, secret } = server
  const streams = Array.from({ length: DASHBOARDS }, () => openStream(url, secret).resume())
  const headers = { authorization: `Bearer ${secret}`, 'content-type': 'application/json' }
  const beats = Array.from({ length: HEARTBEATING }, (_, i) => {
    const agent = `bench/${i}`
    const ask = (name: string, input: object) =>
      fetch(new URL(`/v1/${name}`, url), { method: 'POST', headers, body: JSON.stringify(input) })
    void ask('lock.acquire', { names: [`idle-${i}`], agent, ttl_seconds: 300 })
    const beat = () => void ask('agent.heartbeat', { agent })
    // Agents are not in step with each other.
    return setTimeout(
      () => {
        beat()
        beats.push(setInterval(beat, HEARTBEAT_MS))
      },
      (HEARTBEAT_MS / HEARTBEATING) * i,
    )
  })
  progress(`${DASHBOARDS} listeners and ${HEARTBEATING} heartbeats, for ${seconds} s`)
  await pause(2_000)
  const watched = await part()
  for (const timer of beats) clearTimeout(timer)
  for (const socket of streams) socket.destroy()
  return { alone, watched }
}

/** Megabytes that a process has in memory. */
function memoryOf({ pid }: ChildProcess): number {
  const [, kilobytes] = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))!
  return Number(kilobytes) / 1024
}

/** Seconds of processor time that a process has used. */
function processorOf({ pid }: ChildProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]!.split(' ')
  return (Number(fields[11]) + Number(fields[12])) / 100
}

export function printSse(found: Sse): void {
  const percent = (part: number) => `${(part * 100).toFixed(2)} %`
  console.log(`\nEvents to ${whole(found.listeners)} listeners, ${STUCK} more that read nothing`)
  printTable([
    ['delivered', `${whole(found.delivered)} of ${whole(found.expected)}`],
    ['late by, median', `${found.p50_ms} ms`],
    ['late by, p99', `${found.p99_ms} ms`],
    ['late by, worst', `${found.worst_ms} ms`],
    ['memory of the daemon', `${whole(found.memory_mb)} MB`],
    ['before', `${whole(found.memory_before_mb)} MB`],
    ['of a core', percent(found.processor)],
    ['idle daemon, of a core', percent(found.idle['alone']!)],
    [`with ${DASHBOARDS} listeners and ${HEARTBEATING} agents`, percent(found.idle['watched']!)],
  ])
  printGoals(found.goals)
}
