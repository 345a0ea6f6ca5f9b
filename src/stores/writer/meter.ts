import { ASK_BOUNDS, countIn, emptyAsks } from '../../core/stats/histogram.ts'
import type { RefusedWrite } from '../../core/stats/stat.ts'

/** Refusals that wait for a commit to be counted with; more than this are not told by lock. */
const UNWRITTEN_MAX = 1_000

/** Why a store cannot be read or written, and since when; `told`: the alert was delivered. */
export interface Trouble {
  message: string
  since: string
  told: boolean
}

/** What one process saw of a store since it opened it. Kept in memory: for /metrics. */
export class Meter {
  /** Batches by how many asks each answered, those without an event among them. */
  readonly batches = emptyAsks()
  asks = 0
  /** What doors of this process refused, reads too and before the store was asked, by code. */
  readonly turnedAway = new Map<string, number>()
  /** Refused since the last commit with events. They join the next: a refusal costs no sync. */
  unwritten: RefusedWrite[] = []

  private readonly troubles: { read?: string; write?: string } = {}
  private since: string | undefined
  private told = false
  private readonly watchers = new Set<() => void>()

  /** Undefined while the store can be read and written. */
  get trouble(): Trouble | undefined {
    const message = this.troubles.write ?? this.troubles.read
    const { since, told } = this
    return message === undefined || since === undefined ? undefined : { message, since, told }
  }

  markTold(): void {
    this.told = true
  }

  /** Told when trouble begins, and when it is over. */
  onChange(watcher: () => void): () => void {
    this.watchers.add(watcher)
    return () => this.watchers.delete(watcher)
  }

  failed(what: 'read' | 'write', error: unknown): void {
    this.troubles[what] = error instanceof Error ? error.message : String(error)
    if (this.since !== undefined) return
    this.since = new Date().toISOString()
    for (const watcher of this.watchers) watcher()
  }

  worked(what: 'read' | 'write'): void {
    if (this.troubles[what] === undefined) return
    delete this.troubles[what]
    if (this.trouble !== undefined) return
    this.since = undefined
    this.told = false
    for (const watcher of this.watchers) watcher()
  }

  turnAway(code: string): void {
    this.turnedAway.set(code, (this.turnedAway.get(code) ?? 0) + 1)
  }

  answered(asks: number, refused: RefusedWrite[], written: boolean): void {
    countIn(this.batches, ASK_BOUNDS, asks)
    this.asks += asks
    if (written) this.unwritten = []
    else if (this.unwritten.length < UNWRITTEN_MAX) this.unwritten.push(...refused)
  }
}
