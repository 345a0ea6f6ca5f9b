import type { Socket } from 'node:net'
import { once } from 'node:events'
import { type Json, jsonOf } from './serving.ts'

/** One answer as it came over the wire. */
interface RawReply {
  status: number
  json: Json
}

/** A connection that speaks bytes, to say what no HTTP client would. */
export class Raw {
  received = ''
  private readonly over: Promise<unknown>

  constructor(readonly socket: Socket) {
    socket.setEncoding('utf8')
    socket.on('data', (text: string) => (this.received += text))
    // The server may cut us off in the middle of a write: that is an answer too.
    socket.on('error', () => undefined)
    this.over = once(socket, 'close').catch(() => undefined)
  }

  write(...lines: string[]): this {
    this.socket.write(lines.join('\r\n'))
    return this
  }

  /** Writes all of it, however slowly it is taken; false when the other side has gone. */
  async writeAll(text: string, times: number): Promise<boolean> {
    for (let i = 0; i < times; i += 1) {
      if (this.socket.destroyed) return false
      if (!this.socket.write(text)) {
        const goesOn = await new Promise<boolean>((resolve) => {
          this.socket.once('close', () => resolve(false))
          this.socket.once('drain', () => resolve(true))
        })
        if (!goesOn) return false
      }
    }
    return true
  }

  /** Everything until the server has closed the connection. */
  async closed(): Promise<RawReply[]> {
    await this.over
    return this.replies
  }

  get replies(): RawReply[] {
    return this.received
      .split(/(?=HTTP\/1\.[01] \d{3} )/)
      .filter(Boolean)
      .map((text) => {
        const body = text.slice(text.indexOf('\r\n\r\n') + 4)
        return { status: Number(text.slice(9, 12)), json: jsonOf(body) }
      })
  }
}
