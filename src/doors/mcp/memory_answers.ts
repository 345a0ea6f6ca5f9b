import type {
  ShownConflict,
  ShownMemory,
  ShownPut,
  ShownVersion,
} from '../../operations/memory_show.ts'
import { quoted, word } from '../../core/quote.ts'
import { unseenIn } from '../unseen.ts'
import { untrusted } from './untrusted.ts'
import type { AnswerOf, ByAnswer } from '../../operations/registry.ts'

type Shape = Record<string, unknown>
type Labelled = AnswerOf<'memory.context' | 'memory.search'>['items'][number]

const withoutEmpty = (of: object, drops: string[] = []): Shape =>
  Object.fromEntries(
    Object.entries(of).filter(([name, value]) => {
      const isEmpty = value === null || value === false || (Array.isArray(value) && !value.length)
      return !isEmpty && !drops.includes(name)
    }),
  )

export const SEARCH_SHORT: ByAnswer<Shape> = {
  'memory.search': ({ items, ...rest }) => ({
    items: items.map((item) => withoutEmpty(item, ['score'])),
    ...rest,
  }),
  'memory.context': ({ items, ...rest }) => ({
    items: items.map((item) => withoutEmpty(item)),
    ...rest,
  }),
  'duplicate.list': ({ items, next }) => ({
    items: items.map((item) => withoutEmpty(item, ['status'])),
    next,
  }),
}

export const SEARCH_WORDS: ByAnswer<string> = {
  'memory.search': ({ items, modes, why }) =>
    [
      ...items.map((item) => `${headOf(item)}\n${untrusted('memory', [item.excerpt])}`),
      ...(items.length === 0 ? ['No note fits.'] : []),
      usedLine(modes, why),
    ].join('\n'),
  'memory.context': ({ items, modes, why }) =>
    [
      ...items.map((item) => `${headOf(item)}\n${untrusted('memory', [item.content])}`),
      ...(items.length === 0 ? ['No notes for this.'] : []),
      usedLine(modes, why),
    ].join('\n'),
  'duplicate.list': ({ items, next }) =>
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

/** What is shown of a version; its hash and its place in the history are for programs. */
const VERSION = ['version', 'author', 'created_at', 'confidence', 'tags', 'content', 'kind']
const NOTE = ['scope', 'key', ...VERSION, 'expires_at', 'task_id', 'conflicts']
const DISAGREEMENT = ['id', 'status', 'strategy', 'why', 'ours', 'theirs', 'base']
const CONFLICT = ['id', 'scope', 'key', 'ours', 'theirs', 'status', 'opened_by', 'opened_at']

const some = (fields: string[], of: object): Shape =>
  Object.fromEntries(
    Object.entries(of).filter(([name, value]) => fields.includes(name) && !isEmpty(value)),
  )

const isEmpty = (value: unknown) => value === null || (Array.isArray(value) && value.length === 0)

/** What each answer is as data, without what says nothing. */
export const MEMORY_SHORT: ByAnswer<Shape> = {
  'memory.put': ({ conflict, ...put }) =>
    conflict
      ? {
          ...put,
          conflict: { ...some(DISAGREEMENT, conflict), with: some(VERSION, conflict.with) },
        }
      : put,
  'memory.get': (note) => ({
    ...some(NOTE, note),
    ...(note.siblings.length > 0 && { siblings: note.siblings.map((each) => some(VERSION, each)) }),
  }),
  'conflict.list': ({ items, next }) => ({
    items: items.map((item) => ({
      ...some([...CONFLICT, 'why', 'draft', 'base_content'], item),
      ...(item.sides && {
        sides: { ours: some(VERSION, item.sides.ours), theirs: some(VERSION, item.sides.theirs) },
      }),
    })),
    next,
  }),
}

export const MEMORY_WORDS: ByAnswer<string> = {
  'memory.put': putLines,
  'memory.get': noteLines,
  'conflict.list': ({ items, next }) => conflictLines(items, next),
  'conflict.resolve': ({ key, version, open }) =>
    `Resolved: ${quoted(key)} is now version ${version}${open > 0 ? `; ${open} open` : ''}`,
}

/** Keys are written by others too: in quotation marks they are no line of ours. */
function putLines({ key, version, written, conflict }: ShownPut): string {
  const said = `${written ? 'Wrote' : 'Already there:'} ${quoted(key)} version ${version}`
  if (!conflict) return said
  const { id, status, strategy } = conflict
  const other = `version ${conflict.with.version} of ${word(conflict.with.author)}`
  if (status === 'merged') return `${said}: merged with ${other} (${strategy}). Read it again.`
  return [
    `${said}. CONFLICT ${id} with ${other}: both are kept.`,
    'Settle it with conflict_resolve: choose ours, theirs, or give a content made of both.',
    versionText(conflict.with),
  ].join('\n')
}

function noteLines(note: ShownMemory): string {
  const { key, scope, siblings, conflicts } = note
  const head = `${quoted(key)} in ${word(scope)}`
  if (siblings.length === 0) return `${head}\n${versionText(note)}`
  return [
    `${head}: ${siblings.length + 1} versions disagree (conflict ${conflicts.join(', ')})`,
    ...[note, ...siblings].map((each) => versionText(each)),
  ].join('\n')
}

/** Who said it, when, and how sure they are; then what they said, as data. */
function versionText(shown: ShownVersion): string {
  const { version, author, created_at, confidence, content, kind } = shown
  const sure = confidence === null ? '' : `, confidence ${confidence}`
  const head = `version ${version} by ${word(author)} at ${created_at}${sure}`
  if (content === null) return `${head}: ${kind === 'delete' ? 'deleted' : 'its text was pruned'}`
  const unseen = unseenIn(content)
  const warning = unseen ? ` (contains invisible characters: ${unseen})` : ''
  return `${head}${warning}\n${untrusted('memory', [content])}`
}

function conflictLines(items: ShownConflict[], next: string | null): string {
  const lines = items.map((item) => {
    const { id, key, scope, ours, theirs, opened_by } = item
    const head = `${id} ${word(scope)} ${quoted(key)} ${ours} | ${theirs} by ${word(opened_by)}`
    if (!item.sides) return head
    const draft = item.draft ? [`draft of a merge:\n${untrusted('memory', [item.draft])}`] : []
    return [head, versionText(item.sides.ours), versionText(item.sides.theirs), ...draft].join('\n')
  })
  return [
    ...(lines.length > 0 ? lines : ['No conflicts.']),
    ...(next ? [`more: after=${next}`] : []),
  ].join('\n')
}
