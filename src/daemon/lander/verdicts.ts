import type { Checked } from './check.ts'

const KNOWN_MAX = 200

/** The newest are kept. */
class Newest<T> extends Map<string, T> {
  put(key: string, value: T): void {
    this.set(key, value)
    if (this.size > KNOWN_MAX) this.delete(this.keys().next().value!)
  }
}

/** What commits on top of others became, and what checks said of them: nothing is done twice. */
export class Verdicts {
  readonly tops = new Newest<string>()
  readonly checked = new Newest<Checked>()

  /** One that failed may pass another time, so that is known for one turn only. */
  forgetFailures(): void {
    for (const [key, { failed }] of this.checked) if (failed !== null) this.checked.delete(key)
  }
}
