import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { host } from '../machine/process.ts'
import type { Leader, LeaderRow, SentAsk } from '../stores/port.ts'
import type { Store } from '../stores/writer/store.ts'
import { LeaderLink } from './leader_link.ts'
import { type Greeting, isProof, type LeaderFrame, Lines, proofOf, WRITER } from './leader_wire.ts'

/** A leader on the same machine greets within a millisecond, one that is stopped never. */
const GREET_MS = 1_000
const PAUSE_MS_MIN = 200
const PAUSE_MS_MAX = 2_000

/**
 * Sends what is asked in this process to the process that has the write role, so that all asks of
 * a store are decided in whole batches. It is a shorter way, never another truth: the leader writes
 * as anybody writes, and whatever it does not answer is decided here. Nothing waits for it: it is
 * looked for beside asks, never before one.
 */
export class LeaderFollower implements Leader {
  private link: LeaderLink | undefined
  private looking = false
  private isResting = false
  private next_ms = 0
  private pause_ms = PAUSE_MS_MIN
  private readonly deaf: () => void

  constructor(
    private readonly store: Store,
    private readonly version: string,
  ) {
    this.deaf = store.onCommit((events) => {
      // Another process leads, or the same one anew: there is no reason to wait.
      const isNew = events.some(({ lock, type }) => lock === WRITER && type === 'lease.granted')
      if (isNew) this.lookSoon()
    })
  }

  decide<T>(asked: SentAsk, direct: () => Promise<T>): Promise<T> {
    if (!this.link) void this.look()
    // Of one without a request id nobody could tell, if the leader went away, whether it was done.
    else if (asked.request) return this.link.send(asked, direct)
    return direct()
  }

  get isLed(): boolean {
    return this.link !== undefined
  }

  /** While this process leads: it would find itself. */
  rest(): void {
    this.isResting = true
    this.link?.retire()
  }

  resume(): void {
    this.isResting = false
    this.lookSoon()
  }

  close(): void {
    this.isResting = true
    this.deaf()
    this.link?.close()
  }

  private lookSoon(): void {
    this.next_ms = 0
    this.pause_ms = PAUSE_MS_MIN
  }

  private async look(): Promise<void> {
    if (this.looking || this.isResting || performance.now() < this.next_ms) return
    this.looking = true
    try {
      const row = await this.store.leaders?.read()
      if (row && this.isReachable(row)) await this.follow(row)
    } catch {
      // What is asked meanwhile is decided here.
    } finally {
      this.looking = false
      this.next_ms = performance.now() + this.pause_ms * (0.5 + Math.random())
      this.pause_ms = Math.min(this.pause_ms * 2, PAUSE_MS_MAX)
    }
  }

  /** A program of another version may understand an ask otherwise; loopback is each host's own. */
  private isReachable({ version, address, host: theirs }: LeaderRow): boolean {
    return version === this.version && (theirs === host || !address.startsWith('127.'))
  }

  private async follow(row: LeaderRow): Promise<void> {
    const lines = await greeted(row, this.store.machine.seat)
    if (this.isResting) return lines.cut()
    const link = new LeaderLink(lines, () => {
      if (link.hasAnswered) this.lookSoon()
      if (this.link === link) this.link = undefined
    })
    this.link = link
  }
}

/** A connection on which both sides have proved that they read this row of this store. */
function greeted({ address, secret }: LeaderRow, seat: string): Promise<Lines<LeaderFrame>> {
  const at = address.lastIndexOf(':')
  const to = address.slice(0, at).replaceAll(/[[\]]/g, '')
  return new Promise((resolve, reject) => {
    const lines = new Lines<Greeting>(connect({ host: to, port: Number(address.slice(at + 1)) }))
    const late = setTimeout(() => lines.cut(), GREET_MS)
    lines.closed = () => {
      clearTimeout(late)
      reject(new Error('no leader'))
    }
    lines.hear = ({ nonce: theirs }) => {
      const nonces = [theirs, randomUUID()] as const
      lines.hear = ({ proof }) => {
        if (!isProof(proof, proofOf(secret, 'leader', nonces))) return lines.cut()
        clearTimeout(late)
        resolve(lines.greeted())
      }
      lines.say({ nonce: nonces[1], proof: proofOf(secret, 'follower', nonces), seat })
    }
  })
}
