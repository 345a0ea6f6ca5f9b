import type { Lease } from '../core/schema/lock.ts'
import { ROLE_TTL_MS } from '../core/bounds.ts'
import type { Caller } from '../core/caller.ts'
import { checkFence } from '../core/locks/lease.ts'
import { isEnding } from '../core/event.ts'
import { acquireLocks, releaseLock, renewLock } from '../core/locks/lock.ts'
import { endsLease } from '../core/refusal.ts'
import type { View } from '../core/view.ts'
import { ownProcess } from '../machine/process.ts'
import { keepRenewing } from '../reach/renewing.ts'
import type { Event } from '../core/event.ts'
import type { Store } from '../stores/writer/store.ts'

/**
 * What only one process may be at a time, by a lock of our own. It names this process, so that the
 * lock is free the moment this process is gone, and nobody takes it while it lives.
 */
export class Role {
  readonly caller: Caller
  private lease: Lease | undefined
  private endRenewing: () => void = () => undefined
  private forget: () => void = () => undefined
  private kept = false
  private renewing: Promise<void> = Promise.resolve()

  constructor(
    private readonly store: Store,
    readonly name: string,
    kind: string,
    private readonly ttl_ms = ROLE_TTL_MS,
  ) {
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
      ttl_ms: this.ttl_ms,
      process: ownProcess(),
      priority: 5,
      takeover: false,
    }
    const got = await this.store.write((view) => acquireLocks(view, ask, this.caller))
    this.lease = (got as Lease[])[0]
  }

  /** Keeps the lock until `release`; `lost` is called, once, when another process has it. */
  keep(lost: (why: string) => void): void {
    const renew = () => {
      const renewal = this.renewing.then(() => this.renew(lost))
      this.renewing = renewal.catch(() => undefined)
      return renewal
    }
    const renewNow = () => void renew().catch(() => undefined)
    this.kept = true
    this.endRenewing = keepRenewing({ ttl_ms: this.ttl_ms, renew })
    this.forget = this.store.onCommit(
      (events) => {
        if (events.some((event) => this.isEndedBy(event))) renewNow()
      },
      // A restore ends every lease, ours too, though we serve the restored store as before.
      renewNow,
    )
  }

  /** Whether this event says that the lock has come free, from any holder. */
  isEndedBy(event: Event): boolean {
    return event.lock === this.name && isEnding(event)
  }

  private async renew(lost: (why: string) => void): Promise<void> {
    const { name } = this
    const { fence } = this.lease!
    try {
      if (!this.kept) return
      await this.store
        .write((view) => renewLock(view, { name, fence }, this.caller))
        .catch((error) => (endsLease(error) ? this.take() : Promise.reject(error as Error)))
    } catch (error) {
      // A store in trouble is not a successor: only one that has the lock is.
      if (!endsLease(error)) throw error
      if (error.details['pid'] === undefined) return
      this.letGo()
      lost(error.message)
    }
  }

  /** For a write that only the holder of the role may make: refuses when another has it by now. */
  check(view: View): void {
    checkFence(view, this.name, this.lease?.fence ?? 0, this.caller)
  }

  private letGo(): void {
    this.kept = false
    this.endRenewing()
    this.forget()
  }

  async release(): Promise<void> {
    this.letGo()
    // A renewal that is under way could take the lock anew just after we gave it back.
    await this.renewing
    if (!this.lease) return
    const { name } = this
    const { fence } = this.lease
    await this.store
      .write((view) => releaseLock(view, { name, fence }, this.caller))
      // That another has it by now, or that the store is in trouble, is no reason not to stop.
      .catch(() => undefined)
  }
}
