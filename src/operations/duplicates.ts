import type { Duplicate } from '../core/schema/search.ts'
import { resolveDuplicate, isThere } from '../core/memory/duplicate.ts'
import { excerptOf } from '../core/memory/search.ts'
import type { View } from '../core/view.ts'
import * as answers from './answers/memory.ts'
import * as f from './fields.ts'
import { contentOf, writtenAs } from './memory_show.ts'
import { onDatabase } from './operation.ts'
import { pageIn } from './page.ts'
import * as d from './search_fields.ts'
import { textTools } from './text_merge.ts'

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
  input: { scope: d.scope, status: d.pairStatus, limit: d.pairsLimit, after: f.after },
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
  input: { id: d.pairId, action: d.action, content: d.mergedContent },
  output: answers.duplicate,
  command: 'memory dedupe id',
  decide: (view, ask, caller) => {
    const { id, status, action } = resolveDuplicate(view, ask, caller, textTools)
    return { id, status, action }
  },
})
