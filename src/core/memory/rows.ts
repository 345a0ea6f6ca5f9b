/** The rows of shared memory. Texts have a table of their own: all else about a note is small. */

export const STRATEGIES = ['manual', 'newest', 'confident', 'union', 'text'] as const
export type Strategy = (typeof STRATEGIES)[number]

/** One shared note, by scope and key: which of its versions are the present. */
export interface Memory {
  /** `keyOf(scope, key)`. */
  id: string
  scope: string
  key: string
  /** The newest number given. It only rises, also when all versions were pruned. */
  version: number
  /** What nobody has built on: one version, siblings when agents disagree, none once pruned. */
  heads: number[]
  /** Whether any head has content; a deleted note is only in its history. */
  live: boolean
  /** Of the first head that has content. */
  author: string
  confidence: number | null
  tags: string[]
  size: number
  created_at: string
  updated_at: string
  updated_ms: number
  /** Not shown from then on; null: never. */
  expires_ms: number | null
}

export type VersionKind = 'put' | 'merge' | 'resolve' | 'delete'

/** One version of a note, never changed. `parents` make the history a graph without loops. */
export interface MemoryVersion {
  /** `keyOf(scope, key, version)`; its text has the same. */
  id: string
  memory_id: string
  version: number
  parents: number[]
  kind: VersionKind
  /** How a merge or a resolution came about. */
  strategy: string | null
  author: string
  /** The task it was written for, and the fence of that task's lease. */
  task_id: string | null
  fence: number | null
  confidence: number | null
  tags: string[]
  /** SHA-256 of the text, and its length in bytes; of a deletion the empty text. */
  hash: string
  size: number
  /** Whether there is a text: a deletion has none, and an old one may be pruned. */
  kept: boolean
  created_at: string
  created_ms: number
  expires_ms: number | null
}

export interface MemoryText {
  id: string
  content: string
}

export type ConflictStatus = 'open' | 'merged' | 'resolved' | 'replaced'

/** Two versions that disagree. It is about exactly these: when one changes, it is another. */
export interface MemoryConflict {
  id: string
  memory_id: string
  scope: string
  key: string
  /** What was there, what came, and what both grew from, if known. */
  ours: number
  theirs: number
  base: number | null
  status: ConflictStatus
  /** What was tried, or how it was settled. */
  strategy: string
  /** Why it could not be merged. */
  why: string | null
  opened_by: string
  opened_at: string
  opened_ms: number
  closed_by: string | null
  closed_at: string | null
  /** The version that settled it, or the conflict that took its place. */
  result: number | null
  replaced_by: string | null
}

/** The configuration of memory, as all who use the store see it; there is one row. */
export interface MemorySettings {
  key: 'memory'
  /** Scopes and their strategies: `project:web`, `project:*`, `*`. The longest that fits counts. */
  strategies: Record<string, Strategy>
}
