import type { Connection } from './driver.ts'
import type { Sessions } from './session.ts'

const CONNECTIONS_MAX = 4

/** A few connections for reading, opened when first needed and used in turn. */
export class Pool {
  private readonly sessions: Sessions
  private readonly idle: Connection[] = []
  private readonly waiting: (() => void)[] = []
  private used = 0
  private closed = false

  constructor(sessions: Sessions) {
    this.sessions = sessions
  }

  /** Lends a connection to `use`. One that failed in any way is not used again. */
  async with<T>(use: (db: Connection) => Promise<T>): Promise<T> {
    if (this.used >= CONNECTIONS_MAX) {
      await new Promise<void>((resolve) => this.waiting.push(resolve))
    }
    this.used += 1
    let db: Connection | undefined
    try {
      db = this.takeIdle() ?? (await this.sessions.open())
      const answer = await use(db)
      if (db.isLost || this.closed) await db.close()
      else this.idle.push(db)
      return answer
    } catch (error) {
      void db?.close()
      throw error
    } finally {
      this.used -= 1
      this.waiting.shift()?.()
    }
  }

  private takeIdle(): Connection | undefined {
    for (;;) {
      const db = this.idle.pop()
      if (!db?.isLost) return db
    }
  }

  async close(): Promise<void> {
    this.closed = true
    await Promise.all(this.idle.splice(0).map((db) => db.close()))
  }
}
