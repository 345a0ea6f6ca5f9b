import { pruneStore } from '../stores/care.ts'
import { folderOf, type Place } from '../stores/open.ts'
import { pruneRuns } from './run_care.ts'

const EVERY_MS = 3600_000
const EVENTS_MAX = 1_000_000
const AGE_MS = 30 * 24 * 3600_000

/** Forgets old events and what old runs wrote, once an hour: a store does not grow without end. */
export function startPruner(place: Place): () => void {
  const prune = async () => {
    const since = new Date(Date.now() - AGE_MS)
    const keep = { events: EVENTS_MAX, since }
    pruneRuns(folderOf(place), since)
    return pruneStore(place, keep)
  }
  // If it cannot be done now, the next hour will do.
  const timer = setInterval(() => void prune().catch(() => undefined), EVERY_MS)
  return () => clearInterval(timer)
}
