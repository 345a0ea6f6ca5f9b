import { setImmediate, setTimeout as pause } from 'node:timers/promises'
import { folderOf, type Place, retentionIn } from '../stores/open.ts'
import { forgetOld } from '../stores/writer/prune.ts'
import type { Store } from '../stores/writer/store.ts'
import { pruneRuns } from './dispatch/run_care.ts'

/** A daemon has other things to do as it starts. */
const FIRST_MS = 60_000
const EVERY_MS_MIN = 60_000
const EVERY_MS_MAX = 3600_000
/** When so many went, more will come soon. */
const MANY = 10_000

/**
 * Takes away what is over, in small steps, as often as there is much of it: a store does not grow
 * without end, and an idle one costs one timer. Between two steps it rests as long as the last one
 * took, so that others have at least half of the time.
 */
export function startPruner(store: Store, place: Place, first_ms = FIRST_MS): () => Promise<void> {
  const stopping = new AbortController()
  const { signal } = stopping
  let timer: NodeJS.Timeout
  let pass: Promise<void> = Promise.resolve()
  let every_ms = EVERY_MS_MIN
  const prune = async () => {
    const gone = await prunePass(store, place, signal)
    every_ms = gone > MANY ? EVERY_MS_MIN : Math.min(every_ms * 2, EVERY_MS_MAX)
  }
  const begin = () => {
    // If it cannot be done now, the next time will do.
    const next = () => void (timer = setTimeout(begin, every_ms))
    pass = prune()
      .catch(() => undefined)
      .finally(() => !signal.aborted && next())
  }
  timer = setTimeout(begin, first_ms)
  return async () => {
    stopping.abort()
    clearTimeout(timer)
    await pass
  }
}

async function prunePass(store: Store, place: Place, signal: AbortSignal): Promise<number> {
  store.retention = retentionIn(place)
  let began_ms = performance.now()
  const rest = async () => {
    const took_ms = performance.now() - began_ms
    await (signal.aborted ? setImmediate() : pause(took_ms, undefined, { signal }))
    began_ms = performance.now()
  }
  const forgotten = await forgetOld(store, { retention: store.retention, rest, signal })
  await pruneRuns(store, folderOf(place), store.retention.output, rest)
  return Object.values(forgotten).reduce((sum, gone) => sum + gone, 0)
}
