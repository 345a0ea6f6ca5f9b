import { endsLease, type Refusal } from '../core/refusal.ts'

/** What is tried again sooner: in a third of the TTL there is room for some tries. */
const RETRIES_PER_TTL = 12

export interface Renewing {
  ttl_ms: number
  /** When the lease was asked for, by `performance.now`: it counts from then at least. */
  since_ms?: number
  renew: () => Promise<unknown>
  /**
   * Called once: the lease is over, by this refusal, or may be before we could hear of it. Left out
   * where nothing has to be stopped: then it is tried until a refusal says that the lease is over.
   */
  lose?: (why: string, over: Refusal | undefined) => void
}

/**
 * Renews at a third of the TTL. When the lease is lost, or nothing was acknowledged for two thirds
 * of it, `lose` is called while the rest of the TTL still protects what runs under it. Returns how
 * to end it.
 */
export function keepRenewing(renewing: Renewing): () => void {
  const { ttl_ms, since_ms = performance.now(), renew, lose } = renewing
  let over = false
  let late: NodeJS.Timeout | undefined
  const end = () => {
    over = true
    clearTimeout(next)
    clearTimeout(late)
  }
  const loseNow = (why: string, refusal?: Refusal) => {
    if (over) return
    end()
    lose?.(why, refusal)
  }
  // Beside the calls: a store that does not answer at all must not keep us from stopping.
  const watch = (asked_ms: number) => {
    clearTimeout(late)
    if (over || !lose) return
    const left_ms = asked_ms + (ttl_ms * 2) / 3 - performance.now()
    late = setTimeout(() => loseNow('it could not be renewed in time'), left_ms)
  }
  const beat = async () => {
    const asked_ms = performance.now()
    let pause_ms = ttl_ms / 3
    try {
      await renew()
      watch(asked_ms)
    } catch (error) {
      if (endsLease(error)) loseNow(String(error), error)
      pause_ms = (ttl_ms / RETRIES_PER_TTL) * (0.5 + Math.random())
    }
    if (!over) next = setTimeout(() => void beat(), pause_ms)
  }
  watch(since_ms)
  let next = setTimeout(() => void beat(), since_ms + ttl_ms / 3 - performance.now())
  return end
}
