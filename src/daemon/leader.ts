import { createServer, type Server, type Socket } from 'node:net'
import { isRefusal, Refusal } from '../core/refusal.ts'
import type { GroupRef } from '../core/rows.ts'
import type { View } from '../core/view.ts'
import { decideSent } from '../operations/call.ts'
import type { Operation } from '../operations/operation.ts'
import {
  type FollowerFrame,
  type Greeting,
  isProof,
  type LeaderFrame,
  Lines,
  newSecret,
  proofOf,
} from '../reach/leader_wire.ts'
import type { SentAsk } from '../stores/port.ts'
import type { Store } from '../stores/writer/store.ts'

const FOLLOWERS_MAX = 1_000
const GREET_MS = 1_000
const TICK_MS = 250
/** How long followers may take to part from us: as long as an ask may take. */
const LEAVE_MS = 5_000
/**
 * A follower that said nothing for so long, though it waits for answers, may have given us up; and
 * if it is we who were stopped, all may have. Less than a follower waits.
 */
const GONE_MS = 1_200

/** What an answer takes to a follower, and its next ask back, on a busy machine. */
const LINGER_MS = 6

/** Thrown where an ask has to be decided by the process that sent it. */
class Yours extends Error {}

/** Takes asks of other processes, and decides them with our own. */
export class LeaderDoor {
  /** New with every term: who knows it has read the store since. */
  readonly secret = newSecret()
  private readonly followers = new Set<Follower>()
  private readonly server: Server
  private readonly timer: NodeJS.Timeout
  private tick_ms = performance.now()

  constructor(
    private readonly store: Store,
    private readonly operationOf: (name: string) => Operation | undefined,
  ) {
    this.server = createServer((socket) => this.greet(socket))
    this.server.maxConnections = FOLLOWERS_MAX
    this.timer = setInterval(() => this.tick(), TICK_MS).unref()
  }

  /** Resolves with the address at which others find us. */
  listen(at: { host: string; port: number }): Promise<string> {
    return new Promise((resolve, reject) => {
      this.server.once('error', reject)
      this.server.listen(at, () => {
        const { port } = this.server.address() as { port: number }
        resolve(`${at.host.includes(':') ? `[${at.host}]` : at.host}:${port}`)
      })
    })
  }

  /** Asks that are under way are answered first: a follower closes when it waits for nothing. */
  async close(): Promise<void> {
    const closed = new Promise((resolve) => void this.server.close(resolve))
    for (const follower of this.followers) follower.leave()
    const late = setTimeout(() => this.cutAll(), LEAVE_MS)
    await closed
    clearTimeout(late)
    clearInterval(this.timer)
  }

  private cutAll(): void {
    for (const follower of this.followers) follower.cut()
  }

  /** Whether this process ran all the time: what it has not decided yet, it may decide. */
  private get isAwake(): boolean {
    return performance.now() - this.tick_ms < GONE_MS
  }

  /**
   * After a time in which we were stopped, asks that came before or meanwhile may have been decided
   * elsewhere: they are not touched.
   */
  private tick(): void {
    if (!this.isAwake) this.cutAll()
    this.tick_ms = performance.now()
  }

  private greet(socket: Socket): void {
    const lines = new Lines<Greeting>(socket)
    const late = setTimeout(() => lines.cut(), GREET_MS)
    const nonce = newSecret()
    lines.closed = () => clearTimeout(late)
    lines.hear = (greeting) => {
      const nonces = [nonce, greeting.nonce]
      if (!isProof(greeting.proof, proofOf(this.secret, 'follower', nonces))) return lines.cut()
      // One that cannot read the database is of no use to anybody.
      const welcome = () => {
        clearTimeout(late)
        lines.say({ proof: proofOf(this.secret, 'leader', nonces) })
        this.admit(lines.greeted(), String(greeting.seat))
      }
      this.store.head().then(welcome, () => lines.cut())
    }
    lines.say({ nonce })
  }

  private admit(lines: Lines<FollowerFrame>, seat: string): void {
    const decide = (asked: SentAsk, isHere: () => boolean) => {
      const operation = this.operationOf(asked.operation)
      if (!operation) throw new Yours()
      const guard = (view: View) => {
        if (!this.isAwake || !isHere()) throw new Yours()
        if (seat !== this.store.machine.seat) leaveFacts(view, seat)
      }
      return decideSent(this.store, operation, asked, guard)
    }
    const follower = new Follower(lines, decide, () => {
      this.followers.delete(follower)
      if (this.followers.size === 0) this.store.gathering.linger_ms = 0
    })
    this.followers.add(follower)
    this.store.gathering.linger_ms = LINGER_MS
  }
}

type Decide = (asked: SentAsk, isHere: () => boolean) => Promise<unknown>

/** A process that sends us its asks. */
class Follower {
  private readonly under = new Set<number>()

  constructor(
    private readonly lines: Lines<FollowerFrame>,
    private readonly decide: Decide,
    gone: () => void,
  ) {
    lines.hear = (frame) => this.hear(frame)
    lines.closed = gone
  }

  /** Others of its asks may be under way to us: it is for the follower to close. */
  leave(): void {
    this.say({ leaving: true })
  }

  cut(): void {
    this.lines.cut()
  }

  private say(frame: LeaderFrame): void {
    this.lines.say(frame)
  }

  private hear(frame: FollowerFrame): void {
    if (frame.drop !== undefined) this.under.delete(frame.drop)
    else if (frame.id === undefined) this.say({})
    else void this.take(frame.id, frame as SentAsk)
  }

  private async take(id: number, asked: SentAsk): Promise<void> {
    this.under.add(id)
    try {
      this.say({ id, answer: await this.decide(asked, () => this.waitsFor(id)) })
    } catch (error) {
      this.say({ id, ...saidOf(error) })
    }
    this.under.delete(id)
  }

  private waitsFor(id: number): boolean {
    const { lines } = this
    return this.under.has(id) && lines.isOpen && performance.now() - lines.heard_ms < GONE_MS
  }
}

/** What a follower is told of an ask that has no answer. */
function saidOf(error: unknown): LeaderFrame {
  // A bug of ours is for the follower's own log: there the same will happen again.
  if (!(error instanceof Refusal)) return { yours: true }
  const trouble = isRefusal(error, 'unavailable') || isRefusal(error, 'damaged')
  return trouble ? { yours: true, trouble } : { refusal: error }
}

/** What lives and what is dead on the asking host can be proved there only. */
function leaveFacts(view: View, seat: string): void {
  for (const kind of ['process', 'group', 'leader'] as const) {
    const fact = view[kind].bind(view)
    view[kind] = (ref: GroupRef) => {
      if (ref.seat === seat) throw new Yours()
      return fact(ref)
    }
  }
}
