import * as z from 'zod/mini'
import type { Duplicate } from '../core/schema/search.ts'
import { DUPLICATE_ACTIONS, isThere, resolveDuplicate } from '../core/memory/duplicate.ts'
import { excerptOf } from '../core/memory/search.ts'
import type { View } from '../core/view.ts'
import * as answers from './answers/memory.ts'
import * as f from './fields.ts'
import { contentOf, writtenAs } from './memory_show.ts'
import { field, onDatabase } from './operation.ts'
import { pageIn } from './page.ts'
import * as m from './memory_fields.ts'
import { textTools } from './text_merge.ts'
import * as s from './schemas.ts'

/** An agent reads both sides of every pair: a page of pairs must not fill its context. */
const EXCERPT_MAX = 160

/** One side of a pair: where it is, who wrote it, and how it begins. */
function showSide(view: View, id: string) {
  const memory = isThere(view, id)
  if (!memory) return null
  const { scope, key, author } = memory
  const { updated_at } = writtenAs(view, memory)
  const excerpt = excerptOf(contentOf(view, memory), [], EXCERPT_MAX)
  return { scope, key, author, updated_at, excerpt }
}

function showPair(view: View, pair: Duplicate) {
  const { a: first, b: second, ...rest } = pair
  return { ...rest, a: showSide(view, first), b: showSide(view, second) }
}

export const list = onDatabase.read({
  name: 'duplicate.list',
  refuses: ['invalid'],
  doc: 'Pairs of notes that say nearly the same, the most similar first.',
  tool: 'duplicates_list',
  input: {
    scope: m.scopeOptional,
    status: field(
      () => s.or(z.enum(['open', 'resolved'], 'must be open or resolved'), 'open'),
      'Pairs with this status: open (the default) or resolved.',
    ),
    limit: field(() => s.or(s.whole(1, 1000), 10), 'Maximum number of pairs (default 10).'),
    after: f.after,
  },
  output: answers.duplicates,
  command: 'memory duplicates',
  decide: (view, { scope, status, ...page }) =>
    pageIn(view, ['duplicates_with', status], page, (row) => {
      const pair = showPair(view, row)
      // One of them is gone: nothing is left to decide.
      if (status === 'open' && (!pair.a || !pair.b)) return null
      const isIn = scope === undefined || pair.a?.scope === scope || pair.b?.scope === scope
      return isIn ? pair : null
    }),
})

export const resolve = onDatabase.write({
  name: 'duplicate.resolve',
  touches: ({ id }) => [{ duplicate: id }],
  refuses: ['invalid', 'not_found', 'conflict', 'too_large'],
  doc: 'Settle a pair: keep both, delete one, or merge them.',
  tool: 'duplicate_resolve',
  input: {
    id: field(() => s.plain(64), 'Id of the pair.'),
    action: field(
      () => z.enum(DUPLICATE_ACTIONS, `must be one of ${DUPLICATE_ACTIONS.join(', ')}`),
      'keep_both, delete_a, delete_b, or merge (content replaces a, b is deleted).',
    ),
    content: field(m.resolution.schema, 'For merge: a text that combines both.'),
  },
  output: answers.duplicate,
  command: 'memory dedupe id',
  decide: (view, ask, caller) => {
    const { id, status, action } = resolveDuplicate(view, ask, caller, textTools)
    return { id, status, action }
  },
})
