import { grantsIn, lockIn } from '../operations/grants.ts'
import type { Operation } from '../operations/operation.ts'

const REMEMBERED_MAX = 10_000

interface Leased {
  name: string
  fence: number
}

/**
 * The fences of the locks that a client was granted, so that its later writes carry them although
 * the caller leaves them out. A lease that was lost keeps its fence here until the lock is granted
 * anew: what is written under it must be refused as stale, not taken for somebody else's write.
 */
export class Fences {
  private readonly known = new Map<string, number>()

  constructor(first?: { lock: string; fence: number } | null) {
    if (first) this.known.set(first.lock, first.fence)
  }

  has({ name, fence }: Leased): boolean {
    return this.known.get(name) === fence
  }

  forget(name: string): void {
    this.known.delete(name)
  }

  /** The input with the fence of the lock that it writes under, unless it states one. */
  fill(operation: Operation, input: Record<string, unknown>): Record<string, unknown> {
    const fence = this.known.get(lockIn(operation, input) ?? '')
    return fence === undefined || input['fence'] !== undefined ? input : { ...input, fence }
  }

  /** Remembers what a reply grants, and forgets what it takes away. */
  learn(operation: Operation, input: Record<string, unknown>, reply: unknown): void {
    const { granted, ended } = grantsIn(operation, input, reply)
    for (const name of ended) this.forget(name)
    for (const lease of granted) this.remember(lease)
  }

  private remember({ name, fence }: Leased): void {
    this.known.delete(name)
    this.known.set(name, fence)
    // Leases that ran out unnoticed would otherwise be remembered for ever.
    if (this.known.size > REMEMBERED_MAX) this.forget(this.known.keys().next().value!)
  }
}
