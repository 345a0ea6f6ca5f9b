import type { Memory, MemoryVersion } from '../schema/memory.ts'
import { headsOf, versionId } from './history.ts'
import { keyOf } from '../rows.ts'
import type { View } from '../view.ts'

/** All that is said of a version before it has its number and its place in the history. */
export interface Draft extends Pick<
  MemoryVersion,
  | 'kind'
  | 'strategy'
  | 'author'
  | 'task_id'
  | 'fence'
  | 'confidence'
  | 'tags'
  | 'hash'
  | 'size'
  | 'expires_ms'
> {
  scope: string
  key: string
  content: string | null
}

export interface Added {
  memory: Memory
  version: MemoryVersion
}

export function memoryAt(view: View, scope: string, key: string): Memory | undefined {
  return view.get('memory', keyOf(scope, key))
}

export function isExpired(view: View, { expires_ms }: { expires_ms: number | null }): boolean {
  return expires_ms !== null && expires_ms <= view.now
}

/** What a version says; null where it is a deletion, or its text was pruned. */
export function textOf(view: View, { id, kept }: MemoryVersion): string | null {
  return kept ? (view.get('memory_text', id)?.content ?? null) : null
}

/**
 * Writes a version and makes `heads`, given its number, the present. The caller has seen to it that
 * no head goes that is not among `parents`.
 */
export function addVersion(
  view: View,
  draft: Draft & { parents: number[] },
  heads: (version: number) => number[],
): Added {
  const { scope, key, content, ...said } = draft
  const memory = memoryAt(view, scope, key) ?? firstOf(view, scope, key)
  const number = memory.version + 1
  const version: MemoryVersion = {
    id: versionId(memory.id, number),
    memory_id: memory.id,
    version: number,
    ...said,
    kept: content !== null,
    created_at: view.at,
    created_ms: view.now,
  }
  view.put('memory_version', version)
  if (content !== null) view.put('memory_text', { id: version.id, content })
  return { memory: putHeads(view, { ...memory, version: number }, heads(number)), version }
}

const firstOf = (view: View, scope: string, key: string): Memory => ({
  id: keyOf(scope, key),
  scope,
  key,
  version: 0,
  heads: [],
  live: false,
  author: '',
  confidence: null,
  tags: [],
  size: 0,
  created_at: view.at,
  updated_at: view.at,
  updated_ms: view.now,
  expires_ms: null,
})

/** Derives the row of a note from the versions that are its present. */
function putHeads(view: View, before: Memory, heads: number[]): Memory {
  const rows = headsOf(view, { ...before, heads })
  const alive = rows.filter(({ kept }) => kept)
  const shown = alive[0] ?? rows[0]!
  const ends = alive.map(({ expires_ms }) => expires_ms)
  const memory: Memory = {
    ...before,
    heads,
    live: alive.length > 0,
    author: shown.author,
    confidence: shown.confidence,
    tags: shown.tags,
    size: shown.size,
    updated_at: view.at,
    updated_ms: view.now,
    // As long as any of them lasts.
    expires_ms: ends.length === 0 || ends.includes(null) ? null : Math.max(...(ends as number[])),
  }
  view.put('memory', memory)
  return memory
}
