import type { Cursor } from '../../src/core/schema/indexes.ts'
import type { MemoryVersion, Strategy } from '../../src/core/schema/memory.ts'
import type { Caller } from '../../src/core/caller.ts'
import {
  deleteMemory,
  getMemory,
  type Put,
  putMemory,
  type PutMemory,
} from '../../src/core/memory/memory.ts'
import { openConflicts } from '../../src/core/memory/conflict.ts'
import { headsOf, versionId } from '../../src/core/memory/history.ts'
import { type PruneMemory, pruneMemories } from '../../src/core/memory/prune.ts'
import { type Resolution, resolveConflict } from '../../src/core/memory/resolve.ts'
import { memorySettingsOf } from '../../src/daemon/config/shared_settings.ts'
import { applyMemorySettings } from '../../src/core/memory/settings.ts'
import { textOf } from '../../src/core/memory/version.ts'
import { keyOf } from '../../src/core/rows.ts'
import { textTools } from '../../src/operations/text_merge.ts'
import type { Store } from '../../src/stores/writer/store.ts'

type PutOptions = Partial<Omit<PutMemory, 'key' | 'content'>>

/** What can be asked of shared memory, straight on the rules. */
export class MemoryVerbs {
  constructor(readonly store: Store) {}

  put(key: string, content: string, caller: Caller, more: PutOptions = {}): Promise<Put> {
    const ask = { scope: 'global', key, content, ...more }
    return this.store.write((view) => putMemory(view, ask, caller, textTools))
  }

  delete(key: string, caller: Caller, more: PutOptions = {}): Promise<Put> {
    const ask = { scope: 'global', key, ...more }
    return this.store.write((view) => deleteMemory(view, ask, caller, textTools))
  }

  resolve(id: string, how: Resolution, caller: Caller) {
    return this.store.write((view) => resolveConflict(view, id, how, caller, textTools))
  }

  prune(ask: Partial<PruneMemory>, caller: Caller, after?: Cursor) {
    const whole = { dry_run: false, ...ask }
    return this.store.write((view) => pruneMemories(view, whole, caller, after))
  }

  settings(said: { strategies?: Record<string, Strategy> }, host = 'sim'): Promise<void> {
    const settings = memorySettingsOf({ memory: { strategies: {}, ...said } })
    return this.store.write((view) => applyMemorySettings(view, host, settings))
  }

  /** The texts of all heads, the first one first; refuses what `getMemory` refuses. */
  texts(key: string, scope = 'global'): Promise<(string | null)[]> {
    return this.store.read((view) =>
      headsOf(view, getMemory(view, scope, key)).map((row) => textOf(view, row)),
    )
  }

  /** One version's text, whether or not it is the present. */
  text(key: string, version: number, scope = 'global'): Promise<string | undefined> {
    const id = versionId(keyOf(scope, key), version)
    return this.store.read((view) => view.get('memory_text', id)?.content)
  }

  memory(key: string, scope = 'global') {
    return this.store.read((view) => view.get('memory', keyOf(scope, key)))
  }

  versions(key: string, scope = 'global'): Promise<MemoryVersion[]> {
    return this.store.read((view) => [...view.scan('versions_of', keyOf(scope, key))].toReversed())
  }

  /** The open conflicts of a note. */
  open(key: string, scope = 'global') {
    return this.store.read((view) => openConflicts(view, keyOf(scope, key)))
  }

  conflict(id: string) {
    return this.store.read((view) => view.get('memory_conflict', id))
  }

  /** Keys that a list of the scope shows. */
  keys(scope: string): Promise<string[]> {
    return this.store.read((view) => [...view.scan('memories_in', scope)].map(({ key }) => key))
  }
}
