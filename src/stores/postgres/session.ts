import { Refusal } from '../../core/refusal.ts'
import type { Address } from './address.ts'
import type { Connection } from './driver.ts'
import { isAway, shut, sqlState } from './errors.ts'
import { markSession, refuseShared, refuseUsed } from './pooled.ts'

/** How long the server lets a transaction of ours do nothing: then its lock is free again. */
const IDLE_MS = 3_000
/** A copy waits for its other end; one that was stopped must not hold up others for ever. */
export const PATIENCE = `SET LOCAL idle_in_transaction_session_timeout = '60s'`
const STATEMENT_MS = 20_000
const PAUSE_MS_MIN = 20
const PAUSE_MS_MAX = 400
const CONNECT_MS_MAX = 5_000
/** What a statement of ours may take beside waiting for a lock. */
export const SILENT_MS = 4_000

/**
 * Every statement looks up rows by an index; a plan that was made while a table was small and reads
 * all of it would be kept while the table grows.
 */
const PLANS = [
  'enable_seqscan',
  'enable_bitmapscan',
  'enable_hashjoin',
  'enable_mergejoin',
  'jit',
].map((name) => `SET ${name} = off`)

/** A writer that was stopped, or whose host is gone, holds up the others for so long at most. */
function settingsOf(lock_timeout_ms: number): string {
  return [
    ...PLANS,
    'SET plan_cache_mode = force_generic_plan',
    `SET lock_timeout = ${lock_timeout_ms}`,
    `SET statement_timeout = ${STATEMENT_MS + lock_timeout_ms}`,
    `SET idle_in_transaction_session_timeout = ${IDLE_MS}`,
    `SET tcp_user_timeout = ${IDLE_MS}`,
    `SET timezone = 'UTC'`,
    // What is acknowledged must be on disk; a stronger setting of the database stays.
    `SELECT set_config('synchronous_commit', 'on', false)
     WHERE current_setting('synchronous_commit') IN ('off', 'local')`,
    // Last: the driver takes it for the name of the session, and refuses one that has a mark.
    markSession,
  ].join(';\n')
}

/** Opens sessions at one address, and tries again while the server is away. */
export class Sessions {
  /** Whether a session was seen to be ours alone, where a pooler is in the way. */
  private isTried = false

  constructor(
    readonly address: Address,
    readonly busy_timeout_ms: number,
  ) {}

  /** `lock_timeout_ms`: how long the server waits for a lock, if not half of our patience. */
  async open(lock_timeout_ms = Math.ceil(this.busy_timeout_ms / 2)): Promise<Connection> {
    // Loaded when first needed: most who run a command have their store in a file.
    const { connect } = await import('./driver.ts')
    const { busy_timeout_ms, address } = this
    const timeout_ms = Math.min(CONNECT_MS_MAX, Math.max(busy_timeout_ms, 100))
    const settings = settingsOf(lock_timeout_ms)
    const silent_ms = Math.ceil(busy_timeout_ms / 2) + SILENT_MS
    const options = { url: address.url, timeout_ms, silent_ms, settings }
    const another = () => connect(options).then(refuseUsed)
    const db = await another().catch((error: Error) => {
      if (isAway(error) || sqlState(error) || error instanceof Refusal) throw error
      throw shut(address.shown, error.message)
    })
    if (!db.isDirect && !this.isTried) await refuseShared(db, another)
    this.isTried = true
    return db
  }

  /**
   * Runs `step` until the server is there. Gives up when it has been away for `busy_timeout_ms`
   * since the start, or since the step last said that it is here; pauses are random, so that not
   * all who lost it come back at once.
   */
  async patiently<T>(step: (isHere: () => void) => Promise<T>): Promise<T> {
    let until = performance.now() + this.busy_timeout_ms
    const isHere = () => void (until = performance.now() + this.busy_timeout_ms)
    for (let pause_ms = PAUSE_MS_MIN; ; pause_ms = Math.min(pause_ms * 2, PAUSE_MS_MAX)) {
      try {
        return await step(isHere)
      } catch (error) {
        if (!isAway(error) || performance.now() >= until) throw error
      }
      const wait_ms = pause_ms * (0.5 + Math.random() / 2)
      await new Promise((resolve) => void setTimeout(resolve, wait_ms))
    }
  }
}

const CONNECTIONS_MAX = 4

/** A few connections for reading, opened when first needed and used in turn. */
export class Pool {
  private readonly idle: Connection[] = []
  private readonly waiting: (() => void)[] = []
  private used = 0
  private closed = false

  constructor(private readonly sessions: Sessions) {}

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
