import type { Cursor } from '../../core/schema/indexes.ts'
import type { AnyRow, IndexName, TableName, Tables } from '../../core/schema/schema.ts'
import { type Need, NotLoaded } from '../../core/view.ts'
import type { Backend, Base } from '../port.ts'

/**
 * Takes a step over rows of `backend`. What it turns out to need is loaded, with `more` that it may
 * need then; it begins again.
 */
export async function untilLoaded<T>(
  backend: Backend,
  step: () => T,
  more: () => Need[] = () => [],
): Promise<T> {
  for (;;) {
    try {
      return step()
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error
      await backend.prefetch([error.need, ...more()])
    }
  }
}

/**
 * Rows that may not be loaded yet: those that are not are taken for missing, and named in `needs`.
 * A rule that is tried out on guesses goes on to the next row it looks at, so that most of what it
 * needs can be loaded in one step. What it answers means nothing.
 */
export class Guesses implements Base {
  readonly needs: Need[] = []

  constructor(private readonly base: Base) {}

  /** Runs `step` for its needs only; on guesses it may fail in any way. */
  tryOut(step: () => unknown): void {
    try {
      step()
    } catch {
      // Whether it fails in earnest shows when it is run on the rows themselves.
    }
  }

  get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    return this.orElse(undefined, () => this.base.get(table, key))
  }

  scan(index: IndexName, group: string, after: Cursor | undefined, limit: number): AnyRow[] {
    return this.orElse([], () => this.base.scan(index, group, after, limit))
  }

  private orElse<T>(guess: T, look: () => T): T {
    try {
      return look()
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error
      this.needs.push(error.need)
      return guess
    }
  }
}
