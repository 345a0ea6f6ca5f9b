import type { Context } from 'hono'
import type { Bearer } from '../../operations/access.ts'
import { outgoingOf } from './guard.ts'

/** So much of an answer takes a millisecond to copy, to send and to forget. */
const ANSWER_BYTES = 50_000

/**
 * What one request uses of its token's budget until its answer has been taken: a client that asks
 * and does not read keeps its answers in our memory. Refuses with `rate_limited`.
 */
export class UnderWay {
  private readonly uses: Bearer['uses']
  private ends: (() => void)[] | undefined

  constructor(
    private readonly c: Context,
    { uses }: Bearer,
  ) {
    this.uses = uses
  }

  /** A body is about to be read: of the length it states, or of any up to `max`. */
  reading(max: number): void {
    const { uses, c } = this
    if (!uses || c.req.method === 'GET') return
    const stated = Number(c.req.header('content-length') ?? max)
    this.until(uses.budget.take('bytes_under_way', Math.min(stated, max)))
  }

  streaming(): void {
    if (this.uses) this.until(this.uses.budget.take('streams'))
  }

  /** A read whose answer would be too much is refused; a write is always answered. */
  answer(value: object, isRead: boolean): Response {
    const { uses, c } = this
    if (!uses) return c.json(value)
    const { budget, turn } = uses
    const text = turn.timed(() => JSON.stringify(value))
    turn.spend(text.length / ANSWER_BYTES)
    this.until(budget[isRead ? 'take' : 'add']('bytes_under_way', text.length))
    return c.body(text, 200, { 'content-type': 'application/json' })
  }

  /** What is kept for an answer that is not whole yet. */
  hold(size: number): void {
    if (this.uses) this.until(this.uses.budget.take('bytes_under_way', size))
  }

  /** Gives back all that was used so far: a wait is counted as one, and may last. */
  end(): void {
    for (const each of this.ends?.splice(0) ?? []) each()
  }

  private until(end: () => void): void {
    if (this.ends) return void this.ends.push(end)
    this.ends = [end]
    const out = outgoingOf(this.c)
    if (out.destroyed || out.closed) this.end()
    else out.once('close', () => this.end())
  }
}
