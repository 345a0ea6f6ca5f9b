import type { ServerResponse } from 'node:http'
import { Refusal } from '../../core/refusal.ts'
import type { Event } from '../../core/event.ts'
import { eventPlace } from '../../stores/writer/event_place.ts'
import type { Store } from '../../stores/writer/store.ts'
import { EventClient, type Frame, frameOf, type See } from './event_client.ts'

/** Of the past so much is sent at once, and so many events: a client may not take it. */
const PAGE_BYTES = 256 * 1024
const PAGE_MAX = 500
const PAGE_FIRST = 8
const PING_MS = 15_000
/** Every listener costs a connection, and about 20 KB here. */
const CLIENTS_MAX = 12_000
/** Clients that are written to in one step; between two steps requests are answered. */
const STEP = 250
const REST_MS = 20

/** Reads past events, when it is this listener's turn. */
export type ReadEvents = (after: number, limit: number) => Promise<Event[]>

/**
 * Sends events to everybody who listens. What happened is turned into bytes once, however many
 * listen; what happens while these are being sent is sent together, next. A client that does not
 * keep up is let go, and costs the others nothing.
 */
export class EventHub {
  private readonly clients = new Set<EventClient>()
  /** The newest event that was heard of. */
  private position = 0
  /** The same for all who listen: when the store is replaced, their streams end. */
  private epoch = 0
  private pending: Event[] = []
  private sending: Promise<void> | undefined
  private pings: NodeJS.Timeout | undefined

  constructor(private readonly store: Store) {
    store.onCommit(
      (events) => this.hear(events),
      () => this.close(),
    )
  }

  get listeners(): number {
    return this.clients.size
  }

  /** Ends all streams: clients come back with their last id, and learn what became of it. */
  close(): void {
    this.position = 0
    this.pending = []
    for (const client of this.clients) client.close()
    clearInterval(this.pings)
    this.pings = undefined
  }

  /**
   * Makes `out` an event stream behind `last`: `<epoch>-<position>`, as the ids of the stream are.
   * Without one, from now on. A client whose place is no longer kept, or is of a store that was
   * replaced, gets a `reset` first and has to look at everything anew.
   */
  async stream(
    last: string | undefined,
    out: ServerResponse,
    { read, see }: { read: ReadEvents; see?: See },
  ): Promise<void> {
    if (this.clients.size >= CLIENTS_MAX) throw tooMany()
    const from = await eventPlace(this.store, last)
    this.epoch = from.epoch
    // It may have gone while its place was looked up.
    if (!out.socket || out.destroyed) return
    const client = new EventClient(out, out.socket, from, (each) => this.clients.delete(each), see)
    this.clients.add(client)
    this.pings ??= setInterval(() => void this.ping(), PING_MS).unref()
    client.begin(from.reset)
    void this.replay(client, read)
  }

  private hear(events: Event[]): void {
    this.position = events.at(-1)!.position
    if (this.clients.size === 0) return
    this.pending.push(...events)
    this.sending ??= this.sendAll().finally(() => (this.sending = undefined))
  }

  /** In steps, and after many steps a rest: what happens meanwhile is sent together. */
  private async sendAll(): Promise<void> {
    while (this.pending.length > 0) {
      const begun_ms = performance.now()
      const frame = frameOf(this.pending.splice(0), this.epoch)
      if (await this.inSteps((client) => sendLive(client, frame))) {
        const rest_ms = Math.min(REST_MS, performance.now() - begun_ms)
        await new Promise<void>((resolve) => void setTimeout(resolve, rest_ms))
      }
    }
  }

  /** True when it took more than one step. */
  private async inSteps(each: (client: EventClient) => void): Promise<boolean> {
    let done = 0
    for (const client of [...this.clients]) {
      each(client)
      done += 1
      if (done % STEP === 0) await new Promise<void>((resolve) => void setImmediate(resolve))
    }
    return done > STEP
  }

  private async ping(): Promise<void> {
    await this.inSteps((client) => client.ping())
    if (this.clients.size > 0) return
    clearInterval(this.pings)
    this.pings = undefined
  }

  /** What happened before it came, as fast as it takes it; then it is live. */
  private async replay(client: EventClient, read: ReadEvents): Promise<void> {
    try {
      for (let page = PAGE_FIRST; page > 0;) {
        await client.room()
        page = await this.sendPage(client, read, page)
      }
    } catch {
      client.close()
    }
  }

  /**
   * Sends one page of the past. Returns how many events the next may have; none if there is no
   * more. On its own, so that nothing of a page stays in memory while its client takes it.
   */
  private async sendPage(client: EventClient, read: ReadEvents, page: number): Promise<number> {
    const events = await read(client.position, page)
    // Pruned since it came: it asks again, and is told to look at everything anew.
    if (events[0] && events[0].position !== client.position + 1) throw new Error('pruned')
    const frame = events.length > 0 ? frameOf(events, client.epoch) : undefined
    if (frame) client.send(frame)
    // What was heard of since is in the store: it is read, or comes with the next frame.
    if (events.length < page && client.position >= this.position) {
      client.isLive = true
      return 0
    }
    const each = (frame?.bytes.length ?? 1) / Math.max(1, events.length)
    return Math.max(1, Math.min(PAGE_MAX, Math.floor(PAGE_BYTES / each)))
  }
}

function sendLive(client: EventClient, frame: Frame): void {
  if (client.isLive) client.send(frame)
}

function tooMany(): Refusal {
  return new Refusal('rate_limited', `${CLIENTS_MAX} clients listen already`, {
    next: 'Try again in a moment, or share one stream.',
  })
}
