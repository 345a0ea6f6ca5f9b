import * as z from 'zod/mini'
import { DUPLICATE_ACTIONS } from '../core/memory/duplicate.ts'
import * as m from './memory_fields.ts'
import { field } from './operation.ts'
import * as s from './schemas.ts'
import { MODES } from './search_find.ts'

/** The fields of searching, and of pairs of notes that are alike. */

const QUERY_MAX = 2_000

export const query = field(
  () => s.text(QUERY_MAX).check(z.minLength(1, 'must not be empty')),
  'Words or a question to search for.',
)
export const queryOptional = field(
  () => s.optional(s.text(QUERY_MAX).check(z.minLength(1, 'must not be empty'))),
  'A question, instead of a task.',
)
export const scope = m.scopeOptional
export const tags = field(m.tags.schema, 'Only notes with all of these tags.', '--tag <tag...>')
export const author = field(() => s.optional(s.plain(256)), 'Only notes by this agent.')
export const minConfidence = field(
  () => s.optional(s.numberIn(0, 1)),
  'Only notes with at least this confidence.',
)
export const newerThan = field(
  () => s.optional(s.seconds(0, 100 * 365 * 86_400)),
  'Only notes written within this time.',
)
export const mode = field(
  () => s.or(z.enum(MODES, `must be one of ${MODES.join(', ')}`), 'fused'),
  'How to search: text, meaning, or both (fused, the default).',
)
export const limit = field(() => s.or(s.whole(1, 100), 10), 'Maximum number of notes (default 10).')
export const pairsLimit = field(
  () => s.or(s.whole(1, 1000), 10),
  'Maximum number of pairs (default 10).',
)
export const taskId = field(s.someId, 'The task that the notes are for.', '--task <id>')
export const tokenBudget = field(
  () => s.or(s.whole(100, 100_000), 2000),
  'Maximum number of tokens (default 2000).',
  '--tokens <n>',
)
export const pairId = field(() => s.plain(64), 'Id of the pair.')
export const pairStatus = field(
  () => s.or(z.enum(['open', 'resolved'], 'must be open or resolved'), 'open'),
  'Pairs with this status: open (the default) or resolved.',
)
export const action = field(
  () => z.enum(DUPLICATE_ACTIONS, `must be one of ${DUPLICATE_ACTIONS.join(', ')}`),
  'keep_both, delete_a, delete_b, or merge (content replaces a, b is deleted).',
)
export const mergedContent = field(m.resolution.schema, 'For merge: a text that combines both.')
