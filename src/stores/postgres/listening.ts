import type { Connection } from './driver.ts'
import type { Sessions } from './session.ts'

const PAUSE_MS_MIN = 100
const PAUSE_MS_MAX = 3_000

/** A connection that hears of commits. It comes back by itself; what it misses, polling finds. */
export class Listening {
  private db: Connection | undefined
  private timer: NodeJS.Timeout | undefined
  private pause_ms = PAUSE_MS_MIN
  private stopped = false

  constructor(
    private readonly sessions: Sessions,
    private readonly channel: string,
    private readonly hear: (who: string) => void,
  ) {
    void this.connect()
  }

  private async connect(): Promise<void> {
    try {
      const db = await this.sessions.open()
      this.db = db
      db.onNotification((who) => {
        if (!this.stopped) this.hear(who)
      })
      db.onLost(() => this.later())
      await db.run(`LISTEN ${this.channel}`)
      if (this.stopped) return await db.close()
      this.pause_ms = PAUSE_MS_MIN
      // What was committed while nobody listened.
      this.hear('')
    } catch {
      this.later()
    }
  }

  private later(): void {
    void this.db?.close()
    this.db = undefined
    if (this.stopped) return
    clearTimeout(this.timer)
    const wait_ms = this.pause_ms * (0.5 + Math.random())
    this.pause_ms = Math.min(this.pause_ms * 2, PAUSE_MS_MAX)
    this.timer = setTimeout(() => void this.connect(), wait_ms)
    this.timer.unref()
  }

  stop(): void {
    this.stopped = true
    clearTimeout(this.timer)
    void this.db?.close()
  }
}
