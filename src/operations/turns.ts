/** What is under way at once may take so long: whoever comes next waits no longer than that. */
const AHEAD_MS = 10
/** So long new connections are let in before the next asks are. */
const ARRIVALS_MS = 50
/** One token has so many asks under way at once, however short they were so far. */
const EACH_MAX = 128
/** What an ask is thought to take of which nothing is known, and the least that any takes. */
const GUESS_MS = 5
const LEAST_MS = 0.1
/** What an ask took is thought of for a while: a short one among long ones tells little. */
const KEEPS = 0.8
/** Lines whose tokens ask for nothing now, of which something is remembered. */
const LINES_MAX = 1_000

/** Tells how long an ask took: of a step that waits, until it is over. */
export type Timed = <T>(step: () => T) => T

interface Ask {
  kind: string
  start: () => void
}

/** The asks of one token. */
interface Line {
  waiting: Ask[]
  /** Asks that are under way. */
  running: number
  /** How long its asks of each kind take, the longest counting most. */
  lasts_ms: Map<string, number>
  /** What it has used so far, as a place among all lines: the least goes first. */
  used_ms: number
}

/**
 * Turns between tokens, for the time of the one processor. Whoever has used least is next, and so
 * little is under way at once that a newcomer is answered soon, whatever others ask for. As long as
 * nobody has to wait for anybody, nobody does.
 */
export class Turns {
  /** How many connections have come so far, where somebody counts them. */
  arrivals: () => number = () => 0
  private readonly lines = new Map<object, Line>()
  private waiting = 0
  private isComing = false
  /** What is under way is thought to take, and what was let go since the event loop came round. */
  private ahead_ms = 0
  private round_ms = 0
  /** What the line had used that was let go last: a newcomer begins there, not at nothing. */
  private reached_ms = 0

  /**
   * Does `work` when it is the turn of `whose`. What it does within `timed` is charged to it, and
   * so is `more_ms`, which it will take elsewhere. Asks of one `kind` take about equally long.
   */
  async take<T>(
    whose: object,
    kind: string,
    work: (timed: Timed) => Promise<T>,
    more_ms = 0,
  ): Promise<T> {
    const line = this.lineOf(whose)
    if (!line.lasts_ms.has(kind)) line.lasts_ms.set(kind, Math.max(GUESS_MS, more_ms))
    const expected_ms = await this.turn(line, kind)
    let spent_ms = more_ms
    const timed: Timed = (step) => {
      const begun_ms = performance.now()
      const end = () => void (spent_ms += performance.now() - begun_ms)
      try {
        const done = step()
        if (!(done instanceof Promise)) end()
        return done instanceof Promise ? (done.finally(end) as typeof done) : done
      } catch (error) {
        end()
        throw error
      }
    }
    try {
      return await work(timed)
    } finally {
      this.ahead_ms -= expected_ms
      line.running -= 1
      this.learn(line, kind, Math.max(LEAST_MS, spent_ms))
      // Sums of fractions do not come back to nothing by themselves.
      if (this.ahead_ms < LEAST_MS / 2) this.ahead_ms = 0
      this.comeRound()
    }
  }

  private turn(line: Line, kind: string): Promise<number> {
    return new Promise((resolve) => {
      const start = () => {
        const expected_ms = line.lasts_ms.get(kind)!
        this.reached_ms = Math.max(this.reached_ms, line.used_ms)
        this.ahead_ms += expected_ms
        this.round_ms += expected_ms
        line.running += 1
        this.comeRound()
        resolve(expected_ms)
      }
      line.waiting.push({ kind, start })
      this.waiting += 1
      this.letGo()
    })
  }

  private fits(line: Line): boolean {
    const expected_ms = line.lasts_ms.get(line.waiting[0]!.kind)!
    if (this.round_ms === 0 && this.ahead_ms === 0) return true
    return Math.max(this.round_ms, this.ahead_ms) + expected_ms <= AHEAD_MS
  }

  private learn(line: Line, kind: string, spent_ms: number): void {
    const before_ms = line.lasts_ms.get(kind)!
    line.lasts_ms.set(kind, Math.max(spent_ms, before_ms * KEEPS + spent_ms * (1 - KEEPS)))
    // Only now: a guess that is charged in advance would move the place where newcomers begin.
    line.used_ms += spent_ms
  }

  /**
   * Lets more go when the event loop has come round: whoever has just connected is among them then.
   * Straight away, one ask would follow the other and nobody else be heard for seconds.
   */
  private comeRound(): void {
    if (this.isComing) return
    this.isComing = true
    const until_ms = performance.now() + ARRIVALS_MS
    let seen = this.arrivals()
    const look = () => {
      const now = this.arrivals()
      // Node takes one new connection each time round: while there are more, they come first.
      if (now !== seen && performance.now() < until_ms) {
        seen = now
        setImmediate(look)
        return
      }
      this.isComing = false
      this.round_ms = 0
      this.letGo()
    }
    setImmediate(look)
  }

  /** As many as fit, each from the line that has used least: a long one is waited for. */
  private letGo(): void {
    while (this.waiting > 0) {
      let first: Line | undefined
      for (const line of this.lines.values()) {
        if (line.waiting.length === 0 || line.running >= EACH_MAX) continue
        if (!first || line.used_ms < first.used_ms) first = line
      }
      if (!first || !this.fits(first)) return
      this.waiting -= 1
      first.waiting.shift()!.start()
    }
  }

  private lineOf(whose: object): Line {
    let line = this.lines.get(whose)
    if (!line) {
      this.forgetIdle()
      line = { waiting: [], running: 0, lasts_ms: new Map(), used_ms: this.reached_ms }
      this.lines.set(whose, line)
    }
    // Who asked for nothing has saved nothing up: it would keep all others waiting.
    const isIdle = line.running === 0 && line.waiting.length === 0
    if (isIdle) line.used_ms = Math.max(line.used_ms, this.reached_ms)
    return line
  }

  private forgetIdle(): void {
    if (this.lines.size < LINES_MAX) return
    for (const [whose, { running, waiting }] of this.lines) {
      if (running === 0 && waiting.length === 0) this.lines.delete(whose)
    }
  }
}

const turns = new WeakMap<object, Turns>()

/** The turns of those who ask one store. */
export function turnsAt(store: object): Turns {
  let found = turns.get(store)
  if (!found) turns.set(store, (found = new Turns()))
  return found
}
