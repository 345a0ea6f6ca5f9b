import { RESERVATION_TTL_MS } from '../core/bounds.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields of reservations. Places are opaque here: clients make them, rules compare them. */

export const PLACE_MAX = 4096

/** As many as a large commit has. */
export const paths = field(() => s.paths(1, 1000), 'Paths, relative to the checkout.')
export const touchedPaths = field(
  () => s.paths(0),
  'Paths that are about to be written; with none, only renew.',
)
export const project = field(s.someName, 'The project that the paths belong to.')
export const checkout = field(
  () => s.optional(s.nullable(s.orNone(PLACE_MAX))),
  'The checkout that the paths are in (default: this one); empty: the whole project.',
)
export const repository = field(
  () => s.optional(s.nullable(s.plain(PLACE_MAX))),
  'The repository that checkouts share, for warnings across worktrees.',
  null,
)
export const ttlSeconds = field(
  () => s.or(s.ttl(), RESERVATION_TTL_MS / 1000),
  'How long the reservation lasts unless it is renewed (default 15m).',
)
export const why = field(
  () => s.optional(s.plain(500)),
  'The reason, shown to agents that are refused.',
)
