import { isRefusal } from '../core/refusal.ts'
import type { Store } from '../stores/writer/store.ts'
import type { Role } from './role.ts'

/** What only the holder of a role does. */
interface Duty {
  begin: () => Promise<void>
  end: () => Promise<void>
}

const RETRY_MS = 1_000

/**
 * Does its duty while this process has the role. Another process may get it: while this one was
 * paused, say. Then it stands by, and begins again when the role comes free.
 */
export class Elected {
  private serving = false
  private stopped = false
  private starting: Promise<void> | undefined
  private forget = () => {}

  constructor(
    private readonly store: Store,
    private readonly role: Role,
    private readonly duty: Duty,
    private readonly say: (sentence: string) => void,
  ) {}

  /** Takes the role and begins, or refuses with `held` while another process has it. */
  start(): Promise<void> {
    return (this.starting ??= this.begin().finally(() => (this.starting = undefined)))
  }

  /** Begins now, or as soon as no other process has the role. */
  async startOrStandBy(): Promise<void> {
    try {
      await this.start()
    } catch (error) {
      // A store in trouble (a full disk, say) gets over it, and the rest of the daemon serves.
      if (!isHeld(error) && !isRefusal(error, 'unavailable')) throw error
      this.say(`standing by: ${error.message}`)
      this.standBy()
    }
  }

  async stop(): Promise<void> {
    this.stopped = true
    this.forget()
    await this.starting?.catch(() => undefined)
    if (this.serving) await this.end()
    await this.role.release()
  }

  private async begin(): Promise<void> {
    await this.role.take()
    if (this.stopped) return
    this.serving = true
    this.role.keep((why) => {
      this.say(`standing by: ${why}`)
      void this.end()
        .catch((error: Error) => this.say(error.message))
        .then(() => this.standBy())
    })
    try {
      await this.duty.begin()
    } catch (error) {
      // Somebody else may manage.
      await this.end()
      await this.role.release()
      throw error
    }
  }

  private async end(): Promise<void> {
    this.serving = false
    await this.duty.end()
  }

  /** Tries again when the role has come free, and once now: it may have done so just before. */
  private standBy(): void {
    if (this.stopped) return
    this.forget = this.store.onCommit(
      (events) => {
        if (events.some((event) => this.role.isEndedBy(event))) void this.retry()
      },
      // A restore ends every lease, without an event that tells.
      () => void this.retry(),
    )
    void this.retry()
  }

  private async retry(): Promise<void> {
    // One that is under way may have looked just before the role came free.
    await this.starting?.catch(() => undefined)
    if (this.serving || this.stopped) return
    try {
      await this.start()
      this.forget()
    } catch (error) {
      if (isHeld(error)) return
      this.say((error as Error).message)
      setTimeout(() => void this.retry(), RETRY_MS).unref()
    }
  }
}

const isHeld = (error: unknown) => isRefusal(error, 'held')
