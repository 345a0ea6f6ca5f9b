/** The rows of what is done behind memory: background jobs, vectors, and notes that are alike. */

export const BACKGROUND_KINDS = ['embed', 'duplicates', 'label'] as const
export type BackgroundKind = (typeof BACKGROUND_KINDS)[number]

/** Something to be done once for a subject, however often it was asked for meanwhile. */
export interface BackgroundJob {
  /** `keyOf(kind, subject)`. */
  key: string
  kind: BackgroundKind
  /** A memory; of `label` a pair of them. */
  subject: string
  state: 'waiting' | 'claimed' | 'dead'
  /** How often it was claimed since it was asked for. */
  attempts: number
  /** Not before this: a failure makes it wait. */
  next_ms: number
  /** Of the lease under which it was claimed: the holder of another lease does not do this job. */
  fence: number | null
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

/** Whose vectors count, and how far all notes are on the way to having one; there is one row. */
export interface Embedding {
  key: 'embedding'
  provider: string
  dimensions: number
  since_at: string
  /** Notes up to this id were asked for; null: all were. */
  cursor: string | null
}

export const LABELS = ['same', 'refines', 'contradicts'] as const
export type Label = (typeof LABELS)[number]

/** Two notes that say much the same. A pair is found once, whichever of the two came last. */
export interface Duplicate {
  /** Made from the pair. */
  id: string
  /** Ids of memories, in order. */
  a: string
  b: string
  similarity: number
  /** What a model made of them, where one is configured. */
  label: Label | null
  status: 'open' | 'resolved'
  action: string | null
  found_at: string
  resolved_by: string | null
  resolved_at: string | null
}
