import type { Caller } from '../core/caller.ts'
import { acquireLocks, releaseLock, renewLock } from '../core/lock.ts'
import { Refusal } from '../core/refusal.ts'
import type { Lease } from '../core/rows.ts'
import { ownProcess } from '../stores/process.ts'
import type { Store } from '../stores/store.ts'
import { readServer } from '../stores/server_file.ts'

const NAME = 'leasehold:daemon'
const TTL_MS = 30_000

/**
 * One daemon per store, by a lock of our own: it names this process, so that the lock is free the
 * moment this process is gone, and nobody takes it while it lives.
 */
export class Singleton {
  private readonly store: Store
  private readonly folder: string
  private readonly caller: Caller
  private lease: Lease | undefined
  private timer: NodeJS.Timeout | undefined
  private forget: () => void = () => undefined

  constructor(store: Store, folder: string) {
    this.store = store
    this.folder = folder
    const agent = `daemon:${ownProcess().host}/${process.pid}`
    this.caller = { agent, given: true, process: ownProcess(), admin: false, under: null }
  }

  /** Refuses (`unavailable`) while another daemon serves this store. */
  async take(): Promise<void> {
    const ask = {
      names: [NAME],
      ttl_ms: TTL_MS,
      process: ownProcess(),
      priority: 5,
      takeover: false,
    }
    try {
      const got = await this.store.write((view) => acquireLocks(view, ask, this.caller))
      this.lease = (got as Lease[])[0]
    } catch (error) {
      throw error instanceof Refusal && error.code === 'held' ? this.taken(error) : error
    }
  }

  /** Keeps the lock until `release`; `lost` is told when another daemon has it. */
  keep(lost: (why: string) => void): void {
    this.timer = setInterval(() => void this.renew(lost), TTL_MS / 3)
    // A restore ends every lease, ours too, though we serve the restored store as before.
    this.forget = this.store.onCommit(
      () => undefined,
      () => void this.renew(lost),
    )
  }

  private async renew(lost: (why: string) => void): Promise<void> {
    const { fence } = this.lease!
    try {
      await this.store
        .write((view) => renewLock(view, { name: NAME, fence }, this.caller))
        .catch((error) => (isOver(error) ? this.take() : Promise.reject(error as Error)))
    } catch (error) {
      // A store in trouble is not a successor: only one that has the lock is.
      if (error instanceof Refusal && error.details['pid'] !== undefined) lost(error.message)
    }
  }

  async release(): Promise<void> {
    clearInterval(this.timer)
    this.forget()
    const { fence } = this.lease!
    await this.store
      .write((view) => releaseLock(view, { name: NAME, fence }, this.caller))
      // Whoever has it now, or a store in trouble, is no reason not to stop.
      .catch(() => undefined)
  }

  private taken(refusal: Refusal): Refusal {
    const { pid } = refusal.details
    const server = readServer(this.folder)
    // What a daemon that was killed left behind names another process.
    const url = server?.pid === pid ? server?.url : undefined
    const where = url === undefined ? '' : ` at ${url}`
    return new Refusal(
      'unavailable',
      `Another leasehold server is already running on this database (PID: ${String(pid)}${where})`,
      {
        next: 'Use that one: the command line finds it by itself. To replace it, stop it first.',
        details: { pid, url: url ?? null },
      },
    )
  }
}

function isOver(error: unknown): boolean {
  return error instanceof Refusal && ['lease_expired', 'fence_stale', 'held'].includes(error.code)
}
