import { Refusal } from '../../core/refusal.ts'
import { keyOf } from '../../core/rows.ts'
import { grantsIn } from '../../operations/grants.ts'
import type { ShownLease } from '../../operations/locks.ts'
import type { Operation } from '../../operations/operation.ts'

interface Granted {
  agent: string
  name: string
  fence: number
  ttl_ms: number
  timer: NodeJS.Timeout
}

type Renew = (lease: Omit<Granted, 'timer'>) => Promise<unknown>

/** What is over for good: renewing it again would change nothing. */
const OVER = new Set(['lease_expired', 'fence_stale', 'held', 'not_found', 'forbidden'])

/**
 * The leases that this process was granted, by agent and lock. Models forget to send fences and to
 * renew; this does both for them, as long as the process lives. A lease that was lost keeps its
 * fence here: the next write under it must be refused as stale, not taken for a new one.
 */
export class Fences {
  private readonly renew: Renew
  private readonly granted = new Map<string, Granted>()

  constructor(renew: Renew) {
    this.renew = renew
  }

  of(agent: string, name: string): number | undefined {
    return this.granted.get(keyOf(agent, name))?.fence
  }

  /** Learns from an answer what the agent holds now, and what it holds no longer. */
  learn(agent: string, operation: Operation, input: Record<string, unknown>, reply: unknown): void {
    const { granted, ended } = grantsIn(operation, input, reply)
    for (const name of ended) this.forget(agent, name)
    for (const lease of granted) this.keep(agent, lease)
  }

  close(): void {
    for (const { timer } of this.granted.values()) clearInterval(timer)
    this.granted.clear()
  }

  private keep(agent: string, { name, fence, ttl_seconds }: ShownLease): void {
    this.forget(agent, name)
    const ttl_ms = ttl_seconds * 1000
    const timer = setInterval(() => void this.beat(lease), ttl_ms / 3)
    const lease: Granted = { agent, name, fence, ttl_ms, timer }
    timer.unref()
    this.granted.set(keyOf(agent, name), lease)
  }

  private forget(agent: string, name: string): void {
    const key = keyOf(agent, name)
    clearInterval(this.granted.get(key)?.timer)
    this.granted.delete(key)
  }

  private async beat(lease: Granted): Promise<void> {
    try {
      await this.renew(lease)
    } catch (error) {
      if (error instanceof Refusal && OVER.has(error.code)) clearInterval(lease.timer)
    }
  }
}
