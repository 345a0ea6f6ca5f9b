/** Ends a command that takes too long, or says nothing for too long. */
export class Watchdog {
  private readonly silence_ms: number | null
  private readonly limit: NodeJS.Timeout | undefined
  private quiet: NodeJS.Timeout | undefined
  private heard = performance.now()

  constructor(
    bounds: { time_limit_ms: number | null; silence_ms: number | null },
    private readonly stop: (reason: string) => void,
  ) {
    const { time_limit_ms, silence_ms } = bounds
    this.silence_ms = silence_ms
    if (time_limit_ms !== null) {
      this.limit = setTimeout(() => stop(`time limit of ${time_limit_ms / 1000} s`), time_limit_ms)
    }
    this.listen()
  }

  /** The command said something. */
  hear(): void {
    this.heard = performance.now()
  }

  end(): void {
    clearTimeout(this.limit)
    clearTimeout(this.quiet)
  }

  /** Looks again when the silence could be too long; a timer per chunk would cost more. */
  private listen(): void {
    if (this.silence_ms === null) return
    const left_ms = this.heard + this.silence_ms - performance.now()
    if (left_ms > 0) this.quiet = setTimeout(() => this.listen(), left_ms)
    else this.stop(`silent for ${this.silence_ms / 1000} s`)
  }
}
