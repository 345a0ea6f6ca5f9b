import type { Hit } from '../core/memory/search.ts'
import type { Changes } from '../core/schema/schema.ts'

/** The notes that have other words than before: a text that goes leaves what is present. */
export function notesIn({ memory, memory_text }: Changes): string[] {
  const ids = new Set(memory?.keys())
  for (const [id, text] of memory_text ?? []) if (text) ids.add(id.slice(0, id.lastIndexOf('\n')))
  return [...ids]
}

/** Notes looked at for one word: of one that more have, the newest. It bounds the cost. */
export const NOTES_MAX = 2_000

/** What one word found: how well each note fits it, and whether more have it than this. */
export interface WordHits {
  hits: Hit[]
  isCommon: boolean
}

/**
 * One list from those of the words: what a note scores for each word is added up. Notes that have
 * all of the common words (`all`) come before those that have some.
 */
export function rankWords(words: WordHits[], all: string[]): Hit[] {
  const scores = new Map<string, number>()
  const add = (id: string, score: number) => scores.set(id, (scores.get(id) ?? 0) + score)
  for (const { hits } of words) for (const { id, score } of hits) add(id, score)
  for (const id of all) add(id, COMMON_SCORE)
  const ranked = [...scores].map(([id, score]) => ({ id, score }))
  return ranked.toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
}

/** A word that is nearly everywhere says next to nothing, but more than no word. */
export const COMMON_SCORE = 0.1
