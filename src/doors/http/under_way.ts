import type { Context } from 'hono'
import type { Bearer } from '../../operations/access.ts'
import { outgoingOf } from './guard.ts'

/**
 * What one request uses of its token's budget until its answer has been taken: a client that asks
 * and does not read keeps its answers in our memory. Refuses with `rate_limited`.
 */
export class UnderWay {
  private readonly c: Context
  private readonly budget: Bearer['budget']
  private ends: (() => void)[] | undefined

  constructor(c: Context, { budget }: Bearer) {
    this.c = c
    this.budget = budget
  }

  /** A body is about to be read: of the length it states, or of any up to `max`. */
  reading(max: number): void {
    const { budget, c } = this
    if (!budget || c.req.method === 'GET') return
    const stated = Number(c.req.header('content-length') ?? max)
    this.until(budget.take('bytes_under_way', Math.min(stated, max)))
  }

  calling(): void {
    if (this.budget) this.until(this.budget.take('calls'))
  }

  streaming(): void {
    if (this.budget) this.until(this.budget.take('streams'))
  }

  /** What only looked is refused an answer that is too much; what has been done is told. */
  answer(value: object, isRead: boolean): Response {
    const { budget, c } = this
    if (!budget) return c.json(value)
    const text = JSON.stringify(value)
    const use = isRead ? 'take' : 'add'
    this.until(budget[use]('bytes_under_way', text.length))
    return c.body(text, 200, { 'content-type': 'application/json' })
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
