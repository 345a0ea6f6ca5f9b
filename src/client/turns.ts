import { Refusal } from '../core/refusal.ts'
import { pause } from '../reach/patience.ts'

const lines = new Map<string, Promise<void>>()

/**
 * One at a time inside this process, before the store is asked: to the store, two asks of one
 * agent or process are the same holder, so the second would take over from the first or be taken
 * for a deadlock. Returns how to end the turn; refuses with `held` when time is up.
 */
export async function takeTurn(
  lock: string,
  place: string,
  wait_ms: number,
  signal: AbortSignal | undefined,
): Promise<() => void> {
  const key = `${place}\n${lock}`
  const before = lines.get(key)
  let end: () => void = () => undefined
  const mine = new Promise<void>((resolve) => (end = resolve))
  const last = Promise.all([before, mine]).then(() => {
    if (lines.get(key) === last) lines.delete(key)
  })
  lines.set(key, last)
  if (!before) return end
  const stop = new AbortController()
  const either = signal ? AbortSignal.any([signal, stop.signal]) : stop.signal
  try {
    const late = pause(wait_ms, either).then(() => Promise.reject(held(lock)))
    await Promise.race([before, late])
    return end
  } catch (error) {
    end()
    throw error
  } finally {
    stop.abort()
  }
}

function held(name: string): Refusal {
  return new Refusal('held', `${name} is held by this program itself`, {
    next: 'Wait longer (wait_seconds), or do both under one lock.',
    details: { name, by_you: true },
  })
}
