import { Refusal } from '../../core/refusal.ts'
import type { Event } from '../../core/view.ts'
import { eventId, eventPlace } from '../../stores/event_place.ts'
import type { Store } from '../../stores/store.ts'

const PAGE = 500
/** A client that lags behind by more than this is let go; it resumes where it was. */
const BUFFER_MAX = 1024 * 1024
const PING_MS = 15_000
/** Every listener costs a connection and up to a buffer of memory. */
const CLIENTS_MAX = 1_000

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
   * a `reset` first and has to look at everything anew. `cut` ends the connection of a client that
   * takes nothing any more.
   */
  async stream(last: string | undefined, signal: AbortSignal, cut: () => void): Promise<Response> {
    if (this.clients.size >= CLIENTS_MAX) throw tooMany()
    const from = await eventPlace(this.store, last)
    let client: Client | undefined
    const body = new ReadableStream<Uint8Array>(
      {
        start: (controller) => {
          client = new Client(controller, from.epoch, from.position, cut, () => {
            this.clients.delete(client!)
          })
          this.clients.add(client)
          signal.addEventListener('abort', () => client?.close())
          client.begin(from.reset)
          void this.replay(client)
        },
        pull: () => client?.hasTaken(),
        cancel: () => client?.close(),
      },
      { highWaterMark: BUFFER_MAX, size: (chunk) => chunk.byteLength },
    )
    return new Response(body, { headers: { 'content-type': 'text/event-stream' } })
  }

  /** What happened before it came, as fast as it takes it; then it is live. */
  private async replay(client: Client): Promise<void> {
    try {
      for (;;) {
        await client.room()
        client.hold()
        const events = await this.store.events(client.position, PAGE)
        // Pruned since it came: it asks again, and is told to look at everything anew.
        if (events[0] && events[0].position !== client.position + 1) return client.close()
        client.replay(events)
        if (events.length < PAGE) return client.goLive()
      }
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
  private readonly cut: () => void
  private readonly gone: () => void
  private readonly ping: NodeJS.Timeout
  private isLive = false
  /** Live events that wait while a page of the past is read; not kept while nothing is read. */
  private held: Event[] | undefined
  /** Called when the client has taken something. */
  private taken: (() => void) | undefined
  private isStuck = false
  private open = true

  constructor(
    controller: ReadableStreamDefaultController<Uint8Array>,
    epoch: number,
    position: number,
    cut: () => void,
    gone: () => void,
  ) {
    this.controller = controller
    this.epoch = epoch
    this.position = position
    this.cut = cut
    this.gone = gone
    this.ping = setInterval(() => this.check(), PING_MS)
    this.ping.unref()
  }

  /** Says where the stream begins: cut off before the first event, it is resumed from there. */
  begin(reset: boolean): void {
    const id = eventId(this.epoch, this.position)
    this.write(reset ? `event: reset\nid: ${id}\ndata: {}\n\n` : `id: ${id}\n\n`)
  }

  send(events: Event[]): void {
    if (this.isLive) this.replay(events)
    else this.held?.push(...events)
  }

  /** From here on live events are kept; those before are in the page that is read next. */
  hold(): void {
    this.held = []
  }

  replay(events: Event[]): void {
    const fresh = events.filter(({ position }) => position > this.position)
    if (fresh.length === 0) return
    this.position = fresh.at(-1)!.position
    this.write(fresh.map((event) => this.format(event)).join(''))
  }

  goLive(): void {
    this.isLive = true
    this.replay(this.held ?? [])
    this.held = undefined
  }

  /** Resolves when half of the buffer is free; the past is sent no faster than it is taken. */
  async room(): Promise<void> {
    this.held = undefined
    while (this.open && this.free < BUFFER_MAX / 2) {
      await new Promise<void>((resolve) => (this.taken = resolve))
    }
    if (!this.open) throw new Error('closed')
  }

  hasTaken(): void {
    this.isStuck = false
    this.taken?.()
  }

  private get free(): number {
    return this.controller.desiredSize ?? 0
  }

  /** Two looks without a byte taken, and the past still waiting: nobody reads this. */
  private check(): void {
    if (this.isStuck && !this.isLive) this.drop()
    else this.write(': \n\n')
    this.isStuck = true
  }

  private format(event: Event): string {
    const { hash: _, ...shown } = event
    const id = eventId(this.epoch, event.position)
    return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(shown)}\n\n`
  }

  private write(text: string): void {
    if (!this.open) return
    // Bytes that the client has not taken; a stuck one would keep them all in our memory.
    if (this.free <= 0) this.drop()
    else this.controller.enqueue(encoder.encode(text))
  }

  /** A stream that is only closed would first wait until its bytes are taken. */
  private drop(): void {
    this.close()
    this.cut()
  }

  close(): void {
    if (!this.open) return
    this.open = false
    clearInterval(this.ping)
    this.gone()
    this.taken?.()
    try {
      this.controller.close()
    } catch {
      // The other side has closed it already.
    }
  }
}

function tooMany(): Refusal {
  return new Refusal('rate_limited', `${CLIENTS_MAX} clients listen already`, {
    next: 'Try again in a moment, or share one stream.',
  })
}
