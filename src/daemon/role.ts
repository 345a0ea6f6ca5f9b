import type { Caller } from '../core/caller.ts'
import { checkFence } from '../core/lease.ts'
import { acquireLocks, releaseLock, renewLock } from '../core/lock.ts'
import { Refusal } from '../core/refusal.ts'
import type { Lease } from '../core/rows.ts'
import type { View } from '../core/view.ts'
import { ownProcess } from '../stores/process.ts'
import type { Store } from '../stores/store.ts'

const TTL_MS = 30_000

/**
 * What only one process may be at a time, by a lock of our own. It names this process, so that the
 * lock is free the moment this process is gone, and nobody takes it while it lives.
 */
export class Role {
  readonly name: string
  readonly caller: Caller
  private readonly store: Store
  private lease: Lease | undefined
  private timer: NodeJS.Timeout | undefined
  private forget: () => void = () => undefined

  constructor(store: Store, name: string, kind: string) {
    this.store = store
    this.name = name
    const agent = `${kind}:${ownProcess().host}/${process.pid}`
    this.caller = { agent, given: true, process: ownProcess(), admin: false, under: null }
  }

  /** Of the lease that this process has, or had last. */
  get fence(): number {
    return this.lease!.fence
  }

  /** Refuses with `held` while another process has it. */
  async take(): Promise<void> {
    const ask = {
      names: [this.name],
      ttl_ms: TTL_MS,
      process: ownProcess(),
      priority: 5,
      takeover: false,
    }
    const got = await this.store.write((view) => acquireLocks(view, ask, this.caller))
    this.lease = (got as Lease[])[0]
  }

  /** Keeps the lock until `release`; `lost` is told when another process has it. */
  keep(lost: (why: string) => void): void {
    this.timer = setInterval(() => void this.renew(lost), TTL_MS / 3)
    // A restore ends every lease, ours too, though we serve the restored store as before.
    this.forget = this.store.onCommit(
      () => undefined,
      () => void this.renew(lost),
    )
  }

  private async renew(lost: (why: string) => void): Promise<void> {
    const { name } = this
    const { fence } = this.lease!
    try {
      await this.store
        .write((view) => renewLock(view, { name, fence }, this.caller))
        .catch((error) => (isOver(error) ? this.take() : Promise.reject(error as Error)))
    } catch (error) {
      // A store in trouble is not a successor: only one that has the lock is.
      if (error instanceof Refusal && error.details['pid'] !== undefined) lost(error.message)
    }
  }

  /** For a write that only whoever has the role may make: refuses when another has it by now. */
  check(view: View): void {
    checkFence(view, this.name, this.lease?.fence ?? 0, this.caller)
  }

  async release(): Promise<void> {
    clearInterval(this.timer)
    this.forget()
    if (!this.lease) return
    const { name } = this
    const { fence } = this.lease
    await this.store
      .write((view) => releaseLock(view, { name, fence }, this.caller))
      // Whoever has it now, or a store in trouble, is no reason not to stop.
      .catch(() => undefined)
  }
}

function isOver(error: unknown): boolean {
  return error instanceof Refusal && ['lease_expired', 'fence_stale', 'held'].includes(error.code)
}
