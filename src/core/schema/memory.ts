import {
  text,
  int,
  real,
  bool,
  json,
  instant,
  notNull,
  isTrue,
  type RowOf,
  table,
} from './table.ts'

/** Shared memory. Texts have a table of their own: all else about a note is small. */

export const STRATEGIES = ['manual', 'newest', 'confident', 'union', 'text'] as const
export type Strategy = (typeof STRATEGIES)[number]

export type VersionKind = 'put' | 'merge' | 'resolve' | 'delete'

export type ConflictStatus = 'open' | 'merged' | 'resolved' | 'replaced'

/** One shared note, by scope and key: which of its versions are the present. */
export const memory = table({
  key: 'id',
  columns: {
    /** `keyOf(scope, key)`. */
    id: text(),
    scope: text(),
    key: text(),
    /** The newest number given. It only rises, also when all versions were pruned. */
    version: int(),
    /** What nobody has built on: one version, siblings when agents disagree, none once pruned. */
    heads: json<number[]>(),
    /** Whether any head has content; a deleted note is only in its history. */
    live: bool(),
    /** Of the first head that has content. */
    author: text(),
    confidence: real().orNull,
    tags: json<string[]>(),
    size: int(),
    created_at: text(),
    updated_at: text(),
    updated_ms: instant(),
    /** Not shown from then on; null: never. */
    expires_ms: instant().orNull,
  },
  derived: {
    has_versions: { bool: (row) => row.heads.length > 0 },
    /** With a history that could still be looked at. */
    deleted: { bool: (row) => !row.live && row.heads.length > 0 },
  },
  indexes: {
    memories: { rows: [isTrue('live')], order: 'id' },
    memories_in: { rows: [isTrue('live')], group: ['scope'], order: 'key' },
    /** All that still has versions, deleted or not: what was not touched for longest is first. */
    memories_by_age: { rows: [isTrue('has_versions')], order: 'updated_ms' },
    memories_by_expiry: { rows: [isTrue('live'), notNull('expires_ms')], order: 'expires_ms' },
    memories_deleted: { rows: [isTrue('deleted')], order: 'updated_ms' },
  },
})
export type Memory = RowOf<typeof memory>

/** One version of a note, never changed. `parents` make the history a graph without loops. */
export const memory_version = table({
  key: 'id',
  columns: {
    /** `keyOf(scope, key, version)`; its text has the same. */
    id: text(),
    memory_id: text(),
    version: int(),
    parents: json<number[]>(),
    kind: text<VersionKind>(),
    /** How a merge or a resolution came about. */
    strategy: text().orNull,
    author: text(),
    /** The task it was written for, and the fence of that task's lease. */
    task_id: text().orNull,
    fence: int().orNull,
    confidence: real().orNull,
    tags: json<string[]>(),
    /** SHA-256 of the text, and its length in bytes; of a deletion the empty text. */
    hash: text(),
    size: int(),
    /** Whether there is a text: a deletion has none, and an old one may be pruned. */
    kept: bool(),
    created_at: text(),
    created_ms: instant(),
    expires_ms: instant().orNull,
  },
  indexes: {
    /** The newest first: a version comes before all that it grew from. */
    versions_of: { group: ['memory_id'], order: 'version', descends: true },
    versions_saying: { rows: [isTrue('kept')], group: ['hash'], order: 'id' },
  },
})
export type MemoryVersion = RowOf<typeof memory_version>

export const memory_text = table({
  key: 'id',
  columns: {
    id: text(),
    content: text().apart.unsummed,
  },
  isWide: true,
})

/** Two versions that disagree. It is about exactly these: when one changes, it is another. */
export const memory_conflict = table({
  key: 'id',
  columns: {
    id: text(),
    memory_id: text(),
    scope: text(),
    key: text(),
    /** What was there, what came, and what both grew from, if known. */
    ours: int(),
    theirs: int(),
    base: int().orNull,
    status: text<ConflictStatus>(),
    /** What was tried, or how it was settled. */
    strategy: text(),
    /** Why it could not be merged. */
    why: text().orNull,
    opened_by: text(),
    opened_at: text(),
    opened_ms: instant(),
    closed_by: text().orNull,
    closed_at: text().orNull,
    /** The version that settled it, or the conflict that took its place. */
    result: int().orNull,
    replaced_by: text().orNull,
  },
  indexes: {
    conflicts: { group: ['status'], order: 'opened_ms' },
    conflicts_of: { group: ['memory_id'], order: 'opened_ms' },
  },
})
export type MemoryConflict = RowOf<typeof memory_conflict>
