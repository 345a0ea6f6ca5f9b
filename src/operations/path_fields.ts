import { RESERVATION_TTL_MS } from '../core/bounds.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields of reservations. Places are opaque here: clients make them, rules compare them. */

const PLACE_MAX = 4096

export const globs = field(() => s.paths(1), 'Globs, relative to the checkout: src/**, docs/*.md.')
export const globsOptional = field(
  () => s.optional(s.paths(1)),
  'The globs to release (default: all of yours).',
)
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
export const onlyCheckout = field(
  () => s.optional(s.plain(PLACE_MAX)),
  'Only reservations in this checkout.',
)
export const onlyProject = field(s.someName, 'Only reservations of this project.')
export const repository = field(
  () => s.optional(s.nullable(s.plain(PLACE_MAX))),
  'The repository that checkouts share, for warnings across worktrees.',
  null,
)
export const shared = field(
  s.flag,
  'Let others reserve the same paths, as long as they share them too.',
)
export const ttlSeconds = field(
  () => s.or(s.ttl(), RESERVATION_TTL_MS / 1000),
  'How long the reservation lasts unless it is renewed (default 15m).',
)
export const why = field(
  () => s.optional(s.plain(500)),
  'The reason, shown to agents that are refused.',
)
/** About 25 tokens: the holder pays for reading it. */
const ASKED_MAX = 100
export const asked = field(() => s.plain(ASKED_MAX), 'Why you need them, for the holder to read.')
export const hears = field(
  s.flag,
  'The agent will read the answer: tell what others have left for it.',
)
export const mode = field(
  s.mode,
  'auto: reserve free paths; strict: refuse paths that you have not reserved; warn: only warn.',
)
export const nested = field(s.flag, 'Without paths: also release those of your subagents.')
export const keepSeconds = field(
  () => s.optional(s.ttl()),
  'How long you may be silent, if longer than the TTL: a long command is about to run.',
)
