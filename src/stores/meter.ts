import { ASK_BOUNDS, countIn, emptyAsks } from '../core/histogram.ts'
import type { RefusedWrite } from '../core/stat.ts'

/** Refusals that wait for a commit to be counted with; more than this are not told by lock. */
const UNWRITTEN_MAX = 1_000

/** What one process saw of a store since it opened it. Kept in memory: for /metrics. */
export class Meter {
  /** Batches by how many asks each answered, those without an event among them. */
  readonly batches = emptyAsks()
  asks = 0
  readonly refusals = new Map<string, number>()
  /** Refused since the last commit with events. They join the next: a refusal costs no sync. */
  unwritten: RefusedWrite[] = []

  answered(asks: number, refused: RefusedWrite[], written: boolean): void {
    countIn(this.batches, ASK_BOUNDS, asks)
    this.asks += asks
    for (const { code } of refused) this.refusals.set(code, (this.refusals.get(code) ?? 0) + 1)
    if (written) this.unwritten = []
    else if (this.unwritten.length < UNWRITTEN_MAX) this.unwritten.push(...refused)
  }
}
