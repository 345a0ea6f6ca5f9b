import type { Notice, Send } from './sender.ts'
import { endsLease } from '../../core/refusal.ts'

const BACKOFF_MS = { first: 1_000, most: 300_000 }
const TRIES_MAX = 12

/** Where a courier gets what it has to tell. */
export interface Letters {
  /** All that this channel has still to tell, the oldest first. */
  due(channel: string): Promise<Notice[]>
  /** The channel is done with a notice: sent (null), or given up for this reason. */
  settle(channel: string, id: string, why: string | null): Promise<void>
  say(sentence: string): void
}

/**
 * One channel: sends what is due there, whatever happens to the others. A notice that was not taken
 * is tried again later, behind those that were not tried yet; after so many tries it is put aside.
 */
export class Courier {
  private readonly send: (notice: Notice) => Promise<void>
  private readonly tries = new Map<string, number>()
  /** Told, but the store could not be told so: they are not sent again. */
  private readonly sent = new Set<string>()
  private working: Promise<void> | undefined
  private again = false
  private failures = 0
  private rests = false
  private timer: NodeJS.Timeout | undefined
  private stopped = false

  constructor(
    private readonly channel: string,
    send: Send,
    env: NodeJS.ProcessEnv,
    private readonly letters: Letters,
  ) {
    this.send = (notice) => send(notice, env)
  }

  wake(): void {
    if (this.stopped) return
    this.again = true
    this.working ??= this.work().finally(() => (this.working = undefined))
  }

  async stop(): Promise<void> {
    this.stopped = true
    clearTimeout(this.timer)
    await this.working
  }

  private async work(): Promise<void> {
    while (this.again && !this.stopped) {
      this.again = false
      try {
        while (!this.stopped && (await this.sendOne()));
      } catch (error) {
        // The role is another daemon's by now, and that one tells.
        if (!endsLease(error)) {
          this.letters.say(`alerts by ${this.channel} have to wait: ${(error as Error).message}`)
        }
        this.rest()
      }
    }
  }

  /** False when nothing is left that may be tried now. */
  private async sendOne(): Promise<boolean> {
    const due = await this.letters.due(this.channel)
    const triesOf = ({ id }: Notice) => this.tries.get(id) ?? 0
    const [next] = due.toSorted((a, b) => triesOf(a) - triesOf(b))
    if (!next || (this.rests && triesOf(next) > 0)) return false
    try {
      if (!this.sent.has(next.id)) await this.send(next)
      this.sent.add(next.id)
      this.failures = 0
      this.rests = false
    } catch (error) {
      await this.failed(next, triesOf(next) + 1, error as Error)
      return true
    }
    await this.settle(next, null)
    return true
  }

  private async failed(notice: Notice, tries: number, { message }: Error): Promise<void> {
    this.tries.set(notice.id, tries)
    this.letters.say(`an alert could not be sent by ${this.channel} (try ${tries}): ${message}`)
    if (tries >= TRIES_MAX) await this.settle(notice, message)
    this.rest()
  }

  private async settle({ id }: Notice, why: string | null): Promise<void> {
    await this.letters.settle(this.channel, id, why)
    this.sent.delete(id)
    this.tries.delete(id)
  }

  /** What was tried already is tried again after a while, later and later. */
  private rest(): void {
    this.rests = true
    this.failures += 1
    const pause_ms = Math.min(BACKOFF_MS.most, BACKOFF_MS.first * 2 ** (this.failures - 1))
    clearTimeout(this.timer)
    if (this.stopped) return
    this.timer = setTimeout(
      () => {
        this.rests = false
        this.wake()
      },
      pause_ms * (0.5 + Math.random() / 2),
    ).unref()
  }
}
