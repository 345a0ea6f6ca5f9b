import type { Histogram } from '../schema/stats.ts'

/** Upper bounds of times, about 1-2-5 apart: what a percentile is known to. */
export const TIME_BOUNDS_MS: readonly number[] = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 30_000, 60_000, 120_000, 300_000,
  600_000, 1_800_000, 3_600_000, 14_400_000, 86_400_000,
]

/** Upper bounds of how many asks one commit answers. */
export const ASK_BOUNDS: readonly number[] = [1, 2, 4, 8, 16, 32, 64, 128, 256]

const zeros = (bounds: readonly number[]) => Array<number>(bounds.length + 1).fill(0)

export const emptyTimes = (): Histogram => ({ buckets: zeros(TIME_BOUNDS_MS), sum_ms: 0 })
export const emptyAsks = (): number[] => zeros(ASK_BOUNDS)

export function bucketOf(bounds: readonly number[], value: number): number {
  const at = bounds.findIndex((bound) => value <= bound)
  return at < 0 ? bounds.length : at
}

/** Counts `value` in `buckets`, in place: the caller owns them. */
export function countIn(buckets: number[], bounds: readonly number[], value: number): void {
  buckets[bucketOf(bounds, value)]! += 1
}

/** Counts a time, in place. A clock that went back makes no negative ones. */
export function countTime(histogram: Histogram, ms: number): void {
  const time_ms = Math.max(0, ms)
  countIn(histogram.buckets, TIME_BOUNDS_MS, time_ms)
  histogram.sum_ms += time_ms
}

/** Buckets of times, of which only some are written down: index, number, index, number. */
export function timesIn(written: readonly number[]): number[] {
  const buckets = zeros(TIME_BOUNDS_MS)
  for (let i = 0; i < written.length; i += 2) buckets[written[i]!]! += written[i + 1]!
  return buckets
}

/** Only those that are not empty. */
export const writtenOf = (buckets: readonly number[]) =>
  buckets.flatMap((n, i) => (n > 0 ? [i, n] : []))

export const sumOf = (buckets: readonly number[]) => buckets.reduce((sum, n) => sum + n, 0)

/** Two rows of buckets with the same bounds, as one. */
export const addBuckets = (a: readonly number[], b: readonly number[]) =>
  a.map((n, i) => n + (b[i] ?? 0))

export const addTimes = (a: Histogram, b: Histogram): Histogram => ({
  buckets: addBuckets(a.buckets, b.buckets),
  sum_ms: a.sum_ms + b.sum_ms,
})

/**
 * The value that the part `p` of all does not exceed, as if values lay evenly within their bucket;
 * null when there are none. Those above the last bound are told as that bound.
 */
export function percentile(
  buckets: readonly number[],
  bounds: readonly number[],
  p: number,
): number | null {
  const wanted = sumOf(buckets) * p
  if (wanted === 0) return null
  let before = 0
  for (const [i, n] of buckets.entries()) {
    if (n > 0 && before + n >= wanted) {
      const low = i === 0 ? 0 : bounds[i - 1]!
      const high = bounds[i] ?? low
      return low + ((high - low) * (wanted - before)) / n
    }
    before += n
  }
  return bounds.at(-1)!
}
