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
    if (operation.effect === 'read' || !isObject(reply)) return
    const lock = lockIn(operation, input)
    const gone = reply['released'] === true || reply['lease'] === null || 'to' in operation.input
    if (gone && lock !== undefined) this.forget(lock)
    if ('to' in operation.input) return
    const items = Array.isArray(reply['items']) ? reply['items'] : [reply, reply['lease']]
    for (const item of items) if (isLease(item)) this.remember(item)
  }

  private remember({ name, fence }: Leased): void {
    this.known.delete(name)
    this.known.set(name, fence)
    // Leases that ran out unnoticed would otherwise be remembered for ever.
    if (this.known.size > REMEMBERED_MAX) this.forget(this.known.keys().next().value!)
  }
}

/** The lock that an operation writes under: named, or that of its task. */
function lockIn(operation: Operation, input: Record<string, unknown>): string | undefined {
  if (typeof input['name'] === 'string') return input['name']
  const task = input['id'] ?? input['task_id']
  const ofTask = 'fence' in operation.input && typeof task === 'string'
  return ofTask ? `task:${task}` : undefined
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isLease(value: unknown): value is Leased {
  // A run names its lock too, and is no lease.
  return isObject(value) && 'lock_id' in value && 'name' in value
}
