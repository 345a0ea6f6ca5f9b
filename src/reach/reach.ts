import { isRefusal, Refusal } from '../core/refusal.ts'
import { type ReachAsk, Unanswered } from './ask.ts'
import type { Daemon } from './server_file.ts'

/** The store itself, opened in this process. */
export interface Direct<Ask> {
  ask(asked: Ask): Promise<unknown>
  close(): Promise<void>
}

interface Ways<Ask> {
  /**
   * The daemon that is to be asked, if there is one. Looked for before every ask, and again when
   * one did not know our secret.
   */
  find(again?: boolean): Daemon | undefined
  /** Asks it once. Throws `Unanswered` when nobody can say what became of it. */
  send(daemon: Daemon, asked: Ask): Promise<unknown>
  /** Opens the store, when it is needed for the first time. */
  open(): Promise<Direct<Ask>>
  /** Told that a daemon did not answer, before the store is asked. */
  passBy?(why: Unanswered): void
  /** What to throw when no daemon answers and the store is not ours to ask. */
  giveUp?(daemon: Daemon, why: Unanswered, asked: Ask): Error
}

/**
 * How every program of ours reaches the engine: the daemon if one answers, else the store itself,
 * under the same request id. If the daemon did it before it went away, that is the answer. With a
 * token the store is not ours, so only the daemon is asked.
 */
export class Reach<Ask extends ReachAsk> {
  private direct: Promise<Direct<Ask>> | undefined

  constructor(private readonly ways: Ways<Ask>) {}

  async ask(asked: Ask): Promise<unknown> {
    const { ways } = this
    const daemon = ways.find()
    if (daemon) {
      try {
        return await this.send(daemon, asked)
      } catch (error) {
        if (!(error instanceof Unanswered)) throw error
        if (!daemon.isOurs || asked.signal?.aborted) {
          throw ways.giveUp?.(daemon, error, asked) ?? error
        }
        ways.passBy?.(error)
      }
    }
    return (await this.store()).ask(asked)
  }

  /**
   * A daemon that was started anew on the same port has another secret than the one that was read
   * just before: refused for that, it has done nothing, and is asked as it is found now.
   */
  private async send(daemon: Daemon, asked: Ask): Promise<unknown> {
    try {
      return await this.ways.send(daemon, asked)
    } catch (error) {
      const now =
        isRefusal(error, 'unauthorized') && daemon.isOurs ? this.ways.find(true) : undefined
      if (!now?.isOurs || now.secret === daemon.secret) throw error
      return await this.ways.send(now, asked)
    }
  }

  /** Opened once. One that could not be opened is tried again with the next ask. */
  private store(): Promise<Direct<Ask>> {
    this.direct ??= this.ways.open().catch((error) => {
      this.direct = undefined
      throw error
    })
    return this.direct
  }

  async close(): Promise<void> {
    // The caller of `ask` was told why it could not be opened.
    const opened = await this.direct?.catch(() => undefined)
    await opened?.close()
  }
}

/** `unavailable`: the daemon of a token, which is all that its caller may ask, says nothing. */
export function nobodyAnswers({ url }: Daemon, why: Unanswered, next = ''): Refusal {
  return new Refusal('unavailable', `No server answers at ${url}: ${why.message}`, {
    next: why.next || next,
  })
}
