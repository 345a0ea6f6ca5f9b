import { readFileSync, renameSync } from 'node:fs'
import { request as httpRequest } from 'node:http'
import { connect, type Socket } from 'node:net'
import { join } from 'node:path'
import { expect, onTestFinished } from 'vitest'
import { expectAnswer } from './answer_check.ts'
import { sha256, uniqueId } from '../../src/machine/digest.ts'
import { isAlive, type Running, sandbox, type Sandbox, until } from '../support/processes.ts'

// oxlint-disable-next-line typescript/no-explicit-any -- what a server answers has any shape
export type Json = any

/** What came back over HTTP. */
export interface Reply {
  status: number
  headers: Record<string, string | string[] | undefined>
  text: string
  /** The body as JSON; undefined when it is none. */
  json: Json
}

export interface Sending {
  method?: string
  headers?: Record<string, string | undefined>
  body?: string | Buffer
  token?: string | undefined
  signal?: AbortSignal
}

/** One request, with exactly these headers: fetch would not let a test lie about Host. */
export function send(url: string, path: string, sending: Sending = {}): Promise<Reply> {
  const { method = 'GET', headers = {}, body, token, signal } = sending
  const { hostname, port } = new URL(url)
  const all = {
    ...(token !== undefined && { authorization: `Bearer ${token}` }),
    ...(body !== undefined && { 'content-length': String(Buffer.byteLength(body)) }),
    ...Object.fromEntries(Object.entries(headers).filter(([, value]) => value !== undefined)),
  } as Record<string, string>
  return new Promise((resolve, reject) => {
    // A connection of its own: none of a server that was killed is found in a pool.
    const options = { hostname, port, path, method, headers: all, agent: false, signal }
    const asked = httpRequest(options as never, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('error', reject)
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString('utf8')
        const { statusCode = 0 } = response
        resolve({ status: statusCode, headers: response.headers, text, json: jsonOf(text) })
      })
    })
    asked.on('error', reject)
    asked.end(body)
  })
}

export function jsonOf(text: string): Json {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A daemon that runs as a process of its own, and the state folder it serves. */
export class Served {
  constructor(
    readonly place: Sandbox,
    readonly running: Running,
    readonly url: string,
    readonly secret: string,
  ) {}

  get port(): number {
    return Number(new URL(this.url).port)
  }

  /** Calls an operation as the admin of this daemon, unless another token is given. */
  post(name: string, input: object = {}, sending: Sending = {}): Promise<Reply> {
    return send(this.url, `/v1/${name}`, {
      token: this.secret,
      method: 'POST',
      body: JSON.stringify(input),
      ...sending,
      headers: { 'content-type': 'application/json', ...sending.headers },
    })
  }

  /** The same, expecting success and what the operation's schema says. */
  async ok(name: string, input: object = {}, sending: Sending = {}): Promise<Json> {
    const { status, json } = await this.post(name, input, sending)
    expect({ status, error: json?.error }, name).toEqual({ status: 200, error: undefined })
    expectAnswer(name, json)
    return json
  }

  /** Makes a token without starting a command for it, and returns its secret. */
  async token(role: string, more: object = {}): Promise<string> {
    const secret = `lh_${uniqueId()}`
    await this.ok('token.create', { secret_hash: sha256(secret), role, ...more })
    return secret
  }

  agentToken(agent: string, more: object = {}): Promise<string> {
    return this.token('agent', { for_agent: agent, ...more })
  }

  socket(): Socket {
    return connect(this.port, '127.0.0.1')
  }

  /** Kills it outright, and waits until it is gone. */
  async kill(): Promise<void> {
    this.running.kill('SIGKILL')
    await this.running.ended
  }

  /** Asks it to stop, and waits until it has. */
  async stop(): Promise<{ code: number | null; ms: number }> {
    const begun = performance.now()
    this.running.kill('SIGTERM')
    const { code } = await this.running.ended
    return { code, ms: performance.now() - begun }
  }
}

export interface Serving {
  program?: string[]
  env?: Record<string, string | undefined>
  flags?: string[]
}

/**
 * Starts a daemon on any free port and waits until it serves. Whoever starts it ends it: with
 * `stop`, `kill`, or by `finish` at the end of the test.
 */
export async function startDaemon(place: Sandbox, serving: Serving = {}): Promise<Served> {
  const flags = serving.flags ?? ['--port', '0']
  const options = { ...(serving.program && { program: serving.program }), env: serving.env ?? {} }
  const running = place.start(['--json', 'serve', ...flags], options)
  const [, line] = await running.said(/^(\{.*\})$/m)
  const { url } = JSON.parse(line!) as { url: string }
  const secret = readFileSync(join(place.state, 'admin.token'), 'utf8').trim()
  return new Served(place, running, url, secret)
}

/**
 * Starts a daemon, and measures until it serves. What it stood in line for a processor is left out:
 * that says how busy the machine is, and nothing about us.
 */
export async function startedInTime(place: Sandbox, serving: Serving = {}) {
  const begun = performance.now()
  const daemon = await startDaemon(place, serving)
  await until('it serves', async () => (await send(daemon.url, '/readyz')).status === 200)
  const ms = performance.now() - begun
  return { daemon, ms: ms - waitedFor(daemon.running.pid) }
}

/** How long a process could have run and did not get to, as the kernel counts. */
export function waitedFor(pid: number): number {
  const [, waited_ns] = readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')
  return Number(waited_ns) / 1e6
}

/** Ends whatever daemon serves this place, so that nothing is left of the test. */
export async function finish(place: Sandbox): Promise<void> {
  for (const pid of place.left()) {
    process.kill(pid, 'SIGKILL')
    await until(`${pid} ends`, () => !isAlive(pid))
  }
}

/** A sandbox for the test that runs now; daemons that were started in it end with it. */
export function servingPlace(place: Sandbox = sandbox()): Sandbox {
  onTestFinished(() => finish(place))
  return place
}

/** Runs `work` while nobody finds the daemon of this place: commands then use the store itself. */
export async function unseen<T>(place: Sandbox, work: () => Promise<T>): Promise<T> {
  const file = join(place.state, 'server.json')
  renameSync(file, `${file}.away`)
  return work().finally(() => renameSync(`${file}.away`, file))
}
