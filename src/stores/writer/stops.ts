import type { Lease } from '../../core/schema/lock.ts'
import type { GroupRef } from '../../core/rows.ts'
import type { Machine } from '../../machine/machine.ts'

/** Commands that are being stopped, by the fence they ran under. */
export class Stops {
  private readonly under = new Map<number, Promise<boolean>>()

  constructor(private readonly machine: Machine) {}

  has({ fence }: Lease): boolean {
    return this.under.has(fence)
  }

  /** Stops what runs under a lease; several who want that wait for the same end. */
  stop({ fence }: Lease, group: GroupRef): Promise<boolean> {
    const already = this.under.get(fence)
    if (already) return already
    // What went wrong is no proof that it is gone, and nobody waits here to hear of it.
    const stopping = this.machine
      .stop(group)
      .catch(() => false)
      .finally(() => this.under.delete(fence))
    this.under.set(fence, stopping)
    return stopping
  }

  /** When all of them have ended. */
  async ended(): Promise<void> {
    await Promise.all(this.under.values())
  }
}
