import type { Caller } from '../core/caller.ts'

/** What a program of ours asks, and for whom. */
export interface ReachAsk {
  operation: { name: string }
  input: Record<string, unknown>
  caller: Caller
  signal?: AbortSignal | undefined
  /** Of the lease that this is about, where the input does not say it: see `patienceFor`. */
  ttl_ms?: number | undefined
}

/** Nobody answered: there is no daemon, or it went away in the middle of the call. */
export class Unanswered extends Error {
  /** A daemon is there, or should be, and does not answer. */
  readonly isSilence: boolean
  /** What a person can do about that. */
  readonly next: string

  constructor(message: string, silence?: { next: string }) {
    super(message)
    this.isSilence = silence !== undefined
    this.next = silence?.next ?? ''
  }
}
