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

export const content = () =>
  s.text(NOTE_BYTES_MAX).check(
    z.refine(
      // The check before this one has refused too many characters already.
      (value) => value.length > NOTE_BYTES_MAX || Buffer.byteLength(value) <= NOTE_BYTES_MAX,
      `may have at most ${NOTE_BYTES_MAX} bytes`,
    ),
  )

export const tagName = () => visible(100, 200)

export const scope = field(
  () => s.or(scopeName(), 'global'),
  'Scope of the note: global (the default), project:NAME, user:NAME or task:ID.',
)
export const scopeOptional = field(() => s.optional(scopeName()), 'Only this scope.')
export const key = field(() => visible(KEY_MAX, KEY_BYTES_MAX), 'What the note is about.')
export const tags = field(
  () =>
    s.optional(
      z.array(tagName(), 'must be a list of tags').check(z.maxLength(20, 'may have at most 20')),
    ),
  'Tags to find the note by (default: those of the version it is based on).',
  '--tag <tag...>',
)
export const taskId = field(
  s.someId,
  'The task that the note is written for; you must hold its lock.',
  '--task <id>',
)
export const fence = field(s.someCount, "The fence of that task's lease.")
export const resolution = field(() => s.optional(content()), 'A text that combines both.')
