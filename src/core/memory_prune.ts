import { askInBackground } from './background.ts'
import type { Caller } from './caller.ts'
import type { Memory, MemoryVersion } from './memory_rows.ts'
import { countUsage } from './memory_settings.ts'
import { isExpired } from './memory_version.ts'
import type { View } from './view.ts'

export interface PruneMemory {
  scope?: string | undefined
  /** Only what was not changed for so long. */
  older_than_ms?: number | undefined
  /** Only what has expired. */
  expired?: boolean | undefined
  /** Only what its author was less sure of than this. */
  below_confidence?: number | undefined
  /** Leave the notes; forget the texts of versions that are no longer the present. */
  history?: boolean | undefined
  dry_run: boolean
}

export interface Pruned {
  scope: string
  key: string
  version: number
  why: 'deleted' | 'expired' | 'old' | 'unsure' | 'history'
  versions: number
  bytes: number
}

/** Notes that one call looks at and takes away: others wait meanwhile. */
const LOOKED_AT_MAX = 20_000
const PRUNED_MAX = 500

/**
 * Takes notes away for good, with their history: those that are deleted or have expired, and those
 * that the ask describes. A note in conflict stays: two agents have yet to agree on it. Its number
 * is remembered, so that no version is ever given twice. `more`: there is more to be done.
 */
export function pruneMemories(
  view: View,
  ask: PruneMemory,
  caller: Caller,
): { items: Pruned[]; more: boolean } {
  const items: Pruned[] = []
  // Taken first: what is removed must not be walked on.
  const { candidates, isCut } = candidatesFor(view, ask)
  for (const memory of candidates) {
    if (items.length === PRUNED_MAX) return finish(view, ask, { items, more: true }, caller)
    const why = reasonFor(view, memory, ask)
    const pruned = why && prune(view, memory, why, ask)
    if (pruned) items.push(pruned)
  }
  return finish(view, ask, { items, more: isCut }, caller)
}

function finish(
  view: View,
  { dry_run }: PruneMemory,
  done: { items: Pruned[]; more: boolean },
  caller: Caller,
) {
  if (!dry_run && done.items.length > 0) tell(view, done.items, caller)
  return done
}

/** What may be meant, as far as one call looks; what expires is found by when it does. */
function candidatesFor(view: View, ask: PruneMemory): { candidates: Memory[]; isCut: boolean } {
  const candidates: Memory[] = []
  const isExpiry = ask.expired && !ask.history && ask.below_confidence === undefined
  const rows = view.scan(isExpiry ? 'memories_by_expiry' : 'memories_by_age', '')
  let left = LOOKED_AT_MAX
  for (const memory of rows) {
    const isYoung = isTooYoung(view, memory, ask)
    if (isExpiry ? !isExpired(view, memory) : isYoung) break
    if (left-- === 0) return { candidates, isCut: true }
    const isAsked = ask.scope === undefined || ask.scope === memory.scope
    if (isAsked && !isYoung) candidates.push(memory)
  }
  return { candidates, isCut: false }
}

/** Where rows come by age, the first that is too young is followed by none that is not. */
function isTooYoung(view: View, { updated_ms }: Memory, { older_than_ms }: PruneMemory): boolean {
  return older_than_ms !== undefined && view.now - updated_ms < older_than_ms
}

function reasonFor(view: View, memory: Memory, ask: PruneMemory): Pruned['why'] | undefined {
  if (memory.heads.length > 1) return undefined
  if (ask.history) return 'history'
  const isOver = memory.live && isExpired(view, memory)
  if (ask.expired || ask.below_confidence !== undefined) {
    const isUnsure = (memory.confidence ?? 1) < (ask.below_confidence ?? 0)
    if (ask.expired && isOver) return 'expired'
    return memory.live && isUnsure ? 'unsure' : undefined
  }
  if (!memory.live) return 'deleted'
  if (isOver) return 'expired'
  return ask.older_than_ms === undefined ? undefined : 'old'
}

function prune(
  view: View,
  memory: Memory,
  why: Pruned['why'],
  ask: PruneMemory,
): Pruned | undefined {
  const { scope, key, version } = memory
  const isHistory = why === 'history'
  const going = [...view.scan('versions_of', memory.id)].filter(
    (each) => !isHistory || (each.kept && !memory.heads.includes(each.version)),
  )
  if (going.length === 0) return undefined
  const bytes = going.reduce((sum, { size, kept }) => sum + (kept ? size : 0), 0)
  const pruned = { scope, key, version, why, versions: going.length, bytes }
  if (ask.dry_run) return pruned
  for (const each of going) forgetText(view, scope, each, isHistory)
  if (isHistory) return pruned
  for (const { id } of [...view.scan('conflicts_of', memory.id)]) view.remove('memory_conflict', id)
  view.put('memory', { ...memory, heads: [], live: false, tags: [], size: 0, expires_ms: null })
  askInBackground(view, 'embed', memory.id)
  return pruned
}

function forgetText(view: View, scope: string, row: MemoryVersion, keepsRow: boolean): void {
  if (row.kept) view.remove('memory_text', row.id)
  const bytes = row.kept ? row.size : 0
  countUsage(view, { scope, agent: row.author }, keepsRow ? 0 : -1, -bytes)
  if (keepsRow) view.put('memory_version', { ...row, kept: false })
  else view.remove('memory_version', row.id)
}

function tell(view: View, items: Pruned[], { agent }: Caller): void {
  const data = {
    notes: items.length,
    versions: items.reduce((sum, { versions }) => sum + versions, 0),
    bytes: items.reduce((sum, each) => sum + each.bytes, 0),
    items: items
      .slice(0, 100)
      .map(({ scope, key, version, why }) => ({ scope, key, version, why })),
  }
  view.record({ type: 'memory.pruned', agent, lock: null, task: null, data })
}
