const LOOK_MS = 1

/**
 * When a batch has gathered. Those who were answered together ask again one after the other, and
 * to commit the first without the rest costs a sync.
 */
export class Gathering {
  /**
   * How long after an answer those who got it may take to ask again: nothing in this process, which
   * sees at once whether more come; longer for those who are a socket away. They get the processor
   * meanwhile.
   */
  linger_ms = 0
  private answered = 0
  private answered_ms = 0

  /** Waits as long as more asks come with every turn of the event loop, or are about to. */
  async whole(waiting: readonly unknown[], most: number): Promise<void> {
    const until_ms = this.answered_ms + this.linger_ms
    const expected = Math.min(this.answered, most)
    for (let seen = 0; seen < most;) {
      const isWhole = this.linger_ms === 0 || waiting.length >= expected
      if (waiting.length === seen && (isWhole || performance.now() >= until_ms)) return
      seen = waiting.length
      await new Promise<void>((resolve) => {
        if (isWhole) setImmediate(resolve)
        else setTimeout(resolve, LOOK_MS)
      })
    }
  }

  /** So many were answered just now. */
  done(asks: number): void {
    this.answered = asks
    this.answered_ms = performance.now()
  }
}
