import type { Memory } from '../schema/memory.ts'

/** One note that was found, and how well it fits: the higher the better, within one list. */
export interface Hit {
  /** Of the memory. */
  id: string
  score: number
}

const TERMS_MAX = 24
const TERM_MAX = 64

/** Words that are in every text, and say nothing about it. */
const COMMON = new Set(
  `a about all also am an and any are as at be because been but by can could did do does for from
  had has have how i if in into is it its me my no not of on or our out so some than that the their
  them then there these they this to too up us was we were what when where which who why will with
  would you your should somebody someone anybody anyone something anything`.split(/\s+/),
)

/**
 * The words of a query, each once. Nothing that a caller writes is syntax: only letters and digits
 * are left. Words that are everywhere count only where there are no others.
 */
export function termsOf(query: string): string[] {
  const words = query.toLowerCase().match(/[\p{L}\p{N}]+/gu) ?? []
  const terms = [...new Set(words.map((word) => word.slice(0, TERM_MAX)))]
  const telling = terms.filter((term) => !COMMON.has(term))
  return (telling.length > 0 ? telling : terms).slice(0, TERMS_MAX)
}

/** Whether a text has at least half of the terms, or their stems: then it is about them. */
export function hasTerms(text: string, terms: string[]): boolean {
  const low = text.toLowerCase()
  const stem = (term: string) => (term.length > 5 ? term.slice(0, -2) : term)
  return 2 * terms.filter((term) => low.includes(stem(term))).length >= terms.length
}

/** What a search may be narrowed by; what is left out narrows nothing. */
export interface Narrow {
  scope?: string | undefined
  tags?: string[] | undefined
  author?: string | undefined
  min_confidence?: number | undefined
  newer_than_ms?: number | undefined
}

/** Whether a note passes these filters; a deleted or expired one never does. */
export function isWanted(memory: Memory, narrow: Narrow, now: number): boolean {
  const { scope, tags, author, min_confidence, newer_than_ms } = narrow
  if (!memory.live || (memory.expires_ms !== null && memory.expires_ms <= now)) return false
  if (scope !== undefined && memory.scope !== scope) return false
  if (author !== undefined && memory.author !== author) return false
  if (tags && !tags.every((tag) => memory.tags.includes(tag))) return false
  if (min_confidence !== undefined && (memory.confidence ?? 0) < min_confidence) return false
  return newer_than_ms === undefined || now - memory.updated_ms <= newer_than_ms
}

/** What words weigh against meaning; chosen on the part of the held set that is for choosing. */
const TEXT_WEIGHT = 0.02

/**
 * One list from two, by scores relative to the best of each list: those of words and of meaning are
 * of different kinds. What meaning did not find is at most as near as the last that it did.
 */
export function fuse({ text, meaning }: { text: Hit[]; meaning: Hit[] }): Hit[] {
  const near = relative(meaning)
  const worded = relative(text)
  const least = meaning.length === 0 ? 0 : near.get(meaning.at(-1)!.id)!
  const ids = new Set([...near.keys(), ...worded.keys()])
  const hits = [...ids].map((id) => {
    return { id, score: (near.get(id) ?? least) + TEXT_WEIGHT * (worded.get(id) ?? 0) }
  })
  return hits.toSorted((a, b) => b.score - a.score || (a.id < b.id ? -1 : 1))
}

function relative(hits: Hit[]): Map<string, number> {
  const best = hits[0]?.score || 1
  return new Map(hits.map(({ id, score }) => [id, score / best]))
}

/** About how many tokens a model reads it as: four letters of English, fewer of anything else. */
export function tokensOf(text: string): number {
  let foreign = 0
  for (let i = 0; i < text.length; i += 1) if (text.charCodeAt(i) > 127) foreign += 1
  return Math.ceil((text.length - foreign) / 4 + foreign / 1.5)
}

const EXCERPT_MAX = 240

/** The part of a text around the first of the terms that is in it. */
export function excerptOf(text: string, terms: string[], max = EXCERPT_MAX): string {
  if (text.length <= max) return text
  const low = text.slice(0, 100_000).toLowerCase()
  const found = terms.map((term) => low.indexOf(term)).filter((at) => at >= 0)
  const first = found.length > 0 ? Math.min(...found) : 0
  const from = Math.max(0, Math.min(first - 60, text.length - max))
  const cut = text.slice(from, from + max).replace(/^[\udc00-\udfff]|[\ud800-\udbff]$/g, '')
  return `${from > 0 ? '…' : ''}${cut}${from + max < text.length ? '…' : ''}`
}
