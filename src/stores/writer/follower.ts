import type { Event } from '../../core/event.ts'
import type { Head } from '../port.ts'
import { isEnd } from '../successor.ts'

export interface Listener {
  events(events: Event[]): void
  /** The store was replaced by a backup: positions went back, and all that was seen may be gone. */
  reset(): void
  /** Something may be claimed or started that could not before; see `Store.onOpening`. */
  opened(): void
  /** This process cannot serve the store any more, whatever is asked of it. */
  ended(why: string): void
}

/** One that wants to hear of nothing; a listener says what it does. */
export const SILENT: Listener = {
  events: () => undefined,
  reset: () => undefined,
  opened: () => undefined,
  ended: () => undefined,
}

/**
 * Tells every listener. What they are told of is committed, so a listener that throws changes
 * nothing about it: the others are told all the same, and the error goes to the log.
 */
export function tellEach(listeners: Iterable<Listener>, tell: (to: Listener) => void): void {
  for (const listener of listeners) {
    try {
      tell(listener)
    } catch (error) {
      process.emitWarning(error instanceof Error ? error : String(error))
    }
  }
}

interface Source {
  head(): Promise<Head>
  events(after: number, limit: number): Promise<Event[]> | Event[]
  /** Differs when somebody has committed since; undefined where that is not known so cheaply. */
  stamp(): unknown
}

const PAGE = 500

/**
 * Hears of every commit to a store, by this process or another, in order and without a gap. Commits
 * of this process are passed on at once; for those of others it looks at the head now and then.
 */
export class Follower {
  private position: number
  private epoch: number
  private readonly timer: NodeJS.Timeout
  private catching: Promise<void> | undefined
  private again = false
  /** As of the last look. */
  private stamp: unknown
  private stopped = false

  constructor(
    private readonly source: Source,
    private readonly listeners: ReadonlySet<Listener>,
    head: Head,
    every_ms: number,
  ) {
    this.position = head.position
    this.epoch = head.epoch
    // Not in step with others: many processes may follow one store.
    const pause_ms = every_ms * (0.9 + Math.random() / 5)
    const look = () => this.isBehind(this.source.stamp()) && void this.look()
    this.timer = setInterval(look, pause_ms)
  }

  /** Most looks find nothing new, ten times a second: they shall cost next to nothing. */
  private isBehind(stamp: unknown): boolean {
    return stamp === undefined || stamp !== this.stamp
  }

  /** Our own commit. If others came in between, all of it is read from the store instead. */
  heard(events: Event[]): void {
    const [first] = events
    if (!first || first.position <= this.position) return
    if (this.catching || first.position !== this.position + 1) void this.look()
    else this.deliver(events)
  }

  stop(): void {
    this.stopped = true
    clearInterval(this.timer)
  }

  /** Somebody may have committed: looks now. If a look is under way, once more behind it. */
  look(): Promise<void> {
    this.again = this.catching !== undefined
    return (this.catching ??= this.catchUp()
      // The store is in trouble, and tells everyone who asks; the next look tries again.
      .catch((error: unknown) => this.troubled(error))
      .finally(() => {
        this.catching = undefined
        if (this.again && !this.stopped) void this.look()
      }))
  }

  private troubled(error: unknown): void {
    if (!isEnd(error)) return
    tellEach(this.listeners, (listener) => listener.ended((error as Error).message))
  }

  private async catchUp(): Promise<void> {
    const stamp = this.source.stamp()
    if (!this.isBehind(stamp)) return
    const head = await this.source.head()
    await this.follow(head)
    if (this.position >= head.position) this.stamp = stamp
  }

  private async follow(head: Head): Promise<void> {
    if (head.epoch !== this.epoch) {
      this.epoch = head.epoch
      this.position = head.position
      tellEach(this.listeners, (listener) => listener.reset())
      return
    }
    while (this.position < head.position) {
      const events = await this.source.events(this.position, PAGE)
      if (events.length === 0) return
      this.deliver(events)
      for (const listener of this.listeners) listener.opened()
    }
  }

  private deliver(events: Event[]): void {
    this.position = events.at(-1)!.position
    tellEach(this.listeners, (listener) => listener.events(events))
  }
}
