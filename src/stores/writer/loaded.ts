import { NotLoaded } from '../../core/view.ts'
import type { Backend } from '../port.ts'

/** Takes a step over rows of `backend`. What it turns out to need is loaded; it begins again. */
export async function untilLoaded<T>(backend: Backend, step: () => T): Promise<T> {
  for (;;) {
    try {
      return step()
    } catch (error) {
      if (!(error instanceof NotLoaded)) throw error
      await backend.prefetch([error.need])
    }
  }
}
