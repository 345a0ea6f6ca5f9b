import { quoted, word } from '../core/quote.ts'
import type { Refusal } from '../core/refusal.ts'
import type { Store } from '../stores/writer/store.ts'

/** A door that is knocked at all night must not fill the disk with lines. */
const LINES_MAX = 60
const WITHIN_MS = 60_000

let lines = 0
let since_ms = Number.NEGATIVE_INFINITY

/**
 * Counts a refusal for /metrics. Where an agent tried what it may not, the log of this server tells
 * who and what, a line a second at most; of strangers without a token there is only the count, so
 * that they cannot crowd out the others. No event is recorded: an agent that may change nothing
 * must not be able to make the store grow.
 */
export function noteRefusal(
  { meter }: Store,
  { code, message }: Refusal,
  asked: string,
  agent: string | undefined,
): void {
  meter.turnAway(code)
  if (code !== 'forbidden' || agent === undefined) return
  const now_ms = performance.now()
  if (now_ms - since_ms > WITHIN_MS) [lines, since_ms] = [0, now_ms]
  lines += 1
  if (lines > LINES_MAX) return
  const more = lines === LINES_MAX ? '; more of this minute are only counted' : ''
  const what = `refused ${word(asked)} to ${word(agent)}: ${quoted(message)}${more}`
  process.stderr.write(`leasehold: ${what}\n`)
}
