import type { ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Event } from '../../core/event.ts'
import { eventId } from '../../stores/writer/event_place.ts'

/** A client that lags behind by more than this is let go; it resumes where it was. */
const BUFFER_MAX = 1024 * 1024

const PING = Buffer.from(': \n\n')

/** Events one behind the other, as bytes that any client can be sent. */
export interface Frame {
  first: number
  last: number
  epoch: number
  bytes: Buffer
  events: Event[]
}

export function frameOf(events: Event[], epoch: number): Frame {
  const text = events.map((event) => format(event, epoch)).join('')
  const { position: first } = events[0]!
  return { first, last: events.at(-1)!.position, epoch, bytes: Buffer.from(text), events }
}

function format(event: Event, epoch: number): string {
  const { hash: _, ...shown } = event
  const id = eventId(epoch, event.position)
  return `id: ${id}\nevent: ${event.type}\ndata: ${JSON.stringify(shown)}\n\n`
}

/** Those of some events that a listener may see. */
export type See = (events: Event[]) => Promise<Event[]>

/** One listener, and how far it has come. */
export class EventClient {
  position: number
  isLive = false
  readonly epoch: number
  /** Called when all that waited was taken. */
  private drained: (() => void) | undefined
  /** Bytes it had taken when it was last looked at. */
  private taken = -1
  private open = true
  private readonly see: See | undefined
  /** What is being looked through before it is sent: in order, one after the other. */
  private looking: Promise<void> = Promise.resolve()

  constructor(
    private readonly out: ServerResponse,

    /** Where bytes go once the head is written: what Node would do between costs as much again. */
    private readonly socket: Socket,
    from: { epoch: number; position: number },
    private readonly gone: (client: EventClient) => void,
    see?: See,
  ) {
    this.epoch = from.epoch
    this.position = from.position
    this.see = see
    out.on('close', () => this.leave())
    socket.on('drain', () => this.drained?.())
  }

  /**
   * Says where the stream begins: cut off before the first event, it is resumed from there. The
   * body ends with the connection, so that bytes are the same for everybody: chunks are not.
   */
  begin(reset: boolean): void {
    this.out.useChunkedEncodingByDefault = false
    this.out.writeHead(200, { 'content-type': 'text/event-stream' }).flushHeaders()
    const id = eventId(this.epoch, this.position)
    this.write(Buffer.from(reset ? `event: reset\nid: ${id}\ndata: {}\n\n` : `id: ${id}\n\n`))
  }

  /** What of `frame` it does not have yet; most have none of it. */
  send(frame: Frame): void {
    if (frame.last <= this.position) return
    const isNew = frame.first > this.position
    const rest = isNew ? undefined : frame.events.filter((event) => event.position > this.position)
    this.position = frame.last
    if (this.see) this.sendSeen(rest ?? frame.events, frame.epoch, this.see)
    else this.write(rest ? frameOf(rest, frame.epoch).bytes : frame.bytes)
  }

  /** A listener that may not see all events gets those that it may see. */
  private sendSeen(events: Event[], epoch: number, see: See): void {
    this.looking = this.looking
      .then(() => see(events))
      .then((seen) => {
        if (seen.length > 0) this.write(frameOf(seen, epoch).bytes)
      })
      // What cannot be checked is not told: it comes back and resumes where it was.
      .catch(() => this.drop())
  }

  /** Resolves when the buffer is empty; the past is sent no faster than it is taken. */
  async room(): Promise<void> {
    while (this.open && this.socket.writableNeedDrain) {
      await new Promise<void>((resolve) => (this.drained = resolve))
    }
    if (!this.open) throw new Error('closed')
  }

  /** Two looks without a byte taken, and the past still waiting: nobody reads this. */
  ping(): void {
    const taken = this.socket.bytesWritten - this.socket.writableLength
    if (!this.isLive && this.socket.writableNeedDrain && taken === this.taken) this.drop()
    else this.write(PING)
    this.taken = taken
  }

  /** Its stream ends when it has taken what was sent. */
  close(): void {
    this.leave()
    this.out.end()
  }

  private write(bytes: Buffer): void {
    if (!this.open) return
    // Bytes that the client has not taken; a stuck one would keep them all in our memory.
    if (this.socket.writableLength > BUFFER_MAX) this.drop()
    else this.socket.write(bytes)
  }

  /** A stream that is only ended would first wait until its bytes are taken. */
  private drop(): void {
    this.leave()
    this.out.destroy()
  }

  private leave(): void {
    if (!this.open) return
    this.open = false
    this.gone(this)
    this.drained?.()
  }
}
