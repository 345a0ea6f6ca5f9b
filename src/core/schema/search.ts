import { text, int, real, bytes, instant, type RowOf, table } from './table.ts'

/** What is done behind memory: attempts, vectors, and notes that are alike. */

/** A note that was begun with and is not done: it failed, or the server was gone before its end. */
export const note_attempt = table({
  key: 'memory_id',
  columns: {
    memory_id: text(),
    /** `dead`: put aside. */
    state: text<'waiting' | 'dead'>(),
    attempts: int(),
    /** Not before this: a failure makes it wait. */
    next_ms: instant(),
    /** What went wrong last. */
    error: text().orNull,
    asked_at: text(),
  },
  indexes: { note_attempts: { group: ['state'], order: 'next_ms' } },
})
export type NoteAttempt = RowOf<typeof note_attempt>

/** The meaning of one text as one provider sees it: equal texts share it. */
export const vector = table({
  key: 'key',
  columns: {
    /** `keyOf(provider, hash)`. */
    key: text(),
    provider: text(),
    hash: text(),
    /** Bytes as PostgreSQL spells them: `\x` and hex digits. */
    bytes: bytes().apart,
  },
  indexes: { vectors: { order: 'key' } },
  isMadeAgain: true,
  isWide: true,
})
export type Vector = RowOf<typeof vector>

/** Whose vectors count, and how far notes are on the way to having one; there is one row. */
export const embedding = table({
  key: 'key',
  columns: {
    key: text<'embedding'>(),
    provider: text(),
    dimensions: int(),
    since_at: text(),
    /** Notes that had changed up to this one (by `updated_ms`, then id) were begun with. */
    cursor: text(),
    cursor_ms: instant(),
  },
})
export type Embedding = RowOf<typeof embedding>

/** Two notes that say much the same. A pair is found once, whichever of the two came last. */
export const duplicate = table({
  key: 'id',
  columns: {
    /** Made from the pair. */
    id: text(),
    /** Ids of memories, in order. */
    a: text(),
    b: text(),
    similarity: real(),
    /** Worded alike, but of different things: see `contradicts`. */
    label: text<'contradicts'>().orNull,
    status: text<'open' | 'resolved'>(),
    action: text().orNull,
    found_at: text(),
    resolved_by: text().orNull,
    resolved_at: text().orNull,
  },
  indexes: {
    /** The most alike first. */
    duplicates_with: { group: ['status'], order: 'similarity', descends: true },
    duplicates_of: { group: ['a'], order: 'id' },
    duplicates_to: { group: ['b'], order: 'id' },
  },
})
export type Duplicate = RowOf<typeof duplicate>
