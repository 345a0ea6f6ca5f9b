import type { MemoryVersion, Strategy } from '../schema/memory.ts'
import { unionOf } from './json_union.ts'
import { NOTE_BYTES_MAX } from '../bounds.ts'
import { word } from '../quote.ts'

/** What rules need of the outside, as pure functions: core imports nothing. */
export interface TextTools {
  measure(text: string): { hash: string; size: number }
  /**
   * Merges two texts that grew from `base`, or null where that is unknown, line by line. What both
   * changed stands between markers that bear the labels. Undefined: too long to be compared.
   */
  merge(
    base: string | null,
    ours: string,
    theirs: string,
    labels: { ours: string; theirs: string },
  ): { text: string; clean: boolean } | undefined
}

/** One side of a merge; `content` is null where it was deleted, or where its text was pruned. */
export interface MergeSide {
  row: MemoryVersion
  content: string | null
}

/** What becomes of the two: a content, with what else is said of it; or why not. */
export type Merged =
  | { content: string | null; like: Pick<MemoryVersion, 'confidence' | 'tags' | 'expires_ms'> }
  | { why: string }

/** Nobody said how sure they are: as likely as not. */
const CONFIDENCE_UNSAID = 0.5

/** Both sides and what they grew from, each read when it is needed. */
export interface Sides {
  base(): string | null | undefined
  ours(): MergeSide
  theirs(): MergeSide
}

/**
 * Merges what is there with what came, by the strategy of the scope, or says why that would not be
 * clean.
 */
export function mergeSides(strategy: Strategy, sides: Sides, tools: TextTools): Merged {
  const merged = merge(strategy, sides, tools)
  if ('why' in merged || tools.measure(merged.content ?? '').size <= NOTE_BYTES_MAX) return merged
  return { why: 'together they are longer than a note may be' }
}

function merge(strategy: Strategy, sides: Sides, tools: TextTools): Merged {
  if (strategy === 'manual') return { why: 'this scope is merged by hand' }
  const [ours, theirs] = [sides.ours(), sides.theirs()]
  switch (strategy) {
    case 'newest':
      return { content: theirs.content, like: theirs.row }
    case 'confident':
      return mostConfident(ours, theirs)
    case 'union':
    case 'text':
      return combined(strategy, sides.base() ?? null, ours, theirs, tools)
  }
}

function mostConfident(ours: MergeSide, theirs: MergeSide): Merged {
  const [o, t] = [ours, theirs].map(({ row }) => row.confidence ?? CONFIDENCE_UNSAID)
  if (o === t) return { why: `both are equally confident (${o})` }
  const { content, row } = o! > t! ? ours : theirs
  return { content, like: row }
}

function combined(
  strategy: 'union' | 'text',
  base: string | null,
  ours: MergeSide,
  theirs: MergeSide,
  tools: TextTools,
): Merged {
  if (ours.content === null || theirs.content === null) {
    return { why: 'one side deleted what the other changed' }
  }
  const like = likeBoth(ours.row, theirs.row)
  if (strategy === 'union') {
    const content = unionOf(base, ours.content, theirs.content)
    if (content !== undefined) return { content, like }
    return { why: 'they are not both JSON objects or lists, or both changed the same thing' }
  }
  if (base === null) return { why: 'it is not known what both grew from' }
  const merged = tools.merge(base, ours.content, theirs.content, labelsOf(ours, theirs))
  if (!merged) return { why: 'they are too long to be compared line by line' }
  return merged.clean ? { content: merged.text, like } : { why: 'both changed the same lines' }
}

/** As sure as the less sure of the two, and kept as long as the longer. */
function likeBoth(ours: MemoryVersion, theirs: MemoryVersion) {
  const known = [ours.confidence, theirs.confidence].filter((each) => each !== null)
  const ends = [ours.expires_ms, theirs.expires_ms]
  return {
    confidence: known.length > 0 ? Math.min(...known) : null,
    tags: [...new Set([...ours.tags, ...theirs.tags])],
    expires_ms: ends.includes(null) ? null : Math.max(...(ends as number[])),
  }
}

const labelsOf = (ours: MergeSide, theirs: MergeSide) => ({
  ours: `version ${ours.row.version} by ${word(ours.row.author)}`,
  theirs: `version ${theirs.row.version} by ${word(theirs.row.author)}`,
})

/** A text to begin with, for a person or agent that merges by hand; null if there is none. */
export function draftOf(
  base: string | null,
  ours: MergeSide,
  theirs: MergeSide,
  tools: TextTools,
): string | null {
  if (ours.content === null || theirs.content === null) return ours.content ?? theirs.content
  const { content: o } = ours
  const { content: t } = theirs
  return unionOf(base, o, t) ?? tools.merge(base, o, t, labelsOf(ours, theirs))?.text ?? null
}
