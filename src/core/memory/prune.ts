import type { Cursor } from '../schema/indexes.ts'
import type { Memory, MemoryVersion } from '../schema/memory.ts'
import { withdrawPairs } from './duplicate.ts'
import type { Caller } from '../caller.ts'
import { isExpired } from './version.ts'
import type { View } from '../view.ts'

export interface PruneMemory {
  scope?: string | undefined
  /** Only notes that have not changed for this long. */
  older_than_ms?: number | undefined
  /** Only notes that have expired. */
  expired?: boolean | undefined
  /** Only notes with a lower confidence than this. */
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
const LOOKED_AT_MAX = 10_000
const PRUNED_MAX = 500

export interface PrunedPage {
  items: Pruned[]
  /** The note that was looked at last, where there are more behind it. */
  last: { index: 'memories_by_age' | 'memories_by_expiry'; memory: Memory } | null
}

/**
 * Takes notes away for good, with their history: those that are deleted or have expired, and those
 * that the ask describes. A note in conflict stays: two agents have yet to agree on it. Its number
 * is remembered, so that no version is ever given twice. Looks at so many notes behind `after`.
 */
export function pruneMemories(
  view: View,
  ask: PruneMemory,
  caller: Caller,
  after?: Cursor,
): PrunedPage {
  // What expires is found by when it does; all else by its age.
  const isExpiry = ask.expired && !ask.history && ask.below_confidence === undefined
  const index = isExpiry ? 'memories_by_expiry' : 'memories_by_age'
  const items: Pruned[] = []
  // Taken first, because rows are removed while the list is walked.
  const { rows, isCut } = rowsFor(view, ask, index, after)
  let last: Memory | undefined
  for (const memory of rows) {
    if (items.length === PRUNED_MAX) break
    last = memory
    if (isTooYoung(view, memory, ask)) continue
    if (ask.scope !== undefined && ask.scope !== memory.scope) continue
    const why = reasonFor(view, memory, ask)
    const pruned = why && prune(view, memory, why, ask)
    if (pruned) items.push(pruned)
  }
  if (!ask.dry_run && items.length > 0) tell(view, items, caller)
  const isMore = last !== undefined && (isCut || last !== rows.at(-1))
  return { items, last: isMore ? { index, memory: last! } : null }
}

function rowsFor(
  view: View,
  ask: PruneMemory,
  index: 'memories_by_age' | 'memories_by_expiry',
  after: Cursor | undefined,
): { rows: Memory[]; isCut: boolean } {
  const rows: Memory[] = []
  const isOver = (memory: Memory) =>
    index === 'memories_by_expiry' ? !isExpired(view, memory) : isTooYoung(view, memory, ask)
  for (const memory of view.scan(index, '', after)) {
    if (isOver(memory)) break
    if (rows.length === LOOKED_AT_MAX) return { rows, isCut: true }
    rows.push(memory)
  }
  return { rows, isCut: false }
}

/** Rows come by age: once one is too young, all that follow are. */
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
  for (const each of going) forgetText(view, each, isHistory)
  if (isHistory) return pruned
  for (const { id } of [...view.scan('conflicts_of', memory.id)]) view.remove('memory_conflict', id)
  view.put('memory', { ...memory, heads: [], live: false, tags: [], size: 0, expires_ms: null })
  view.remove('note_attempt', memory.id)
  withdrawPairs(view, memory.id)
  return pruned
}

/** Takes a deleted note away, with its history. Returns how many rows that were. */
export function forgetNote(view: View, memory: Memory): number {
  const pruned = prune(view, memory, 'deleted', { dry_run: false })
  if (pruned) tell(view, [pruned], { agent: 'leasehold' })
  return 2 * (pruned?.versions ?? 0) + 1
}

function forgetText(view: View, row: MemoryVersion, keepsRow: boolean): void {
  if (row.kept) view.remove('memory_text', row.id)
  if (keepsRow) view.put('memory_version', { ...row, kept: false })
  else view.remove('memory_version', row.id)
}

function tell(view: View, items: Pruned[], { agent }: Pick<Caller, 'agent'>): void {
  const data = {
    notes: items.length,
    versions: items.reduce((sum, { versions }) => sum + versions, 0),
    bytes: items.reduce((sum, each) => sum + each.bytes, 0),
    items: items
      .slice(0, 100)
      .map(({ scope, key, version, why }) => ({ scope, key, version, why })),
  }
  view.record('memory.pruned', { agent }, data)
}
