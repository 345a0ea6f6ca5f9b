/** The rows of what is done behind memory: attempts, vectors, and notes that are alike. */

/** A note that was begun with and is not done: it failed, or the server was gone before its end. */
export interface NoteAttempt {
  memory_id: string
  /** `dead`: put aside. */
  state: 'waiting' | 'dead'
  attempts: number
  /** Not before this: a failure makes it wait. */
  next_ms: number
  /** What went wrong last. */
  error: string | null
  asked_at: string
}

/** The meaning of one text as one provider sees it: equal texts share it. */
export interface Vector {
  /** `keyOf(provider, hash)`. */
  key: string
  provider: string
  hash: string
  /** Bytes as PostgreSQL spells them: `\x` and hex digits. */
  bytes: string
}

/** Whose vectors count, and how far notes are on the way to having one; there is one row. */
export interface Embedding {
  key: 'embedding'
  provider: string
  dimensions: number
  since_at: string
  /** Notes that had changed up to this one (by `updated_ms`, then id) were begun with. */
  cursor: string
  cursor_ms: number
}

/** Two notes that say much the same. A pair is found once, whichever of the two came last. */
export interface Duplicate {
  /** Made from the pair. */
  id: string
  /** Ids of memories, in order. */
  a: string
  b: string
  similarity: number
  /** Worded alike, but of different things: see `contradicts`. */
  label: 'contradicts' | null
  status: 'open' | 'resolved'
  action: string | null
  found_at: string
  resolved_by: string | null
  resolved_at: string | null
}
