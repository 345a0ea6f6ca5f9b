import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { Socket } from 'node:net'
import type { SentAsk } from '../stores/port.ts'

/** The lock that makes a process the leader of a store. */
export const WRITER = 'leasehold:writer'

/** More than a greeting takes; and more than any input or answer of ours, however it is escaped. */
const GREETING_MAX = 4_096
const LINE_MAX = 64 * 1024 * 1024
const KEEP_ALIVE_MS = 10_000

/** What the leader says first, and what both then prove: that they read the same row. */
export interface Greeting {
  nonce: string
  proof?: string
  /** Where the one who says this can prove that a process is dead. */
  seat?: string
}

/** From a follower: an ask, one that is given up, or nothing but a sign of life. */
export type FollowerFrame = Partial<SentAsk> & { id?: number; drop?: number }

/**
 * From the leader, about an ask: its answer, or the refusal that it was. `yours`: the leader has
 * neither, and the follower decides under the same request id; with `trouble`, send no more.
 * Without an id: a sign of life, or that the leader is about to be gone.
 */
export interface LeaderFrame {
  id?: number
  answer?: unknown
  refusal?: unknown
  yours?: boolean
  trouble?: boolean
  leaving?: boolean
}

/**
 * Lines of JSON on a socket. What is said in one turn of the event loop leaves in one piece: an ask
 * costs either side 3 to 5 µs, and 19 to 28 by Node's HTTP alone, without the checks of our door
 * (128 asks at once, Node 20). A leader decides thousands of them in a second.
 */
export class Lines<Heard> {
  hear: (frame: Heard) => void = () => undefined
  closed: () => void = () => undefined
  heard_ms = performance.now()
  private line_max = GREETING_MAX
  private out = ''
  private rest = ''

  constructor(private readonly socket: Socket) {
    socket.setNoDelay(true).setKeepAlive(true, KEEP_ALIVE_MS).setEncoding('utf8')
    socket.on('data', (text: string) => this.read(text))
    // What went wrong does not matter: it is closed then.
    socket.on('error', () => undefined)
    socket.once('close', () => this.closed())
  }

  /** The other side has proved who it is, and goes on in other words. */
  greeted<Next>(): Lines<Next> {
    this.line_max = LINE_MAX
    return this as unknown as Lines<Next>
  }

  get isOpen(): boolean {
    return !this.socket.destroyed && this.socket.writable
  }

  say(frame: object): void {
    if (this.out === '') setImmediate(() => this.flush())
    this.out += `${JSON.stringify(frame)}\n`
  }

  /** Says all that is left to be said, then closes. */
  end(): void {
    this.flush()
    this.socket.end()
  }

  cut(): void {
    this.socket.destroy()
  }

  private flush(): void {
    if (this.out !== '' && this.isOpen) this.socket.write(this.out)
    this.out = ''
  }

  private read(text: string): void {
    this.heard_ms = performance.now()
    const lines = text.split('\n')
    lines[0] = this.rest + lines[0]!
    this.rest = lines.pop()!
    if (this.rest.length > this.line_max) this.cut()
    try {
      for (const line of lines) if (!this.socket.destroyed) this.hear(JSON.parse(line) as Heard)
    } catch {
      // Whoever talks like this is none of ours.
      this.cut()
    }
  }
}

export const newSecret = () => randomBytes(32).toString('base64url')

/** What only one who knows the secret can say of these two nonces, in this role. */
export function proofOf(
  secret: string,
  role: 'leader' | 'follower',
  nonces: readonly string[],
): string {
  const mac = createHmac('sha256', secret).update(JSON.stringify([role, ...nonces]))
  return mac.digest('base64url')
}

export function isProof(said: unknown, expected: string): boolean {
  if (typeof said !== 'string' || said.length !== expected.length) return false
  return timingSafeEqual(Buffer.from(said), Buffer.from(expected))
}
