import { Agent, type IncomingMessage, request as send } from 'node:http'
import type { Caller } from '../core/caller.ts'
import { type Details, Refusal, type RefusalCode } from '../core/refusal.ts'
import { bearer, headerJson, headerText } from '../stores/header_text.ts'
import { ownProcess } from '../stores/process.ts'
import type { Daemon } from '../stores/server_file.ts'
import { toldBy } from './sse.ts'
import { type Question, type Told, type Transport, Unanswered, type Who } from './transport.ts'

/** The server says something every 15 s: one that is silent for longer than this is gone. */
const SILENT_MS = 45_000

interface Sent {
  method: 'GET' | 'POST'
  path: string
  body?: string
  headers: Record<string, string>
  signal: AbortSignal | undefined
}

/** Through a server, over connections that are kept open. */
export class HttpTransport implements Transport {
  readonly isLocal: boolean
  readonly place: string
  private server: Daemon
  private readonly find: () => Daemon | undefined
  private readonly under: Caller['under']
  private readonly connections = new Agent({ keepAlive: true })

  /** `find` looks where the server is now: a new one has another secret, maybe another port. */
  constructor(server: Daemon, find: () => Daemon | undefined, under: Caller['under']) {
    this.server = server
    this.find = find
    this.under = under
    this.isLocal = server.isOurs
    this.place = server.url
  }

  async ask({ operation, input, who, signal }: Question): Promise<unknown> {
    const { agent } = who
    const response = await this.send({
      method: 'POST',
      path: `/v1/${operation.name}`,
      body: JSON.stringify(agent === undefined ? input : { ...input, agent }),
      headers: { 'content-type': 'application/json', ...this.callerHeader(who) },
      signal,
    })
    const reply = parsed(await textOf(response))
    if (response.statusCode === 200) return reply
    throw refusalIn(reply, response.statusCode)
  }

  async *stream(after: string | undefined, _: Who, signal: AbortSignal): AsyncGenerator<Told> {
    const response = await this.send({
      method: 'GET',
      path: '/v1/events',
      headers: {
        accept: 'text/event-stream',
        ...(after !== undefined && { 'last-event-id': headerText(after) }),
      },
      signal,
    })
    if (response.statusCode !== 200) {
      throw refusalIn(parsed(await textOf(response)), response.statusCode)
    }
    response.setTimeout(SILENT_MS, () => response.destroy(new Error('the server fell silent')))
    try {
      yield* toldBy(response.setEncoding('utf8'))
    } catch (error) {
      throw new Unanswered((error as Error).message)
    } finally {
      response.destroy()
    }
  }

  close(): Promise<void> {
    this.connections.destroy()
    return Promise.resolve()
  }

  /** What only this login's own programs may say of themselves. */
  private callerHeader({ given, admin }: Who): Record<string, string> {
    if (!this.isLocal) return {}
    const said = { given, process: ownProcess(), under: this.under, admin }
    return { 'leasehold-caller': headerJson(said) }
  }

  private async send(sent: Sent): Promise<IncomingMessage> {
    const { server } = this
    try {
      const response = await this.post(server, sent)
      if (response.statusCode !== 401 || !this.isReplaced(server)) return response
      response.resume()
    } catch (error) {
      this.isReplaced(server)
      throw error
    }
    throw new Unanswered('the server was replaced by another')
  }

  /** Looks again where the server is. True when it is another one than was asked. */
  private isReplaced(asked: Daemon): boolean {
    const found = this.find()
    if (!found || found.isOurs !== this.isLocal) return false
    this.server = found
    return found.secret !== asked.secret || found.url !== asked.url
  }

  private post(server: Daemon, sent: Sent): Promise<IncomingMessage> {
    const { method, path, body = '', signal } = sent
    const headers: Record<string, string | number> = {
      authorization: bearer(server.secret),
      ...sent.headers,
    }
    if (method === 'POST') headers['content-length'] = Buffer.byteLength(body)
    return new Promise((resolve, reject) => {
      const options = { method, headers, agent: this.connections, ...(signal && { signal }) }
      const request = send(new URL(path, server.url), options, resolve)
      request.on('error', (error) => reject(new Unanswered(error.message)))
      request.end(body)
    })
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  try {
    let text = ''
    for await (const part of response.setEncoding('utf8')) text += String(part)
    return text
  } catch (error) {
    throw new Unanswered((error as Error).message)
  }
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw new Unanswered('the server did not answer with JSON')
  }
}

function refusalIn(reply: unknown, status: number | undefined): Refusal {
  const { error } = reply as {
    error?: { code: RefusalCode; message: string; next: string; details: Details }
  }
  if (!error) return new Refusal('unavailable', `The server answered ${status}`)
  return new Refusal(error.code, error.message, { next: error.next, details: error.details })
}
