import { setTimeout as pause } from 'node:timers/promises'
import { planted } from '../core/planted.ts'

/** One token gets this share of the server's time while others ask too. */
const SHARE = 0.25
/** A token may be this far ahead of its share, so that one that asks seldom never waits. */
const AHEAD_MS = 600
/** A token that would wait longer is refused. */
export const LATE_MS = 5_000
/** And told so this late: most clients ask again as soon as they know. */
const TOLD_MS = 15_000
/** Others are asking if they asked within this time. */
const BESIDE_MS = 5_000
/** What an ask is expected to take if none of its kind was timed yet. */
const GUESS_MS = 2
/** What any ask takes beside what is timed: its connection, its token, its answer. */
const LEAST_MS = 0.5
/**
 * While others ask too, asks of one token that are worked on at once take no longer than this
 * together, or are one: of a kind that was never timed, who knows.
 */
const TOGETHER_MS = 20
/** No more wait for that than may be connected: those who hang up and come again are refused. */
const QUEUED_MAX = 2_000
/** How slowly an estimate falls: one short ask among long ones tells little. */
const KEEPS = 0.8

/** Not all at the same moment, or they would all come back at the same moment. */
export const tellLate = () => pause(TOLD_MS * (0.5 + Math.random()), undefined, { ref: false })

/** Who is asking a server now: its time is divided only while several tokens ask. */
export class Company {
  private last: { who: object | undefined; ms: number } = { who: undefined, ms: -BESIDE_MS }
  /** When a token other than the last one asked. */
  private other_ms = -BESIDE_MS

  /** A token asks; undefined is an admin. */
  came(who: object | undefined, now = performance.now()): void {
    if (who !== this.last.who) this.other_ms = this.last.ms
    this.last = { who, ms: now }
  }

  isBeside(who: object, now = performance.now()): boolean {
    const { last, other_ms } = this
    return now - (last.who === who ? other_ms : last.ms) < BESIDE_MS
  }
}

/**
 * How fast one token may go on. Each of its asks takes a piece of time: what the ask is expected to
 * cost, divided by the token's share. An ask begins when the pieces before it are over.
 */
export class Pace {
  /** When the pieces taken so far are over. */
  private free_ms = 0
  /** How long its asks of each kind take, the longest counting most. */
  private readonly lasts_ms = new Map<string, number>()
  /** The asks that are worked on now, and what they are expected to take together. */
  private working = 0
  private together_ms = 0
  private readonly queued: (() => void)[] = []

  constructor(private readonly company: Company) {}

  /** Waits until an ask of this kind may begin; undefined, after a while, if it may not. */
  async turn(kind: string): Promise<PaceTurn | undefined> {
    const now = performance.now()
    const expected_ms = this.lasts_ms.get(kind) ?? GUESS_MS
    this.company.came(this, now)
    const begins_ms = Math.max(this.free_ms, now)
    const late_ms = begins_ms - now - AHEAD_MS
    const ends_ms = begins_ms + expected_ms / SHARE
    if (!this.company.isBeside(this, now) || planted('R49')) {
      this.free_ms = Math.min(ends_ms, now + AHEAD_MS)
    } else if (late_ms > LATE_MS || this.queued.length >= QUEUED_MAX) {
      await tellLate()
      return undefined
    } else {
      this.free_ms = ends_ms
      if (late_ms > 0) await pause(late_ms, undefined, { ref: false })
    }
    return new PaceTurn(this, kind, expected_ms, await this.room(kind))
  }

  /** Waits, in turn, until one of this kind may be worked on beside the rest. */
  private async room(kind: string): Promise<number> {
    const isBeside = this.company.isBeside(this) && !planted('R49')
    // One before it may have shown meanwhile how long its kind takes.
    const takes = () => this.lasts_ms.get(kind) ?? TOGETHER_MS
    const fits = () => this.working === 0 || this.together_ms + takes() <= TOGETHER_MS
    if (isBeside && (this.queued.length > 0 || !fits())) {
      await new Promise<void>((resolve) => void this.queued.push(resolve))
      while (!fits()) await new Promise<void>((resolve) => void this.queued.unshift(resolve))
    }
    const takes_ms = takes()
    this.working += 1
    this.together_ms += takes_ms
    // There may be room for another one; it looks for itself.
    this.queued.shift()?.()
    return takes_ms
  }

  /** Time was used that no turn counts. */
  owe(ms: number): void {
    this.free_ms += ms / SHARE
  }

  /** An ask is over, or waits. */
  settle(kind: string, expected_ms: number, takes_ms: number, spent_ms: number): void {
    this.owe(spent_ms - expected_ms)
    this.lasts_ms.set(kind, Math.max(spent_ms, expected_ms * KEEPS))
    this.working -= 1
    this.together_ms -= takes_ms
    this.queued.shift()?.()
  }
}

/** One ask of a token, from when it is let in until it is answered. */
export class PaceTurn {
  private spent_ms = LEAST_MS
  private isOver = false

  constructor(
    private readonly pace: Pace,
    private readonly kind: string,
    private readonly expected_ms: number,
    private readonly takes_ms: number,
  ) {}

  spend(ms: number): void {
    if (this.isOver) this.pace.owe(ms)
    else this.spent_ms += ms
  }

  timed<T>(step: () => T): T {
    const begun_ms = performance.now()
    try {
      return step()
    } finally {
      this.spend(performance.now() - begun_ms)
    }
  }

  /** It is answered, or waits: what it takes from now on is counted as it comes. */
  end(): void {
    if (this.isOver) return
    this.isOver = true
    this.pace.settle(this.kind, this.expected_ms, this.takes_ms, this.spent_ms)
  }
}
