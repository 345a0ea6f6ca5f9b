import { setTimeout as sleep } from 'node:timers/promises'
import { isMomentary, isRefusal, Refusal } from '../core/refusal.ts'
import { Unanswered } from './ask.ts'

const FIRST_MS = 25
const LAST_MS = 1_000
/** An attempt that lasted this long had somebody to talk to: what fails then fails anew. */
const LONG_MS = 2_000

/** Waits longer with every try, and never as long as the others who failed at the same moment. */
export async function backOff(tries: number, signal?: AbortSignal): Promise<void> {
  const most_ms = Math.min(FIRST_MS * 2 ** tries, LAST_MS)
  await pause(most_ms * (0.5 + Math.random() / 2), signal)
}

/** Resolves after a time, or rejects with the reason as soon as `signal` is aborted. */
export async function pause(ms: number, signal?: AbortSignal): Promise<void> {
  try {
    await sleep(ms, undefined, signal && { signal })
  } catch {
    signal?.throwIfAborted()
  }
}

/**
 * Tries until there is an answer, for at most `retry_ms` without one. A refusal is an answer,
 * unless it says that the server is not there or too busy just now.
 */
export async function persist<T>(
  attempt: () => Promise<T>,
  retry_ms: number,
  signal: AbortSignal | undefined,
): Promise<T> {
  let failing_ms = Number.NaN
  for (let tries = 0; ; tries += 1) {
    signal?.throwIfAborted()
    const asked_ms = performance.now()
    try {
      return await attempt()
    } catch (error) {
      signal?.throwIfAborted()
      if (!mayPass(error)) throw error
      const now = performance.now()
      const isSilence = error instanceof Unanswered && error.isSilence
      if (!(failing_ms <= now) || (now - asked_ms >= LONG_MS && !isSilence)) {
        // Silence is counted from its beginning: nobody was there to talk to.
        failing_ms = isSilence ? asked_ms : now
        tries = 0
      }
      if (now - failing_ms >= retry_ms) throw unavailable(error)
      await backOff(tries, signal)
    }
  }
}

/** Whether asking again may help: nobody answered, or the answer was "not now", not "not here". */
export function mayPass(error: unknown): boolean {
  if (error instanceof Unanswered) return true
  return isMomentary(error) && error.details['lasting'] !== true
}

function unavailable(error: unknown): unknown {
  if (!(error instanceof Unanswered)) return error
  return new Refusal('unavailable', `No server answers: ${error.message}`, {
    next: error.next || 'Start it (leasehold up), then ask again with the same request id.',
    details: { outcome: 'unknown' },
  })
}

const TRIES_MAX = 5

/**
 * Runs `edit` again while it is refused as `conflict`, up to five times. `edit` has to read what it
 * changes anew each time; it gets the refusal before, which carries what is there now.
 */
export async function retryOnConflict<T>(
  edit: (conflict: Refusal | undefined) => Promise<T>,
  { tries = TRIES_MAX, signal }: { tries?: number; signal?: AbortSignal } = {},
): Promise<T> {
  let conflict: Refusal | undefined
  for (let tried = 1; ; tried += 1) {
    try {
      return await edit(conflict)
    } catch (error) {
      if (!isRefusal(error, 'conflict') || tried >= Math.min(tries, TRIES_MAX)) throw error
      conflict = error
      await backOff(tried, signal)
    }
  }
}
