import { RESERVATION_TTL_MS } from '../core/limits.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields of reservations. Places are opaque here: a client computes them, and they compare. */

const PLACE_MAX = 4096

export const globs = field(() => s.paths(1), 'Globs, relative to the checkout: src/**, docs/*.md.')
export const globsOptional = field(() => s.optional(s.paths(1)), 'Those globs (default: all).')
/** As many as a large commit has. */
export const paths = field(() => s.paths(1, 1000), 'Paths, relative to the checkout.')
export const touchedPaths = field(
  () => s.paths(0),
  'Paths that are about to be written; none for a sign of life.',
)
export const project = field(
  () => s.optional(s.plain(200)),
  'The project that the paths belong to.',
  '--project <name>',
)
export const checkout = field(
  () => s.optional(s.nullable(s.orNone(PLACE_MAX))),
  'The checkout that the paths are in (default: this one); empty: the whole project.',
  '--checkout <place>',
)
export const onlyCheckout = field(
  () => s.optional(s.plain(PLACE_MAX)),
  'Only those in this checkout.',
  '--checkout <place>',
)
export const onlyProject = field(
  () => s.optional(s.plain(200)),
  'Only those of this project.',
  '--project <name>',
)
export const repository = field(
  () => s.optional(s.nullable(s.plain(PLACE_MAX))),
  'What the checkouts of one repository have in common, for a warning across them.',
)
export const shared = field(
  () => s.or(s.yesOrNo(), false),
  'Others may have them too, as long as they share them.',
  '--shared',
)
export const ttlSeconds = field(
  () => s.or(s.ttl(), RESERVATION_TTL_MS / 1000),
  'How long they last unless renewed (default 15m).',
  '--ttl <duration>',
)
export const why = field(
  () => s.optional(s.plain(500)),
  'Why, for whoever is refused.',
  '--reason <text>',
)
export const mode = field(
  s.mode,
  'auto: reserve what nobody has; strict: refuse what you have not reserved; warn: only say so.',
)
export const nested = field(
  () => s.or(s.yesOrNo(), false),
  'With no paths: also those of your subagents.',
  '--nested',
)
export const keepSeconds = field(
  () => s.optional(s.ttl()),
  'How long you may be silent now, where that is longer: a command runs that takes its time.',
)
