import type { SweepProgress, sweep } from '../../core/locks/sweep.ts'

/** To ask about every process that has something is cheap, but not so cheap as to do it always. */
const ROUND_MS = 1_000

/**
 * How far the writer has come in looking for what is over. A round goes from write to write until
 * every process of this seat was asked about; the next one begins a second after it began.
 */
export class Rounds {
  private began_ms = Number.NEGATIVE_INFINITY
  private progress: SweepProgress = {}
  private more = false

  /** Where the next sweep begins. */
  next(now: number): SweepProgress {
    const { due, tickets_due, leases, tickets } = this.progress
    const isOver = leases === null && tickets === null
    return isOver && now - this.began_ms >= ROUND_MS ? { due, tickets_due } : this.progress
  }

  /** Whether a sweep from here begins a round. */
  isFirst({ leases, tickets }: SweepProgress): boolean {
    return leases === undefined && tickets === undefined
  }

  /** What this sweep did is committed. */
  done({ progress, more }: Pick<ReturnType<typeof sweep>, 'progress' | 'more'>, now: number): void {
    if (this.isFirst(this.next(now))) this.began_ms = now
    this.progress = progress
    this.more = more
  }

  /** Whether the last sweep left something for the next one. */
  get isUnderWay(): boolean {
    return this.more
  }

  /** Somebody has seen that something is over. */
  restart(): void {
    this.progress = {}
  }
}
