import type { Asker } from './asker.ts'
import { backOff, mayPass } from '../reach/patience.ts'
import type { ShownEvent } from './transport.ts'

/** One event; or `reset`: what the client knows may be out of date, and has to be read anew. */
export type Happening =
  | { id: string; reset: false; event: ShownEvent }
  | { id: string; reset: true; event: null }

export interface StreamOptions {
  /** Begin behind the happening with this id; without one, from now on. */
  after?: string | undefined
  signal?: AbortSignal | undefined
}

/**
 * Events in order, each once. A broken connection is mended by itself: the stream goes on behind
 * the last event it gave. Ends when its signal is aborted or the loop over it is left.
 */
export class EventStream implements AsyncIterable<Happening> {
  /** Resolves with the id of the place where the stream began: nothing after it is missed. */
  readonly opened: Promise<string>
  private readonly ending = new AbortController()
  private readonly signal: AbortSignal
  private readonly items: AsyncGenerator<Happening>
  private open!: (id: string) => void
  private last: string | undefined
  private first: Promise<IteratorResult<Happening>> | undefined

  constructor(
    private readonly asker: Asker,
    { after, signal }: StreamOptions,
  ) {
    this.last = after
    this.signal = signal ? AbortSignal.any([signal, this.ending.signal]) : this.ending.signal
    this.items = this.happenings()
    // Connects at once, so that nothing is missed that happens before the first look.
    const first = this.items.next()
    this.first = first
    this.opened = new Promise((resolve, reject) => {
      this.open = resolve
      first.catch(reject)
    })
    // A loop over the stream sees it too, so nobody has to look at both.
    this.opened.catch(() => undefined)
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Happening> {
    try {
      for (;;) {
        const { first } = this
        this.first = undefined
        const { value, done } = await (first ?? this.items.next())
        if (done) return
        yield value
      }
    } finally {
      this.close()
    }
  }

  close(): void {
    this.ending.abort()
  }

  private async *happenings(): AsyncGenerator<Happening> {
    const { transport } = this.asker
    for (let tries = 0; !this.signal.aborted; tries += 1) {
      try {
        for await (const told of transport.stream(this.last, this.signal)) {
          tries = 0
          this.last = told.id
          this.open(told.id)
          if (told.what === 'reset') yield { id: told.id, reset: true, event: null }
          if (told.event) yield { id: told.id, reset: false, event: told.event }
        }
      } catch (error) {
        if (this.signal.aborted) return
        if (!mayPass(error)) throw error
      }
      await backOff(tries, this.signal).catch(() => undefined)
    }
  }
}
