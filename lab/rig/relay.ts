import { connect, createServer, type Server, type Socket } from 'node:net'

/** How a relay treats what passes: as it is, cut when a request is through, or not at all. */
export type Mood = 'pass' | 'cut' | 'silent'

/**
 * Stands between a client and a daemon, or a daemon and its database, and loses what it is told to
 * lose: an answer after the request was passed on, or everything, with nobody told.
 */
export class Relay {
  mood: Mood = 'pass'
  /** Called when bytes of a client have been passed on. */
  onRequest: (() => void) | undefined
  port = 0
  lost = 0
  private readonly server: Server
  private readonly pairs = new Set<[Socket, Socket]>()

  constructor(private readonly to: () => number) {
    this.server = createServer((near) => this.join(near))
  }

  listen(): Promise<number> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(0, '127.0.0.1', () => {
        this.port = (this.server.address() as { port: number }).port
        resolve(this.port)
      })
    })
  }

  private join(near: Socket): void {
    const far = connect(this.to(), '127.0.0.1')
    const pair: [Socket, Socket] = [near, far]
    this.pairs.add(pair)
    for (const each of pair) {
      each.setNoDelay(true)
      each.on('error', () => this.part(pair))
      each.on('close', () => this.part(pair))
    }
    near.on('data', (bytes) => {
      if (this.mood === 'silent') return
      far.write(this.forHost(bytes))
      this.onRequest?.()
    })
    far.on('data', (bytes) => {
      if (this.mood === 'pass') near.write(bytes)
      else if (this.mood === 'cut') {
        this.lost += 1
        this.part(pair)
      }
    })
  }

  /** A server answers only to its own address, and a port of it has as many digits as ours. */
  private forHost(bytes: Buffer): Buffer {
    const text = bytes.toString('latin1')
    const host = `host: 127.0.0.1:${this.port}`
    const at = text.toLowerCase().indexOf(host)
    if (at < 0) return bytes
    const said = `host: 127.0.0.1:${this.to()}`
    return Buffer.from(text.slice(0, at) + said + text.slice(at + host.length), 'latin1')
  }

  private part(pair: [Socket, Socket]): void {
    this.pairs.delete(pair)
    for (const each of pair) each.destroy()
  }

  /** Ends all connections: after silence, what was swallowed in between cannot be made good. */
  reset(): void {
    for (const pair of this.pairs) this.part(pair)
  }

  close(): void {
    this.server.close()
    this.reset()
  }
}
