import type { Store } from '../stores/writer/store.ts'

/** Half of what is promised: a look that just missed it is followed by one in time. */
const LOOK_MS = 500

/**
 * Frees what is over within a second, also what nobody asks for: every write sweeps, so this only
 * has to notice that there is something to sweep. A look is a read of one row.
 */
export function startSweeper(store: Store): () => void {
  let busy = false
  const look = async () => {
    if (busy) return
    busy = true
    try {
      await store.sweep()
    } catch {
      // The store is in trouble and says so to everyone who asks; the next look tries again.
    } finally {
      busy = false
    }
  }
  const timer = setInterval(() => void look(), LOOK_MS)
  return () => clearInterval(timer)
}
