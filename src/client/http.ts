import type { Agent, IncomingMessage } from 'node:http'
import { isRefusal } from '../core/refusal.ts'
import { Unanswered } from '../reach/ask.ts'
import { bearer, headerText } from '../reach/header_text.ts'
import { answerOf, askHttp, requestTo, responseTo, textOf } from '../reach/http.ts'
import { Reach } from '../reach/reach.ts'
import type { Daemon } from '../reach/server_file.ts'
import { httpFor } from '../reach/silence.ts'
import { toldBy } from './sse.ts'
import type { Question, Told, Transport } from './transport.ts'

/** The server says something every 15 s: one that is silent for longer than this is gone. */
const SILENT_MS = 45_000

/** Through a server, over connections that are kept open; else in the store, where it is ours. */
export class HttpTransport implements Transport {
  readonly isLocal: boolean
  readonly place: string
  private readonly reach: Reach<Question>
  private readonly connections: Agent

  /**
   * `find` looks where the server is now: a new one has another secret, maybe another port.
   * `open` opens the store that it serves, for a server that is ours.
   */
  constructor(
    private server: Daemon,
    private readonly find: () => Daemon | undefined,
    open?: () => Promise<Transport>,
  ) {
    this.isLocal = server.isOurs
    this.place = server.url
    this.connections = new (httpFor(server).Agent)({ keepAlive: true })
    this.reach = new Reach({
      find: () => this.server,
      send: (asked, question) =>
        this.lookingAgain(asked, () => askHttp(asked, question, this.connections)),
      open: open!,
    })
  }

  ask(question: Question): Promise<unknown> {
    return this.reach.ask(question)
  }

  async *stream(after: string | undefined, signal: AbortSignal): AsyncGenerator<Told> {
    const { server } = this
    const response = await this.lookingAgain(server, () => this.listen(server, after, signal))
    response.setTimeout(SILENT_MS, () => response.destroy(new Error('the server fell silent')))
    try {
      yield* toldBy(response.setEncoding('utf8'))
    } catch (error) {
      throw new Unanswered((error as Error).message)
    } finally {
      response.destroy()
    }
  }

  private async listen(
    server: Daemon,
    after: string | undefined,
    signal: AbortSignal,
  ): Promise<IncomingMessage> {
    const headers = {
      authorization: bearer(server.secret),
      accept: 'text/event-stream',
      ...(after !== undefined && { 'last-event-id': headerText(after) }),
    }
    const { connections } = this
    const sent = { method: 'GET', path: '/v1/events', headers, signal, connections } as const
    const response = await responseTo(requestTo(server, sent))
    if (response.statusCode === 200) return response
    answerOf(response.statusCode ?? 0, await textOf(response))
    throw new Unanswered(`the server answered ${response.statusCode}`)
  }

  async close(): Promise<void> {
    this.connections.destroy()
    await this.reach.close()
  }

  /** When a server is gone or does not know us, there may be another one in its place. */
  private async lookingAgain<T>(asked: Daemon, ask: () => Promise<T>): Promise<T> {
    try {
      return await ask()
    } catch (error) {
      const isStrange = isRefusal(error, 'unauthorized')
      const isReplaced = (isStrange || error instanceof Unanswered) && this.isReplaced(asked)
      throw isStrange && isReplaced ? new Unanswered('the server was replaced by another') : error
    }
  }

  /** Looks again where the server is. True when it is another one than was asked. */
  private isReplaced(asked: Daemon): boolean {
    const found = this.find()
    if (!found || found.isOurs !== this.isLocal) return false
    this.server = found
    return found.secret !== asked.secret || found.url !== asked.url
  }
}
