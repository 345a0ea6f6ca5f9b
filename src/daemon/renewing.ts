import { endsLease } from '../core/refusal.ts'

/** What is tried again sooner: in a third of the TTL there is room for some tries. */
const RETRIES_PER_TTL = 12

export interface Renewing {
  ttl_ms: number
  renew: () => Promise<unknown>
  /** Called once: the lease is over (`isOver`), or may be before we could hear of it. */
  lose: (why: string, isOver: boolean) => void
}

/**
 * Renews at a third of the TTL. When the lease is lost, or nothing was acknowledged for two thirds
 * of it, `lose` is called while the rest of the TTL still protects what runs under it. Returns how
 * to end it.
 */
export function keepRenewing({ ttl_ms, renew, lose }: Renewing): () => void {
  let over = false
  let next: NodeJS.Timeout | undefined
  const end = () => {
    over = true
    clearTimeout(next)
    clearTimeout(late)
  }
  const loseNow = (why: string, isOver: boolean) => {
    if (over) return
    end()
    lose(why, isOver)
  }
  // Beside the calls: a store that does not answer at all must not keep us from stopping.
  const lateIn = (left_ms: number) =>
    setTimeout(() => loseNow('it could not be renewed in time', false), left_ms)
  let late = lateIn((ttl_ms * 2) / 3)
  const beat = async () => {
    const asked = performance.now()
    let pause_ms = ttl_ms / 3
    try {
      await renew()
      clearTimeout(late)
      if (!over) late = lateIn(asked + (ttl_ms * 2) / 3 - performance.now())
    } catch (error) {
      if (endsLease(error)) loseNow(String(error), true)
      pause_ms = (ttl_ms / RETRIES_PER_TTL) * (0.5 + Math.random())
    }
    if (!over) next = setTimeout(() => void beat(), pause_ms)
  }
  next = setTimeout(() => void beat(), ttl_ms / 3)
  return end
}
