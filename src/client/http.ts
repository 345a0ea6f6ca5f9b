import { Agent, type IncomingMessage, request as send } from 'node:http'
import type { Caller } from '../core/caller.ts'
import { bearer, headerJson, headerText } from '../reach/header_text.ts'
import { ownProcess } from '../machine/process.ts'
import type { Daemon } from '../reach/server_file.ts'
import { refuseStopped, Unanswered, watchSilence } from '../reach/silence.ts'
import { answerOf } from '../reach/wire.ts'
import { toldBy } from './sse.ts'
import type { Question, Told, Transport, Who } from './transport.ts'

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
  private readonly openStore: (() => Promise<Transport>) | undefined
  private direct: Promise<Transport> | undefined
  private readonly connections = new Agent({ keepAlive: true })

  /**
   * `find` looks where the server is now: a new one has another secret, maybe another port.
   * `openStore` opens the store that it serves, where this login may.
   */
  constructor(
    server: Daemon,
    find: () => Daemon | undefined,
    under: Caller['under'],
    openStore?: () => Promise<Transport>,
  ) {
    this.openStore = openStore
    this.server = server
    this.find = find
    this.under = under
    this.isLocal = server.isOurs
    this.place = server.url
  }

  /** What nobody answers is asked of the store itself, where that is ours: under the same id. */
  async ask(question: Question): Promise<unknown> {
    try {
      return await this.askServer(question)
    } catch (error) {
      if (!(error instanceof Unanswered) || !this.openStore) throw error
      question.signal?.throwIfAborted()
      this.direct ??= this.openStore()
      return (await this.direct).ask(question)
    }
  }

  private async askServer({ operation, input, who, signal }: Question): Promise<unknown> {
    const { agent } = who
    const late = new AbortController()
    const watched = { daemon: this.server, operation: operation.name, input }
    const heard = watchSilence(watched, (why) => late.abort(why))
    const given = signal ? AbortSignal.any([signal, late.signal]) : late.signal
    try {
      return await this.exchange({
        method: 'POST',
        path: `/v1/${operation.name}`,
        body: JSON.stringify(agent === undefined ? input : { ...input, agent }),
        headers: { 'content-type': 'application/json', ...this.callerHeader(who) },
        signal: given,
      })
    } catch (error) {
      throw late.signal.aborted ? late.signal.reason : error
    } finally {
      heard()
    }
  }

  private async exchange(sent: Sent): Promise<unknown> {
    const response = await this.send(sent)
    return answerOf(response.statusCode ?? 0, await textOf(response))
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
      answerOf(response.statusCode ?? 0, await textOf(response))
      throw new Unanswered(`the server answered ${response.statusCode}`)
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

  async close(): Promise<void> {
    this.connections.destroy()
    await (await this.direct)?.close()
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

  private async post(server: Daemon, sent: Sent): Promise<IncomingMessage> {
    refuseStopped(server)
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
