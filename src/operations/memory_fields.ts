import * as z from 'zod/mini'
import { NOTE_BYTES_MAX } from '../core/bounds.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'

/** The fields of shared memory: scopes, keys, tags and contents. */

const KEY_MAX = 256
/** In bytes: key and scope are part of the keys of indexes, whose length databases bound. */
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
      // The check before this one has refused too many characters already.
      (value) => value.length > NOTE_BYTES_MAX || Buffer.byteLength(value) <= NOTE_BYTES_MAX,
      `may have at most ${NOTE_BYTES_MAX} bytes`,
    ),
  )

const tagName = () => visible(100, 200)

export const scope = field(
  () => s.or(scopeName(), 'global'),
  'Scope of the note: global (the default), project:NAME, user:NAME or task:ID.',
)
export const scopeOptional = field(() => s.optional(scopeName()), 'Only this scope.')
export const key = field(() => visible(KEY_MAX, KEY_BYTES_MAX), 'What the note is about.')
export const text = field(content, 'The note, up to 1 MB of text. "-" reads standard input.')
export const basedOn = field(
  s.someCount,
  'The version you read. Without it, writing over different content is a conflict.',
)
export const deletedVersion = field(s.someCount, 'The version you read (default: the current one).')
export const confidence = field(() => s.optional(s.numberIn(0, 1)), 'How sure you are, 0 to 1.')
export const tags = field(
  () =>
    s.optional(
      z.array(tagName(), 'must be a list of tags').check(z.maxLength(20, 'may have at most 20')),
    ),
  'Tags to find the note by (default: those of the version it is based on).',
  '--tag <tag...>',
)
export const tag = field(() => s.optional(tagName()), 'Only notes with this tag.')
export const ttlSeconds = field(
  () => s.optional(s.seconds(1, 10 * 365 * 86_400)),
  'Forget the note after this long (default: never).',
)
export const taskId = field(
  s.someId,
  'The task that the note is written for; you must hold its lock.',
  '--task <id>',
)
export const fence = field(s.someCount, "The fence of that task's lease.")
export const version = field(s.someCount, 'The version to show (default: the current one).')
export const olderThan = field(
  () => s.optional(s.seconds(0, 100 * 365 * 86_400)),
  'Only notes that have not changed for this long.',
)
export const expired = field(s.flag, 'Only notes that have expired.')
export const belowConfidence = field(
  () => s.optional(s.numberIn(0, 1)),
  'Only notes with a lower confidence than this.',
)
export const history = field(s.flag, 'Keep the notes, remove the texts of their old versions.')
export const dryRun = field(
  () => s.or(s.yesOrNo(), true),
  'Only show what would be removed (default yes).',
  '--dry-run <yes|no>',
)
export const conflictId = field(() => s.plain(64), 'Id of the conflict.')
export const conflictIdOptional = field(
  () => s.optional(s.plain(64)),
  'Only this conflict, with both contents and a draft of a merge.',
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
  'Conflicts with this status: open (the default), merged, resolved or replaced.',
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
  'Which side is right: ours (was there first), theirs (came later), or a version.',
)
export const resolution = field(() => s.optional(content()), 'A text that combines both.')
export const supersede = field(
  s.flag,
  'The content replaces both versions instead of combining them.',
)
