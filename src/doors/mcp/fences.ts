import { lockOf } from '../../core/lease.ts'
import { Refusal } from '../../core/refusal.ts'
import type { ShownLease } from '../../operations/locks.ts'
import { keyOf } from '../../core/rows.ts'

interface Granted {
  agent: string
  name: string
  fence: number
  timer: NodeJS.Timeout
}

type Renew = (agent: string, name: string, fence: number) => Promise<unknown>

/** What is over for good: renewing it again would change nothing. */
const OVER = new Set(['lease_expired', 'fence_stale', 'held', 'not_found', 'forbidden'])

/** After these an agent holds what the answer says, or no longer what the input named. */
const GRANTS = new Set(['lock.acquire', 'lock.renew', 'task.claim', 'task.status', 'reserve.add'])
const ENDS = new Set(['lock.release', 'lock.hand_off', 'task.status'])

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
  learn(agent: string, operation: string, input: Record<string, unknown>, result: unknown): void {
    if (ENDS.has(operation)) this.forget(agent, lockIn(input))
    if (operation === 'reserve.release') {
      for (const { name } of (result as { items: { name: string }[] }).items) {
        this.forget(agent, name)
      }
    }
    if (GRANTS.has(operation)) for (const lease of leasesIn(result)) this.keep(agent, lease)
  }

  close(): void {
    for (const { timer } of this.granted.values()) clearInterval(timer)
    this.granted.clear()
  }

  private keep(agent: string, { name, fence, ttl_seconds }: ShownLease): void {
    this.forget(agent, name)
    const timer = setInterval(() => void this.beat(lease), (ttl_seconds * 1000) / 3)
    const lease: Granted = { agent, name, fence, timer }
    timer.unref()
    this.granted.set(keyOf(agent, name), lease)
  }

  private forget(agent: string, name: string | undefined): void {
    if (name === undefined) return
    const key = keyOf(agent, name)
    clearInterval(this.granted.get(key)?.timer)
    this.granted.delete(key)
  }

  private async beat({ agent, name, fence, timer }: Granted): Promise<void> {
    try {
      await this.renew(agent, name, fence)
    } catch (error) {
      if (error instanceof Refusal && OVER.has(error.code)) clearInterval(timer)
    }
  }
}

/** The lock that an input is about; a memory may be written under the lock of a task. */
export function lockIn({ id, task_id = id, name }: Record<string, unknown>): string | undefined {
  if (typeof task_id === 'string') return lockOf(task_id)
  return typeof name === 'string' ? name : undefined
}

function leasesIn(result: unknown): ShownLease[] {
  const { lease, items = [lease ?? result] } = result as { lease?: unknown; items?: unknown[] }
  return items.filter((each) => isLease(each))
}

function isLease(value: unknown): value is ShownLease {
  return typeof value === 'object' && value !== null && 'lock_id' in value
}
