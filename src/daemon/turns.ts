/** One after the other: there is one tree, and one index of each checkout. */
export class Turns {
  private last: Promise<unknown> = Promise.resolve()

  take<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.last.then(work)
    this.last = turn.catch(() => undefined)
    return turn
  }
}

/** Lines that are served at the same time, each one by one; `work` never fails. */
export class TurnsByLine {
  private readonly serving = new Map<string | null, Promise<void>>()
  private readonly waiting = new Set<string>()

  /** What is waiting already under that name will see what there is to do. */
  serve(line: string | null, name: string, work: () => Promise<void>): void {
    const key = JSON.stringify([line, name])
    if (this.waiting.has(key)) return
    this.waiting.add(key)
    const before = this.serving.get(line) ?? Promise.resolve()
    const served = before.then(() => {
      this.waiting.delete(key)
      return work()
    })
    this.serving.set(line, served)
    void served.then(() => this.serving.get(line) === served && this.serving.delete(line))
  }

  async over(): Promise<void> {
    await Promise.all(this.serving.values())
  }
}

/** Work that is done once more when somebody wakes it meanwhile, while it `mayWork`. */
export class WorkRounds {
  private again = false
  private working: Promise<void> | undefined
  private timer: NodeJS.Timeout | undefined

  /** A round never fails. */
  constructor(
    private readonly mayWork: () => boolean,
    private readonly round: () => Promise<void>,
  ) {}

  wake(): void {
    this.again = true
    if (this.mayWork()) this.working ??= this.work().finally(() => (this.working = undefined))
  }

  /** Unless somebody wakes it before: what it waits for may come without an event. */
  wakeIn(ms: number): void {
    clearTimeout(this.timer)
    this.timer = setTimeout(() => this.wake(), ms).unref()
  }

  /** Until the round that is under way has ended; it wakes no more by itself. */
  async over(): Promise<void> {
    clearTimeout(this.timer)
    await this.working
  }

  private async work(): Promise<void> {
    while (this.mayWork() && this.again) {
      this.again = false
      await this.round()
    }
  }
}
