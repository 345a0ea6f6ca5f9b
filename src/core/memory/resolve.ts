import type { MemoryConflict, MemoryVersion } from '../schema/memory.ts'
import type { Caller } from '../caller.ts'
import { realign, sideOf } from './conflict.ts'
import type { TextTools } from './merge.ts'
import { type Added, addVersion, memoryAt } from './version.ts'
import { missing, Refusal } from '../refusal.ts'
import type { View } from '../view.ts'

/** How a conflict ends: with one of its sides, a text made of both, or one that replaces both. */
export type Resolution =
  | { choose: 'ours' | 'theirs' | number }
  | { content: string; supersede: boolean }

/** The conflict, or `not_found`. */
export const getConflict = (view: View, id: string): MemoryConflict =>
  view.get('memory_conflict', id) ?? missing(`conflict ${id}`, 'conflict.list')

/**
 * Ends a conflict with a new version that names both sides as its parents.
 *
 * Refuses `not_found`; `conflict` when it is settled already, or goes on as another because a side
 * was changed since; `invalid` when the chosen version is no side of it.
 */
export function resolveConflict(
  view: View,
  id: string,
  how: Resolution,
  caller: Caller,
  tools: TextTools,
): Added & { conflict: MemoryConflict } {
  const conflict = getConflict(view, id)
  if (conflict.status !== 'open') throw closed(conflict)
  const { memory_id, ours, theirs, scope, key } = conflict
  const memory = memoryAt(view, scope, key)!
  const sides = { ours: sideOf(view, memory_id, ours), theirs: sideOf(view, memory_id, theirs) }
  const chosen = 'choose' in how ? sides[sideNamed(how.choose, conflict)] : undefined
  const content = 'content' in how ? how.content : chosen!.content
  const like = chosen?.row ?? likeBoth(sides.ours.row, sides.theirs.row)
  const draft = {
    ...{ scope, key, content, author: caller.agent, task_id: null, fence: null },
    kind: content === null ? ('delete' as const) : ('resolve' as const),
    strategy: nameOf(how),
    ...{ confidence: like.confidence, tags: like.tags, expires_ms: like.expires_ms },
    ...tools.measure(content ?? ''),
    parents: [ours, theirs].toSorted((a, b) => a - b),
  }
  const rest = memory.heads.filter((each) => each !== ours && each !== theirs)
  const added = addVersion(view, draft, (fresh) => [fresh, ...rest])
  realign(view, added, caller, tools, draft.strategy)
  return { ...added, conflict: getConflict(view, id) }
}

/** What a person wrote is as sure as they say elsewhere; it keeps the tags of both. */
function likeBoth(ours: MemoryVersion, theirs: MemoryVersion) {
  return { confidence: null, tags: [...new Set([...ours.tags, ...theirs.tags])], expires_ms: null }
}

function nameOf(how: Resolution): string {
  if ('choose' in how) return 'choose'
  return how.supersede ? 'supersede' : 'merge'
}

function sideNamed(choose: 'ours' | 'theirs' | number, conflict: MemoryConflict) {
  const { ours, theirs } = conflict
  if (typeof choose === 'string') return choose
  if (choose === ours) return 'ours'
  if (choose === theirs) return 'theirs'
  throw new Refusal('invalid', `Version ${choose} is not a side of this conflict`, {
    next: `Choose ours (${ours}) or theirs (${theirs}), or give a content of your own.`,
    details: { ours, theirs },
  })
}

function closed({ id, status, closed_by, result, replaced_by }: MemoryConflict): Refusal {
  if (status === 'replaced') {
    return new Refusal('conflict', `A side of conflict ${id} was changed since, by ${closed_by}`, {
      next: {
        says: 'Look at what it is about now',
        operation: 'conflict.list',
        input: { id: replaced_by },
      },
      details: { id, status, replaced_by },
    })
  }
  return new Refusal('conflict', `Conflict ${id} is settled already, by ${closed_by}`, {
    next: `Version ${result} is the outcome. To change it, put on that version.`,
    details: { id, status, version: result },
  })
}
