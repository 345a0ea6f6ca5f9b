import { admits } from '../../core/caller.ts'
import { keyOf } from '../../core/rows.ts'
import { grantsIn } from '../../operations/grants.ts'
import type { ShownLease } from '../../operations/locks.ts'
import type { Operation } from '../../operations/operation.ts'
import { keepRenewing } from '../../reach/renewing.ts'

interface Granted {
  agent: string
  name: string
  fence: number
  ttl_ms: number
  /** Until when the store keeps it, as far as we know. */
  expires_ms: number
  end: () => void
}

/** How leases are asked about and renewed. */
interface Leases {
  expiry(lease: Omit<Granted, 'end'>): Promise<number | null>
  renew(lease: Omit<Granted, 'end'>): Promise<ShownLease>
}

/** An agent that thinks or waits for a person may be silent for so long; its locks are kept. */
const SILENCE_MS = 30 * 60_000

/** Two looks at one expiry may differ by so much: it is told as a time on the wall. */
const SLACK_MS = 1_000

/**
 * The leases that this process was granted, by agent and lock. Models forget to send fences, to
 * renew and to release; this does the first two for them while the agent shows life. A pipe may
 * stay open for ever: an agent that was silent for half an hour, or for a whole TTL where that is
 * longer, has forgotten its locks, and they run out. A lease that was lost keeps its fence here:
 * the next write under it must be refused as stale, not taken for a new one.
 */
export class ToolFences {
  private readonly granted = new Map<string, Granted>()
  /** When each agent last showed life, and how many of its calls are under way. */
  private readonly seen = new Map<string, { at_ms: number; open: number }>()

  constructor(
    private readonly leases: Leases,
    private readonly silence_ms = SILENCE_MS,
  ) {}

  /** A call of this agent begins, which is a sign of life until it has ended. */
  begin(agent: string): () => void {
    const life = this.lifeOf(agent)
    life.open += 1
    return () => {
      life.open -= 1
      life.at_ms = performance.now()
    }
  }

  private lifeOf(agent: string) {
    let life = this.seen.get(agent)
    if (!life) this.seen.set(agent, (life = { at_ms: performance.now(), open: 0 }))
    return life
  }

  /** What is nested under an agent speaks for it too: the agent waits for it. */
  private isAlive({ agent, ttl_ms }: Granted): boolean {
    const since_ms = performance.now() - Math.max(ttl_ms, this.silence_ms)
    return [...this.seen].some(([id, { at_ms, open }]) => {
      return admits(agent, id) && (open > 0 || at_ms >= since_ms)
    })
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
    for (const { end } of this.granted.values()) end()
    this.granted.clear()
  }

  private keep(agent: string, { name, fence, ttl_seconds, expires_at }: ShownLease): void {
    this.forget(agent, name)
    const ttl_ms = ttl_seconds * 1000
    const end = keepRenewing({ ttl_ms, renew: () => this.renew(lease) })
    const expires_ms = Date.parse(expires_at)
    const lease: Granted = { agent, name, fence, ttl_ms, expires_ms, end }
    this.granted.set(keyOf(agent, name), lease)
  }

  private forget(agent: string, name: string): void {
    const key = keyOf(agent, name)
    this.granted.get(key)?.end()
    this.granted.delete(key)
  }

  private async renew(lease: Granted): Promise<void> {
    // Renewed by another than us: by the hooks of the same agent, which are a sign of life.
    const expires_ms = await this.leases.expiry(lease)
    if ((expires_ms ?? 0) > lease.expires_ms + SLACK_MS) {
      this.lifeOf(lease.agent).at_ms = performance.now()
      lease.expires_ms = expires_ms!
    }
    if (!this.isAlive(lease)) return
    lease.expires_ms = Date.parse((await this.leases.renew(lease)).expires_at)
  }
}
