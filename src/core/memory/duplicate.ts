import type { Duplicate, Vector } from '../schema/search.ts'
import type { Memory, MemoryVersion } from '../schema/memory.ts'
import { checkDuty, type Duty } from './background.ts'
import type { Caller } from '../caller.ts'
import { shownHead } from './history.ts'
import { deleteMemory, putMemory } from './memory.ts'
import type { TextTools } from './merge.ts'
import { isExpired } from './version.ts'
import { word } from '../quote.ts'
import { missing, Refusal } from '../refusal.ts'
import { keyOf } from '../rows.ts'
import type { View } from '../view.ts'

/** A note that another was found to be alike. */
export interface Alike {
  other: string
  similarity: number
  /** They state different things in the same words: no duplicate, but worth a look. */
  contradicts: boolean
}

/** A pair as it is known, whichever of the two comes first. */
function pairOf(tools: TextTools, one: string, other: string) {
  const [a, b] = one < other ? [one, other] : [other, one]
  return { a, b, id: tools.measure(keyOf(a, b)).hash.slice(0, 12) }
}

/** Whether a note is there to be compared. */
export function isThere(view: View, id: string): Memory | undefined {
  const memory = view.get('memory', id)
  return memory && memory.live && !isExpired(view, memory) ? memory : undefined
}

/** A note as it is shown, with its vector; undefined where it is gone or not embedded yet. */
export function embeddedAt(
  view: View,
  id: string,
  provider: string,
): { memory: Memory; shown: MemoryVersion; vector: Vector } | undefined {
  const memory = isThere(view, id)
  const shown = memory && shownHead(view, memory)
  const vector = shown && view.get('vector', keyOf(provider, shown.hash))
  return vector && { memory, shown, vector }
}

/**
 * Records which notes a note is alike. A pair is reported once; an open pair whose notes have grown
 * apart is withdrawn, a resolved one stays resolved. Refuses as `checkFence` does.
 */
export function recordAlike(
  view: View,
  subject: string,
  found: Alike[],
  { duty, tools, provider }: { duty: Duty; tools: TextTools; provider: string },
): void {
  checkDuty(view, duty)
  const kept = new Set<string>()
  for (const { other, similarity, contradicts } of found) {
    if (!isThere(view, subject) || !isThere(view, other)) continue
    const { a, b, id } = pairOf(tools, subject, other)
    const label = contradicts ? 'contradicts' : null
    kept.add(id)
    const known = view.get('duplicate', id)
    if (!known) putFound(view, { id, a, b, similarity, label }, duty.caller)
    else if (known.status === 'open') view.put('duplicate', { ...known, similarity, label })
  }
  // Of a note that has no vector of this provider yet nobody knows: the pair is looked at with it.
  const isUnknown = (id: string) => isThere(view, id) && !embeddedAt(view, id, provider)
  withdrawPairs(view, subject, ({ id, a, b }) => kept.has(id) || [a, b].some(isUnknown))
}

/** Takes back the open pairs of a note. */
export function withdrawPairs(
  view: View,
  subject: string,
  keeps: (pair: Duplicate) => boolean | undefined = () => false,
): void {
  const known = [...view.scan('duplicates_of', subject), ...view.scan('duplicates_to', subject)]
  for (const pair of known) {
    if (pair.status === 'open' && !keeps(pair)) view.remove('duplicate', pair.id)
  }
}

type Found = Pick<Duplicate, 'id' | 'a' | 'b' | 'similarity' | 'label'>

function putFound(view: View, found: Found, { agent }: Caller): void {
  view.put('duplicate', {
    ...found,
    status: 'open',
    action: null,
    found_at: view.at,
    resolved_by: null,
    resolved_at: null,
  })
  const { id, similarity, label } = found
  const data = { id, similarity: Math.round(similarity * 1000) / 1000, label }
  view.record('duplicate.found', { agent }, data)
}

export const DUPLICATE_ACTIONS = ['keep_both', 'delete_a', 'delete_b', 'merge'] as const
export type DuplicateAction = (typeof DUPLICATE_ACTIONS)[number]

/** A pair by its id, or `not_found`. */
export const getDuplicate = (view: View, id: string): Duplicate =>
  view.get('duplicate', id) ?? missing(`pair ${id}`, 'duplicate.list', { id })

/**
 * Settles a pair: both stay, one is deleted, or `content` takes the place of the first and the
 * second is deleted. Refuses `conflict` when it was settled before, or when a note to be changed
 * has versions that disagree; `invalid` for a merge without a content, or a content without one.
 */
export function resolveDuplicate(
  view: View,
  ask: { id: string; action: DuplicateAction; content?: string | undefined },
  caller: Caller,
  tools: TextTools,
): Duplicate {
  const { id, action, content } = ask
  const pair = getDuplicate(view, id)
  if (pair.status !== 'open') {
    throw new Refusal('conflict', `${id} was settled by ${pair.resolved_by}: ${pair.action}`, {
      next: 'Nothing is left to do. To undo it, put the note again.',
      details: { id, action: pair.action },
    })
  }
  if ((content !== undefined) !== (action === 'merge')) {
    throw new Refusal('invalid', 'content is for merge only, and merge needs it', {
      next: 'A merge needs a content; every other action goes without.',
    })
  }
  const [a, b] = [isThere(view, pair.a), isThere(view, pair.b)]
  if (action === 'merge' && a && content !== undefined) {
    refuseDisputed(a)
    const { scope, key } = a
    putMemory(view, { scope, key, content, based_on: a.heads[0] }, caller, tools)
  }
  const gone = action === 'delete_a' ? a : action === 'keep_both' ? undefined : b
  if (gone) deleteMemory(view, { scope: gone.scope, key: gone.key }, caller, tools)
  const settled: Duplicate = {
    ...pair,
    status: 'resolved',
    action,
    resolved_by: caller.agent,
    resolved_at: view.at,
  }
  view.put('duplicate', settled)
  const { agent } = caller
  view.record('duplicate.resolved', { agent }, { id, action })
  return settled
}

function refuseDisputed({ scope, key, heads }: Memory): void {
  if (heads.length < 2) return
  throw new Refusal('conflict', `${word(scope)} ${word(key)} has versions that disagree`, {
    next: { says: 'Resolve that first', operation: 'conflict.list' },
    details: { scope, key, heads },
  })
}
