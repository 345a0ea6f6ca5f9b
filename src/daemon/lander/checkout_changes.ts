import { type FSWatcher, watch } from 'node:fs'
import { attempt } from '../../core/attempt.ts'

/** Tells when git changes something in folders of its own: somebody did what was waited for. */
export class CheckoutChanges {
  private readonly watched = new Map<string, FSWatcher>()

  /** Calls `then` at the next change in one of `folders`; each is waited for once at a time. */
  once(folders: string[], then: () => void): void {
    for (const folder of folders) {
      if (this.watched.has(folder)) continue
      // One that cannot be watched is looked at again now and then all the same.
      const watcher = attempt(() => watch(folder, { persistent: false }), undefined)
      if (!watcher) continue
      this.watched.set(folder, watcher)
      const changed = (_: string, name: string | Buffer | null) => {
        // Copies of an index, of ours, are no change of anybody's.
        if (!name?.toString().startsWith('leasehold-') && this.forget(folder)) then()
      }
      watcher.on('change', changed).on('error', () => this.forget(folder))
    }
  }

  close(): void {
    for (const folder of this.watched.keys()) this.forget(folder)
  }

  private forget(folder: string): boolean {
    this.watched.get(folder)?.close()
    return this.watched.delete(folder)
  }
}
