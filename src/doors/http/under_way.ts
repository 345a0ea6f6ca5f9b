import { promisify } from 'node:util'
import { constants, gzip } from 'node:zlib'
import type { Context } from 'hono'
import type { Bearer } from '../../operations/access.ts'
import { outgoingOf } from './guard.ts'

/** So much of an answer takes a millisecond to copy, to send and to forget. */
const ANSWER_BYTES = 50_000

/** Below this it costs more than it saves. */
const PACKED_FROM = 2_000
const pack = promisify(gzip)

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
  async answer(value: object, isRead: boolean): Promise<Response> {
    const { uses, c } = this
    const text = uses ? uses.turn.timed(() => JSON.stringify(value)) : JSON.stringify(value)
    if (uses) {
      uses.turn.spend(text.length / ANSWER_BYTES)
      this.until(uses.budget[isRead ? 'take' : 'add']('bytes_under_way', text.length))
    }
    const type = { 'content-type': 'application/json' }
    if (text.length < PACKED_FROM || !this.isPacked()) return c.body(text, 200, type)
    const packed = await pack(text, { level: constants.Z_BEST_SPEED })
    return c.body(packed, 200, { ...type, 'content-encoding': 'gzip', vary: 'accept-encoding' })
  }

  /** Only for a page, which may be far away: programs are on this host, or ask for little. */
  private isPacked(): boolean {
    const { req } = this.c
    return Boolean(req.header('cookie') && req.header('accept-encoding')?.includes('gzip'))
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
