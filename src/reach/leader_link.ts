import { Refusal } from '../core/refusal.ts'
import type { SentAsk } from '../stores/port.ts'
import { type FollowerFrame, type LeaderFrame, type Lines } from './leader_wire.ts'

/** How often a leader that owes us an answer is asked whether it is there. */
const PING_MS = 400
/** One that says nothing at all for so long is gone, or stopped. */
const SILENT_MS = 1_500
/** One that is there and answers no ask for so long cannot reach the database, say. */
const STUCK_MS = 2_000

interface Open {
  sent_ms: number
  resolve: (answer: unknown) => void
  reject: (why: unknown) => void
  direct: () => Promise<unknown>
}

/**
 * An open connection to a leader that has proved itself, and the asks that are under way there.
 * Each has a request id: what the leader does not answer is asked elsewhere, and takes effect once.
 */
export class LeaderLink {
  /** Whether more may be sent. One that is not used any more is closed with its last answer. */
  isUsed = true
  hasAnswered = false
  private readonly open = new Map<number, Open>()
  private readonly timer: NodeJS.Timeout
  private last = 0
  private looked_ms = performance.now()

  /** `retired`: told once, when nothing more may be sent here. */
  constructor(
    private readonly lines: Lines<LeaderFrame>,
    private readonly retired: () => void,
  ) {
    lines.hear = (frame) => this.hear(frame)
    lines.closed = () => this.lose()
    this.timer = setInterval(() => this.look(), PING_MS).unref()
  }

  send<T>({ caller, ...asked }: SentAsk, direct: () => Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const sent_ms = performance.now()
      // While nothing was asked, nothing was to be heard.
      if (this.open.size === 0) this.lines.heard_ms = sent_ms
      const answer = resolve as Open['resolve']
      const id = (this.last += 1)
      this.open.set(id, { sent_ms, resolve: answer, reject, direct })
      // What counts for the token is counted here.
      this.say({ id, ...asked, caller: { ...caller, uses: undefined } })
    })
  }

  /** Sends no more. Answers that are under way still count. */
  retire(): void {
    if (!this.isUsed) return
    this.isUsed = false
    this.retired()
    this.endIfIdle()
  }

  /** Whatever is under way ends now. */
  close(): void {
    this.lines.cut()
  }

  private say(frame: FollowerFrame): void {
    this.lines.say(frame)
  }

  private hear({ id, answer, refusal, ...rest }: LeaderFrame): void {
    if (id === undefined) {
      if (rest.leaving) this.retire()
      return
    }
    const asked = this.open.get(id)
    if (!asked) return
    this.open.delete(id)
    if (rest.trouble) this.retire()
    if (rest.yours) asked.resolve(asked.direct())
    else if (refusal) asked.reject(Refusal.from(refusal, 500))
    else {
      this.hasAnswered = true
      asked.resolve(answer)
    }
    if (!this.isUsed) this.endIfIdle()
  }

  private look(): void {
    const now = performance.now()
    // If it is we who were stopped, what was said meanwhile is yet to be heard.
    const wasAway = now - this.looked_ms > SILENT_MS / 2
    this.looked_ms = now
    const [oldest] = this.open.values()
    if (!oldest || wasAway) return
    if (now - this.lines.heard_ms > SILENT_MS) return this.close()
    if (now - oldest.sent_ms > STUCK_MS) this.giveUp()
    this.say({})
  }

  private giveUp(): void {
    this.retire()
    for (const [id, asked] of this.open) {
      this.open.delete(id)
      this.say({ drop: id })
      asked.resolve(asked.direct())
    }
    this.endIfIdle()
  }

  private endIfIdle(): void {
    if (this.open.size === 0) this.lines.end()
  }

  private lose(): void {
    clearInterval(this.timer)
    this.retire()
    for (const { resolve, direct } of this.open.values()) resolve(direct())
    this.open.clear()
  }
}
