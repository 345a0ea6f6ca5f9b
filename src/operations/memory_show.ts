import type { Memory, MemoryConflict, MemoryVersion } from '../core/schema/memory.ts'
import { sideOf } from '../core/memory/conflict.ts'
import type { Put } from '../core/memory/memory.ts'
import { headsOf, shownHead, versionOf } from '../core/memory/history.ts'
import { draftOf } from '../core/memory/merge.ts'
import { textOf } from '../core/memory/version.ts'
import type { View } from '../core/view.ts'
import type * as answers from './answers/memory.ts'
import type { AnswerAs } from './answers/shape.ts'
import { textTools } from './text_merge.ts'

/** When a note is forgotten, on the clock that people read. */
function expiryOf(view: View, expires_ms: number | null): string | null {
  if (expires_ms === null) return null
  const apart_ms = Math.round((view.wall - view.now) / 1000) * 1000
  return new Date(expires_ms + apart_ms).toISOString()
}

/** A version without its text. */
export function showVersion(view: View, row: MemoryVersion) {
  const { id: _id, memory_id: _memory, created_ms: _ms, expires_ms, ...shown } = row
  return { ...shown, expires_at: expiryOf(view, expires_ms) }
}

/** A version with its text; `content` is null where it is a deletion, or its text was pruned. */
export function showWhole(view: View, row: MemoryVersion) {
  return { ...showVersion(view, row), content: textOf(view, row) }
}

export type ShownVersion = AnswerAs<typeof answers.version>

/**
 * Which version a note is shown by, and since when. The row of a note in conflict has the number
 * and time of what came last, and the author and text of what was there before.
 */
export function writtenAs(view: View, memory: Memory) {
  const shown = memory.heads.length > 1 ? shownHead(view, memory) : undefined
  const { version, updated_at } = memory
  return shown ? { version: shown.version, updated_at: shown.created_at } : { version, updated_at }
}

/** The text that a note is shown by; empty where it has none. */
export function contentOf(view: View, memory: Memory): string {
  const shown = shownHead(view, memory)
  return (shown && textOf(view, shown)) ?? ''
}

/** A note as a list shows it. */
export function showItem(view: View, memory: Memory) {
  const { scope, key, heads, author, confidence, tags, size } = memory
  const expires_at = expiryOf(view, memory.expires_ms)
  const conflict = heads.length > 1
  const { version, updated_at } = writtenAs(view, memory)
  return { scope, key, version, author, confidence, tags, size, updated_at, expires_at, conflict }
}

export type ShownPut = AnswerAs<typeof answers.put>
export type ShownConflict = AnswerAs<typeof answers.conflicts>['items'][number]
export type ShownItem = AnswerAs<typeof answers.memories>['items'][number]

/** A note, whole: the first of its heads that has a text, and the siblings that disagree. */
export function showMemory(view: View, memory: Memory, conflicts: MemoryConflict[]) {
  const { scope, key } = memory
  const heads = headsOf(view, memory)
  const shown = shownHead(view, memory)!
  const siblings = heads
    .filter((each) => each.version !== shown.version)
    .map((each) => showWhole(view, each))
  const ids = conflicts.map(({ id }) => id)
  return { scope, key, ...showWhole(view, shown), siblings, conflicts: ids }
}

export type ShownMemory = AnswerAs<typeof answers.memory>

/** A conflict as a list shows it. */
export function showConflict(conflict: MemoryConflict) {
  const { memory_id: _, opened_ms: _ms, ...shown } = conflict
  return shown
}

/** A conflict with both contents side by side, what they grew from, and a draft to begin with. */
export function showConflictWhole(view: View, conflict: MemoryConflict) {
  const { memory_id, ours, theirs, base } = conflict
  // A note that was pruned has no versions left; its conflicts went with it.
  const sides = [ours, theirs].map((each) => sideOf(view, memory_id, each))
  const [mine, other] = sides as [(typeof sides)[0], (typeof sides)[0]]
  const basis = base === null ? undefined : versionOf(view, memory_id, base)
  const before = basis ? textOf(view, basis) : null
  return {
    ...showConflict(conflict),
    sides: { ours: showWhole(view, mine.row), theirs: showWhole(view, other.row) },
    base_content: before,
    draft: conflict.status === 'open' ? draftOf(before, mine, other, textTools) : null,
  }
}

/** The answer of a put: its version, and what it disagrees with. */
export function showPut(view: View, { memory, version, written, conflict }: Put) {
  const { scope, key } = memory
  return {
    scope,
    key,
    version: version.version,
    written,
    conflict: conflict && showDisagreement(view, memory.id, conflict, version),
  }
}

function showDisagreement(
  view: View,
  memory_id: string,
  { id, status, strategy, why, ours, theirs, base }: MemoryConflict,
  mine: MemoryVersion,
) {
  const other = mine.version === ours ? theirs : ours
  return {
    id,
    status,
    strategy,
    why,
    ours,
    theirs,
    base,
    with: showWhole(view, versionOf(view, memory_id, other)!),
  }
}
