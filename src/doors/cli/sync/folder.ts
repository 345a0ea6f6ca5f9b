import { Refusal } from '../../../core/refusal.ts'
import { keyOf } from '../../../core/rows.ts'
import * as memory from '../../../operations/memory.ts'
import type { ShownItem } from '../../../operations/memory_show.ts'
import type { Context } from '../context.ts'
import { type FoundFile, strangeFolder } from './files.ts'
import type { Entries } from './index_file.ts'

export interface Synced {
  /** Files whose changes were put into the store. */
  imported: { path: string; scope: string; key: string; version: number }[]
  /** Files that were written, and those that were taken away because the note is gone. */
  exported: string[]
  removed: string[]
  /** Notes that were deleted because their file was. */
  deleted: { path: string; scope: string; key: string }[]
  conflicts: { path: string; id: string }[]
  skipped: { path: string; why: string }[]
}

export interface SyncPlan {
  dir: string
  /** The address of the store, so that a folder is not taken for that of another. */
  store: string
  call: Context['call']
  /** Only this one; undefined: all. */
  scope: string | undefined
  /** Whether a file that is missing is gone for good; left out: it is. */
  isGone?: (path: string) => boolean
}

/** The notes of a store by `keyOf(scope, key)`. */
export type NotesByKey = Map<string, ShownItem>

/** What one sync knows of a folder and of a store, and what it has done so far. */
export class Folder {
  /** The files as they are. */
  readonly found = new Map<string, FoundFile>()
  /** Files that are missing, and may come back in a moment: nothing is done about them yet. */
  readonly waiting = new Set<string>()
  readonly result: Synced = {
    ...{ imported: [], exported: [], removed: [], deleted: [], conflicts: [], skipped: [] },
  }

  constructor(
    readonly plan: SyncPlan,
    /** What was the same on both sides; kept in step with what is done. */
    readonly entries: Entries,
  ) {}

  isAsked({ scope }: { scope: string }): boolean {
    return this.plan.scope === undefined || this.plan.scope === scope
  }

  /** The first reason is the one to tell: others follow from it. */
  skip(path: string, why: string): void {
    if (!this.isSkipped(path)) this.result.skipped.push({ path, why })
  }

  isSkipped(path: string): boolean {
    return this.result.skipped.some((each) => each.path === path)
  }

  /** Whether its folder is none, and so nothing about the file is known; if so, it is skipped. */
  isStrange(path: string): boolean {
    const why = strangeFolder(this.plan.dir, path)
    if (why !== undefined) this.skip(path, why)
    return why !== undefined
  }

  /** A refusal about one file must not keep the others from being synced. */
  async ask<T>(path: string, asked: Promise<T>): Promise<T | undefined> {
    try {
      return await asked
    } catch (error) {
      const isAboutIt =
        error instanceof Refusal && ['invalid', 'too_large', 'not_found'].includes(error.code)
      if (!isAboutIt) throw error
      this.skip(path, error.message)
      return undefined
    }
  }

  /** All notes of the scopes that are asked for. */
  async notes(): Promise<NotesByKey> {
    const { call, scope } = this.plan
    const notes: NotesByKey = new Map()
    for (let after: string | null | undefined; after !== null;) {
      const page: { items: ShownItem[]; next: string | null } = await call(memory.list, {
        limit: 1000,
        ...(scope !== undefined && { scope }),
        ...(after !== undefined && { after }),
      })
      for (const item of page.items) notes.set(keyOf(item.scope, item.key), item)
      after = page.next
    }
    return notes
  }
}
