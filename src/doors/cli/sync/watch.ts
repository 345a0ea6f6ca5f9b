import { type FSWatcher, watch } from 'node:fs'
import { join } from 'node:path'
import { isMomentary, isRefusal, type Refusal } from '../../../core/refusal.ts'
import { foldersIn, KINDS } from './files.ts'
import type { Synced, SyncPlan } from './folder.ts'
import { sync } from './sync.ts'

/** Nobody may have touched a file for so long: who saves one writes it in several steps. */
const QUIET_MS = 150
/** But where files are touched all the time, it is looked at all the same. */
const UNQUIET_MS = 2_000
/** A missing file is gone after so long: some programs save by removing and writing anew. */
const GONE_MS = 2_000
/** The truth: a file system may not tell, and a note may expire without an event. */
const RESCAN_MS = 60_000
const RETRY_MS = 5_000

export interface Watching {
  plan: SyncPlan
  allowDeletions: boolean
  /** What each look has done; also when that is nothing. */
  say(synced: Synced): void
  /** Something is in the way; it goes on. */
  warn(refusal: Refusal): void
  /** Calls back when notes may have changed in the store; returns how to stop. */
  listen(changed: () => void): () => void
  signal: AbortSignal
}

/**
 * Syncs a folder whenever a file or a note has changed, until the signal is aborted; a sync that is
 * under way then is completed. The caller holds the lock of the folder. Refuses what the first
 * sync refuses, and later only what does not pass.
 */
export async function watchFolder(watching: Watching): Promise<void> {
  const { plan, allowDeletions, signal } = watching
  const bell = new Bell(signal)
  const folders = new WatchedFolders(plan.dir, () => bell.touch())
  const deaf = watching.listen(() => bell.ring())
  const absences = new Absences()
  let isFirst = true
  try {
    while (!signal.aborted) {
      // Before the look: what changes after it is heard of.
      folders.refresh()
      let pause_ms = RESCAN_MS
      try {
        const isGone = (path: string) => absences.isGone(path)
        const synced = await sync({ ...plan, isGone }, allowDeletions)
        if (folders.refresh()) bell.ring()
        pause_ms = Math.min(pause_ms, absences.next())
        isFirst = false
        watching.say(synced)
      } catch (error) {
        // `invalid`: all files are gone, say, and somebody may put them back.
        const passes = isMomentary(error) || isRefusal(error, 'invalid')
        if (isFirst || !passes) throw error
        watching.warn(error)
        pause_ms = RETRY_MS
      }
      await bell.wait(pause_ms)
    }
  } finally {
    deaf()
    folders.close()
  }
}

/** Rings when there is something to look at, but not in the middle of somebody's saving. */
class Bell {
  private isRung = false
  private touched_ms = Number.NEGATIVE_INFINITY
  private wake: () => void = () => undefined

  constructor(private readonly signal: AbortSignal) {
    signal.addEventListener('abort', () => this.ring())
  }

  ring(): void {
    this.isRung = true
    this.wake()
  }

  touch(): void {
    this.touched_ms = performance.now()
    this.ring()
  }

  /** Returns when it has rung and all is quiet, or after `pause_ms`, or when it is over. */
  async wait(pause_ms: number): Promise<void> {
    if (!this.isRung) await this.sleep(pause_ms)
    const latest_ms = performance.now() + UNQUIET_MS
    while (!this.signal.aborted) {
      const until_ms = Math.min(this.touched_ms + QUIET_MS, latest_ms)
      const left_ms = until_ms - performance.now()
      if (left_ms <= 0) break
      this.isRung = false
      await this.sleep(left_ms)
    }
    this.isRung = false
  }

  private sleep(ms: number): Promise<void> {
    return new Promise((resolve) => {
      const timer = setTimeout(resolve, ms)
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}

/** Hears of changes in the folder and in those of its scopes, each watched for itself. */
class WatchedFolders {
  private readonly watchers = new Map<string, FSWatcher>()

  constructor(
    private readonly dir: string,
    private readonly touch: () => void,
  ) {}

  /** Watches what has come and forgets what is gone; true when something has come. */
  refresh(): boolean {
    const wanted = new Set(['', ...KINDS, ...foldersIn(this.dir)])
    for (const [folder, watcher] of this.watchers) {
      if (!wanted.has(folder)) this.drop(folder, watcher)
    }
    const before = this.watchers.size
    for (const folder of wanted) if (!this.watchers.has(folder)) this.add(folder)
    return this.watchers.size > before
  }

  /** Where a folder cannot be watched, the next scan sees what changed in it. */
  private add(folder: string): void {
    try {
      const watcher = watch(join(this.dir, folder), (_, name) => {
        if (!isOwn(name)) this.touch()
      })
      watcher.on('error', () => this.drop(folder, watcher))
      this.watchers.set(folder, watcher)
    } catch {
      // There is none of this name, or the system watches no more for us.
    }
  }

  private drop(folder: string, watcher: FSWatcher): void {
    watcher.close()
    if (this.watchers.get(folder) === watcher) this.watchers.delete(folder)
  }

  close(): void {
    for (const [folder, watcher] of this.watchers) this.drop(folder, watcher)
  }
}

/** What a sync writes for a moment, and for itself, is no news. */
const isOwn = (name: string | null) => name !== null && /^\.|\.lh-new$/.test(name)

/** Since when files are missing that a sync has asked about. */
class Absences {
  private since = new Map<string, number>()
  private asked = new Map<string, number>()

  isGone(path: string): boolean {
    const since_ms = this.since.get(path) ?? performance.now()
    this.asked.set(path, since_ms)
    return performance.now() - since_ms >= GONE_MS
  }

  /** After a sync: what it did not ask about is back. In how many ms the next may be gone. */
  next(): number {
    this.since = this.asked
    this.asked = new Map()
    const ends = [...this.since.values()].map((since_ms) => since_ms + GONE_MS)
    return Math.max(10, Math.min(...ends) - performance.now() + 10)
  }
}
