import type { TokenScope } from '../rows.ts'
import { text, json, instant, notNull, type RowOf, table } from './table.ts'

/** Who may ask, and what was asked. */

/** What a request id did, so that asking again answers the same without doing it twice. */
export const request = table({
  key: 'key',
  columns: {
    key: text(),
    input_hash: text(),
    reply: json(),
    at_ms: instant(),
  },
  indexes: { requests_by_age: { order: 'at_ms' } },
})
export type Request = RowOf<typeof request>

/** Who may come in with a secret. Only the secret's hash is kept. */
export const token = table({
  key: 'hash',
  columns: {
    hash: text(),
    /** A short name for people, taken from the hash. */
    id: text(),
    role: text<'viewer' | 'agent' | 'admin'>(),
    agent: text().orNull,
    /** What it is bound to; null: to nothing. */
    scope: json<TokenScope>().orNull,
    created_by: text(),
    created_at: text(),
    expires_at: text().orNull,
    expires_ms: instant().orNull,
    revoked_at: text().orNull,
  },
  derived: {
    /** When it ends; of one that was revoked, nothing else may be known. */
    ends_ms: { instant: (row) => row.expires_ms ?? (row.revoked_at === null ? null : 0) },
  },
  indexes: {
    tokens: { order: 'created_at' },
    tokens_by_end: { rows: [notNull('ends_ms')], order: 'ends_ms' },
  },
})
export type Token = RowOf<typeof token>
