import * as z from 'zod/mini'
import { NOTE_BYTES_MAX } from '../core/bounds.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields of shared memory: scopes, keys, tags and contents. */

const KEY_MAX = 256
/** In bytes: both stand in the keys of indexes, where a database has room for so much. */
const KEY_BYTES_MAX = 512
const SCOPE_BYTES_MAX = 640

// What cannot be seen makes two keys look like one.
const UNSEEN = /[\p{Cf}\p{Zl}\p{Zp}]/u

const visible = (max: number, bytes_max: number) =>
  s.plain(max).check(
    z.refine((value) => !UNSEEN.test(value), 'must not contain invisible characters'),
    z.refine(
      (value) => Buffer.byteLength(value) <= bytes_max,
      `may have at most ${bytes_max} bytes`,
    ),
  )

const isScope = (value: string) => value === 'global' || /^(?:project|user|task):./u.test(value)

const scopeName = () =>
  visible(210, SCOPE_BYTES_MAX).check(
    z.refine(isScope, 'must be global, project:NAME, user:NAME or task:ID'),
  )

const content = () =>
  s.text(NOTE_BYTES_MAX).check(
    z.refine(
      // Too many characters were told already.
      (value) => value.length > NOTE_BYTES_MAX || Buffer.byteLength(value) <= NOTE_BYTES_MAX,
      `may have at most ${NOTE_BYTES_MAX} bytes`,
    ),
  )

const tagName = () => visible(100, 200)

export const scope = field(
  () => s.or(scopeName(), 'global'),
  'Whose note it is: global (the default), project:NAME, user:NAME or task:ID.',
  '--scope <scope>',
)
export const scopeOptional = field(
  () => s.optional(scopeName()),
  'Only this scope.',
  '--scope <scope>',
)
export const key = field(() => visible(KEY_MAX, KEY_BYTES_MAX), 'What the note is about.')
export const text = field(content, 'The note: text of up to 1 MB. - reads standard input.')
export const basedOn = field(
  () => s.optional(s.count()),
  'The version you read. Left out, other content that is there is a conflict.',
  '--based-on <n>',
)
export const deletedVersion = field(
  () => s.optional(s.count()),
  'The version you read (default: the present one).',
  '--based-on <n>',
)
export const confidence = field(
  () => s.optional(s.numberIn(0, 1)),
  'How sure you are, 0 to 1.',
  '--confidence <n>',
)
export const tags = field(
  () =>
    s.optional(
      z.array(tagName(), 'must be a list of tags').check(z.maxLength(20, 'may have at most 20')),
    ),
  'Words to find it by (default: those of the version it is based on).',
  '--tag <tag...>',
)
export const tag = field(() => s.optional(tagName()), 'Only with this tag.', '--tag <tag>')
export const ttlSeconds = field(
  () => s.optional(s.seconds(1, 10 * 365 * 86_400)),
  'Forget it after so long (default: never).',
  '--ttl <duration>',
)
export const taskId = field(
  () => s.optional(s.id()),
  'The task it is written for: its lock must be yours.',
  '--task <id>',
)
export const fence = field(
  () => s.optional(s.count()),
  "The fence of that task's lease.",
  '--fence <n>',
)
export const version = field(
  () => s.optional(s.count()),
  'This version (default: the present one).',
  '--version <n>',
)
export const from = field(
  () => s.optional(s.count()),
  'The older version (default: what the newer one grew from).',
  '--from <n>',
)
export const to = field(
  () => s.optional(s.count()),
  'The newer version (default: the present one).',
  '--to <n>',
)
export const olderThan = field(
  () => s.optional(s.seconds(0, 100 * 365 * 86_400)),
  'What was not changed for so long.',
  '--older-than <duration>',
)
export const expired = field(() => s.or(s.yesOrNo(), false), 'Only what has expired.', '--expired')
export const belowConfidence = field(
  () => s.optional(s.numberIn(0, 1)),
  'Only what its author was less sure of.',
  '--below-confidence <n>',
)
export const history = field(
  () => s.or(s.yesOrNo(), false),
  'Leave the notes; forget the texts of their old versions.',
  '--history',
)
export const dryRun = field(
  () => s.or(s.yesOrNo(), true),
  'Only say what would go (default yes).',
  '--dry-run <yes|no>',
)
export const conflictId = field(() => s.plain(64), 'The conflict.')
export const conflictIdOptional = field(
  () => s.optional(s.plain(64)),
  'This one, with both contents and a draft.',
  '--id <id>',
)
export const conflictStatus = field(
  () =>
    s.or(
      z.enum(
        ['open', 'merged', 'resolved', 'replaced'],
        'must be open, merged, resolved or replaced',
      ),
      'open',
    ),
  'Those that are open (the default), merged, resolved or replaced.',
  '--status <status>',
)
/** A number may come as text: the command line has no other way to say it. */
export const choose = field(
  () =>
    s.optional(
      z
        .union([z.string(), z.int()], 'must be ours, theirs or a version')
        .check(
          z.refine(
            (value) => /^(?:ours|theirs|[1-9]\d{0,14})$/.test(String(value)),
            'must be ours, theirs or a version',
          ),
        ),
    ),
  'Which side is right: ours (was there), theirs (came later), or a version.',
  '--choose <side>',
)
export const resolution = field(
  () => s.optional(content()),
  'A text made of both.',
  '--content <text>',
)
export const supersede = field(
  () => s.or(s.yesOrNo(), false),
  'The content replaces both, and is not made of them.',
  '--supersede',
)
