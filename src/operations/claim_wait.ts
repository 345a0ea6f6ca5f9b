import { isRefusal } from '../core/refusal.ts'
import type { Store } from '../stores/writer/store.ts'

/** Where nobody tells us of other processes' commits, we look this often. */
const LOOK_MS = 1_000

interface Waiter {
  attempt(): Promise<void>
}

/**
 * Claims a task, and while none is ready (or the one asked for is held) waits for it: no ticket in
 * the store, but a line in this process, served in order of arrival when something may have become
 * ready. Ends with the claim, or with the last answer when time is up.
 */
export function waitForTask<O>(
  store: Store,
  ask: () => Promise<O>,
  { wait_ms, signal }: { wait_ms: number; signal?: AbortSignal | undefined },
): Promise<O> {
  return new Promise((resolve, reject) => {
    const line = lineFor(store)
    let answer: (() => void) | undefined
    let asking = false
    let over = false
    const finish = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', giveUp)
      line.leave(waiter)
      answer?.()
    }
    // A claim that is under way may still succeed, and its caller must hear of it: wait for it.
    const giveUp = () => {
      over = true
      if (answer && !asking) finish()
    }
    const waiter: Waiter = {
      attempt: async () => {
        asking = true
        let ended = true
        try {
          const reply = await ask()
          answer = () => resolve(reply)
          ended = (reply as { task: unknown }).task !== null
        } catch (error) {
          answer = () => reject(error)
          ended = !isRefusal(error, 'held')
        }
        asking = false
        if (ended || over) finish()
      },
    }
    const timer = setTimeout(giveUp, wait_ms)
    signal?.addEventListener('abort', giveUp)
    line.join(waiter)
  })
}

/** Those who wait on one store, in order of arrival. */
class Line {
  private readonly waiters = new Set<Waiter>()
  private serving = false
  private again = false
  private timer: NodeJS.Timeout | undefined

  constructor(private readonly store: Store) {
    store.onOpening(() => {
      if (this.waiters.size > 0) void this.serve()
    })
  }

  /** Joins behind those who wait already: they are asked first, then the new one. */
  join(waiter: Waiter): void {
    this.waiters.add(waiter)
    if (!this.store.isFollowing) this.timer ??= setInterval(() => void this.serve(), LOOK_MS)
    void this.serve()
  }

  leave(waiter: Waiter): void {
    this.waiters.delete(waiter)
    if (this.waiters.size > 0) return
    clearInterval(this.timer)
    this.timer = undefined
  }

  /** The writer decides in the order of asking, so all may ask at once. */
  private async serve(): Promise<void> {
    this.again = true
    if (this.serving) return
    this.serving = true
    while (this.again) {
      this.again = false
      await Promise.all(Array.from(this.waiters, (waiter) => waiter.attempt()))
    }
    this.serving = false
  }
}

const lines = new WeakMap<Store, Line>()

function lineFor(store: Store): Line {
  let line = lines.get(store)
  if (!line) lines.set(store, (line = new Line(store)))
  return line
}
