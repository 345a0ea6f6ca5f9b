import type { Caller } from '../core/caller.ts'
import { acquireLocks, releaseLock, renewLock } from '../core/lock.ts'
import { Refusal } from '../core/refusal.ts'
import type { Lease } from '../core/rows.ts'
import { ownProcess } from '../stores/process.ts'
import type { Store } from '../stores/store.ts'
import { readServer } from './files.ts'

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

  constructor(store: Store, folder: string) {
    this.store = store
    this.folder = folder
    const agent = `daemon:${ownProcess().host}/${process.pid}`
    this.caller = { agent, given: true, process: ownProcess(), admin: false, under: null }
  }

  /** Refuses (`unavailable`) while another daemon serves this store. `lost` is told of the end. */
  async take(lost: (why: string) => void): Promise<void> {
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
    this.timer = setInterval(() => void this.renew(lost), TTL_MS / 3)
  }

  private async renew(lost: (why: string) => void): Promise<void> {
    const { fence } = this.lease!
    try {
      await this.store.write((view) => renewLock(view, { name: NAME, fence }, this.caller))
    } catch (error) {
      // A store in trouble is not a successor: only a refusal by the rules means the lease is lost.
      if (error instanceof Refusal && error.code !== 'unavailable') lost(error.message)
    }
  }

  async release(): Promise<void> {
    clearInterval(this.timer)
    if (!this.lease) return
    const { fence } = this.lease
    await this.store.write((view) => releaseLock(view, { name: NAME, fence }, this.caller))
  }

  private taken(refusal: Refusal): Refusal {
    const { pid } = refusal.details
    const server = readServer(this.folder)
    const where = server && server.pid === pid ? ` at ${server.url}` : ''
    return new Refusal(
      'unavailable',
      `Another leasehold server is already running on this database (PID: ${String(pid)}${where})`,
      {
        next: 'Use that one: the command line finds it by itself. To replace it, stop it first.',
        details: { pid, url: server?.url ?? null },
      },
    )
  }
}
