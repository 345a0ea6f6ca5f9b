import { Refusal } from '../../core/refusal.ts'
import { type Database, RESULT, resultCode } from './driver.ts'

const PAUSE_MS_MIN = 1
const PAUSE_MS_MAX = 24

/**
 * Runs `step` until another process no longer stands in its way. Pauses are short and random, so
 * that among many writers everybody gets a turn; the event loop stays free meanwhile.
 * Gives up only when nobody at all has committed for `busy_timeout_ms`.
 */
export async function patiently<T>(
  db: Database,
  busy_timeout_ms: number,
  step: () => T,
): Promise<T> {
  let seen: unknown
  let since = performance.now()
  for (let pause_ms = PAUSE_MS_MIN; ; pause_ms = Math.min(pause_ms * 2, PAUSE_MS_MAX)) {
    try {
      return step()
    } catch (error) {
      const code = resultCode(error)
      if (code !== RESULT.busy && code !== RESULT.locked) throw error
    }
    const now = progress(db)
    if (now !== seen) since = performance.now()
    seen = now
    if (performance.now() - since > busy_timeout_ms) throw stuck(busy_timeout_ms)
    await new Promise((resolve) => void setTimeout(resolve, Math.random() * pause_ms))
  }
}

/** Only `BEGIN IMMEDIATE`: a plain one that writes later fails although nothing is wrong. */
export function beginPatiently(db: Database, busy_timeout_ms: number): Promise<void> {
  return patiently(db, busy_timeout_ms, () => db.exec('BEGIN IMMEDIATE'))
}

/** Changes whenever another connection commits. */
function progress(db: Database): unknown {
  try {
    return db.prepare('PRAGMA data_version').get()?.['data_version']
  } catch {
    return undefined
  }
}

function stuck(busy_timeout_ms: number): Refusal {
  return new Refusal(
    'unavailable',
    `The store is locked by another process that made no progress for ${busy_timeout_ms / 1000} s`,
    { next: 'Look for a stopped leasehold process (leasehold doctor), then try again.' },
  )
}
