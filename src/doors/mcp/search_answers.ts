import type { ShownPairs } from '../../operations/duplicates.ts'
import type { ShownContext, ShownSearch } from '../../operations/search.ts'
import { quoted, word } from '../../core/quote.ts'
import { untrusted } from './untrusted.ts'

type Shape = Record<string, unknown>
type Labelled = ShownContext['items'][number] | ShownSearch['items'][number]

const withoutEmpty = (of: object, drops: string[] = []): Shape =>
  Object.fromEntries(
    Object.entries(of).filter(([name, value]) => {
      const isEmpty = value === null || value === false || (Array.isArray(value) && !value.length)
      return !isEmpty && !drops.includes(name)
    }),
  )

export const SEARCH_SHORT: Record<string, (result: never) => Shape> = {
  'memory.search': ({ items, ...rest }: ShownSearch) => ({
    items: items.map((item) => withoutEmpty(item, ['score'])),
    ...rest,
  }),
  'memory.context': ({ items, ...rest }: ShownContext) => ({
    items: items.map((item) => withoutEmpty(item)),
    ...rest,
  }),
  'duplicate.list': ({ items, next }: ShownPairs) => ({
    items: items.map((item) => withoutEmpty(item, ['status'])),
    next,
  }),
}

export const SEARCH_WORDS: Record<string, (result: never) => string> = {
  'memory.search': ({ items, modes, why }: ShownSearch) =>
    [
      ...items.map((item) => `${headOf(item)}\n${untrusted('memory', [item.excerpt])}`),
      ...(items.length === 0 ? ['No note fits.'] : []),
      usedLine(modes, why),
    ].join('\n'),
  'memory.context': ({ items, modes, why }: ShownContext) =>
    [
      ...items.map((item) => `${headOf(item)}\n${untrusted('memory', [item.content])}`),
      ...(items.length === 0 ? ['No notes for this.'] : []),
      usedLine(modes, why),
    ].join('\n'),
  'duplicate.list': ({ items, next }: ShownPairs) =>
    [
      ...items.map(({ id, similarity, label, a, b }) => {
        const head = `${id} ${similarity.toFixed(2)}${label ? ` ${label}` : ''}`
        const sides = [a, b].map((side, i) => {
          const where = side ? `${word(side.scope)} ${quoted(side.key)}` : 'gone'
          return `${'ab'[i]!}: ${where}\n${untrusted('memory', [side?.excerpt ?? ''])}`
        })
        return [head, ...sides].join('\n')
      }),
      ...(items.length === 0 ? ['No duplicates.'] : []),
      ...(next ? [`more: after=${next}`] : []),
    ].join('\n'),
}

/** Which ways were used: a note that was not found may be there all the same. */
function usedLine(modes: string[], why: string | undefined): string {
  const ways = modes.map((mode) => (mode === 'text' ? 'words' : mode)).join(' and ')
  return why === undefined ? `Looked by ${ways}.` : `Looked by ${ways} only: ${why}`
}

/** Who says so, since when, how sure, and whether others disagree. Keys are others' words too. */
function headOf({ scope, key, author, age_seconds, confidence, disputed }: Labelled): string {
  const sure = confidence === null ? '' : `, confidence ${confidence}`
  const doubt = disputed ? ', DISPUTED: see conflicts_list' : ''
  return `${quoted(key)} in ${word(scope)} by ${word(author)}, ${age_seconds} s ago${sure}${doubt}`
}
