import type { Event } from '../../core/view.ts'
import type { Store } from '../../stores/store.ts'

const PAGE = 500
/** A client that lags behind by more than this is let go; it resumes where it was. */
const BUFFER_MAX = 1024 * 1024
const PING_MS = 15_000

const encoder = new TextEncoder()

/**
 * Sends events to everybody who listens. A client that does not keep up is let go, and costs the
 * others nothing.
 */
export class EventHub {
  private readonly store: Store
  private readonly clients = new Set<Client>()

  constructor(store: Store) {
    this.store = store
    store.onCommit(
      (events) => {
        for (const client of this.clients) client.send(events)
      },
      () => this.close(),
    )
  }

  /** Ends all streams: clients come back with their last id, and learn what became of it. */
  close(): void {
    for (const client of this.clients) client.close()
  }

  /**
   * An event stream behind `last`: `<epoch>-<position>`, as the ids of the stream are. Without one,
   * from now on. A client whose place is no longer kept, or is of a store that was replaced, gets
   * a `reset` first and has to look at everything anew.
   */
  async stream(last: string | undefined, signal: AbortSignal): Promise<Response> {
    const head = await this.store.head()
    const [oldest] = await this.store.events(0, 1)
    const from = placeOf(last, head, (oldest?.position ?? 1) - 1)
    let client: Client | undefined
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          client = new Client(controller, head.epoch, from.position, () => {
            this.clients.delete(client!)
          })
          this.clients.add(client)
          signal.addEventListener('abort', () => client?.close())
          if (from.reset) client.reset()
          void this.replay(client)
        },
        cancel: () => client?.close(),
      },
      { highWaterMark: BUFFER_MAX, size: (chunk) => chunk.byteLength },
    )
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }

  /** What happened before it came; what happens meanwhile waits until it is its turn. */
  private async replay(client: Client): Promise<void> {
    try {
      for (;;) {
        const events = await this.store.events(client.position, PAGE)
        client.replay(events)
        if (events.length < PAGE) break
      }
      client.goLive()
    } catch {
      client.close()
    }
  }
}

/** One listener, and how far it has come. */
class Client {
  position: number
  private readonly controller: ReadableStreamDefaultController<Uint8Array>
  private readonly epoch: number
  private readonly gone: () => void
  private readonly ping: NodeJS.Timeout
  /** Live events that wait until the past was sent; undefined once it was. */
  private held: Event[] | undefined = []
  private open = true

  constructor(
    controller: ReadableStreamDefaultController<Uint8Array>,
    epoch: number,
    position: number,
    gone: () => void,
  ) {
    this.controller = controller
    this.epoch = epoch
    this.position = position
    this.gone = gone
    this.ping = setInterval(() => this.write(': \n\n'), PING_MS)
    this.ping.unref()
    this.write(': \n\n')
  }

  reset(): void {
    this.write(`event: reset\nid: ${this.epoch}-${this.position}\ndata: {}\n\n`)
  }

  send(events: Event[]): void {
    if (this.held) this.held.push(...events)
    else this.replay(events)
  }

  replay(events: Event[]): void {
    const fresh = events.filter(({ position }) => position > this.position)
    if (fresh.length === 0) return
    this.position = fresh.at(-1)!.position
    this.write(fresh.map((event) => this.format(event)).join(''))
  }

  goLive(): void {
    const held = this.held ?? []
    this.held = undefined
    this.replay(held)
  }

  private format(event: Event): string {
    const { hash: _, ...shown } = event
    const id = `${this.epoch}-${event.position}`
    return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(shown)}\n\n`
  }

  private write(text: string): void {
    if (!this.open) return
    // Bytes that the client has not taken; a stuck one would keep them all in our memory.
    if ((this.controller.desiredSize ?? 0) <= 0) this.close()
    else this.controller.enqueue(encoder.encode(text))
  }

  close(): void {
    if (!this.open) return
    this.open = false
    clearInterval(this.ping)
    this.gone()
    try {
      this.controller.close()
    } catch {
      // The other side has closed it already.
    }
  }
}

function placeOf(
  last: string | undefined,
  head: { epoch: number; position: number },
  oldest: number,
): { position: number; reset: boolean } {
  if (last === undefined) return { position: head.position, reset: false }
  const [, epoch, text] = /^(\d+)-(\d+)$/.exec(last) ?? []
  const position = Number(text)
  const known = Number(epoch) === head.epoch && position >= oldest && position <= head.position
  return known ? { position, reset: false } : { position: head.position, reset: true }
}
