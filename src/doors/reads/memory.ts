import type {
  ShownConflict,
  ShownMemory,
  ShownPut,
  ShownVersion,
} from '../../operations/memory_show.ts'
import type { AnswerOf } from '../../operations/registry.ts'
import { pageTable, type Pen, type Readings, since, span } from './pen.ts'

/** Shared memory. Whatever notes say is spelled out, and is nobody's instruction. */
export const MEMORY: Readings = {
  'memory.put': (put, pen) => putLines(put, 'wrote', pen),
  'memory.delete': (put, pen) => putLines(put, 'deleted', pen),
  'memory.get': noteSheet,
  'memory.list': (page, pen) =>
    pageTable(pen, page, 'No notes here. Write one: leasehold memory put KEY CONTENT', {
      SCOPE: 'scope',
      KEY: 'key',
      VERSION: ({ version, conflict }) => `${version}${conflict ? pen.bad(' conflict') : ''}`,
      AUTHOR: 'author',
      UPDATED: ({ updated_at }) => `${since(updated_at)} ago`,
      BYTES: 'size',
      TAGS: 'tags',
    }),
  'memory.history': (page, pen) =>
    pageTable(pen, page, 'All its versions were pruned.', {
      '': ({ head }) => (head ? pen.good('*') : ''),
      VERSION: 'version',
      FROM: ({ parents }) => parents.join(' '),
      WHAT: ({ kind, strategy, kept }) =>
        `${kind}${strategy ? ` (${strategy})` : ''}${kept ? '' : ' -'}`,
      AUTHOR: 'author',
      AT: ({ created_at }) => pen.time(created_at),
      BYTES: 'size',
    }),
  'memory.prune': pruneLines,
  'conflict.list': (page, pen) =>
    page.items[0]?.sides ? conflictSheet(page.items[0], pen) : conflictTable(page, pen),
  'conflict.resolve': ({ key, scope, version, open }, pen) =>
    `${pen.did('resolved')}: ${key} in ${scope} is now version ${version}` +
    (open > 0 ? pen.warn(`; ${open} more to settle`) : ''),
  'memory.search': ({ items, modes, why }, pen) =>
    [
      ...items.map((item) => `${headOf(item, pen)}\n${pen.body('memory', oneLine(item.excerpt))}`),
      ...(items.length === 0 ? [pen.dim('No note fits. Try other words, or fewer filters.')] : []),
      usedLine(modes, why, pen),
    ].join('\n'),
  'memory.context': ({ items, tokens, modes, why }, pen) =>
    [
      ...items.map((item) => {
        const text = `${item.content}${item.cut ? ' …' : ''}`
        return `${headOf(item, pen)}\n${pen.body('memory', text)}\n`
      }),
      pen.dim(`${items.length} notes, about ${tokens} tokens`),
      usedLine(modes, why, pen),
    ].join('\n'),
  'memory.status': statusLines,
  'memory.retry': ({ retried }, pen) => `${pen.did('retrying')} ${retried}`,
  'duplicate.list': (page, pen) =>
    pageTable(pen, page, 'No two notes say the same, as far as is known.', {
      ID: 'id',
      ALIKE: ({ similarity }) => similarity.toFixed(2),
      LABEL: 'label',
      A: ({ a }) => nameOf(a),
      SAYS: ({ a }) => saysOf(a, pen),
      B: ({ b }) => nameOf(b),
      'SAYS ': ({ b }) => saysOf(b, pen),
    }),
  'duplicate.resolve': ({ id, action }, pen) => `${pen.did('settled')} ${id}: ${action}`,
}

type Side = AnswerOf<'duplicate.list'>['items'][number]['a']

const nameOf = (side: Side) => (side ? `${side.scope} ${side.key}` : '(gone)')
const saysOf = (side: Side, pen: Pen) => pen.said(oneLine(side?.excerpt ?? '').slice(0, 60))
const oneLine = (text: string) => text.replaceAll(/\s+/g, ' ').trim()

const settling = (id: string, pen: Pen) =>
  `settle it: ${pen.call({ operation: 'conflict.resolve', input: { id, choose: 'ours' } })}`

function putLines(
  { key, scope, version, written, conflict }: ShownPut,
  verb: string,
  pen: Pen,
): string {
  const name = `${key} in ${scope}`
  const said = written
    ? `${pen.did(verb)} ${name}, version ${pen.strong(version)}`
    : `${name} says this already, in version ${version}`
  if (!conflict) return said
  const { id, status, strategy, why } = conflict
  const reason = why ?? 'not merged'
  const other = `version ${conflict.with.version} of ${conflict.with.author}`
  if (status === 'merged') return `${said}: merged with ${other} (${strategy})`
  return [
    said,
    `${pen.bad('conflict')} ${pen.strong(id)} with ${other}: both are kept (${reason})`,
    versionSheet(conflict.with, pen),
    pen.dim(`  ${settling(id, pen)}, or theirs`),
  ].join('\n')
}

function noteSheet(note: ShownMemory, pen: Pen): string {
  const { siblings, conflicts } = note
  const notice = `${siblings.length + 1} versions disagree: ${conflicts.join(', ')}`
  return [
    `${pen.strong(note.key)}  ${pen.dim(note.scope)}`,
    ...(siblings.length > 0 ? [pen.bad(notice)] : []),
    ...[note, ...siblings].map((each) => versionSheet(each, pen)),
  ].join('\n')
}

/** Who said it, when, and how sure they are; then what they said. */
function versionSheet(shown: ShownVersion, pen: Pen): string {
  const { version, author, created_at, confidence, tags, task_id, expires_at, content } = shown
  const facts = [
    `version ${version} by ${author}, ${pen.time(created_at)}`,
    confidence !== null && `confidence ${confidence}`,
    tags.length > 0 && `tags ${tags.join(' ')}`,
    task_id !== null && `for task ${task_id}`,
    expires_at !== null && `until ${pen.time(expires_at)}`,
  ]
  const none = shown.kind === 'delete' ? '(deleted)' : '(its text was pruned)'
  const text = content === '' ? pen.dim('(empty)') : pen.body('memory', content ?? '')
  const head = pen.dim(`  ${facts.filter(Boolean).join(', ')}`)
  return `${head}\n${content === null ? pen.dim(none) : text}`
}

function pruneLines(page: AnswerOf<'memory.prune'>, pen: Pen): string {
  const { dry_run, items } = page
  const shown = pageTable(pen, page, 'Nothing to prune.', {
    SCOPE: 'scope',
    KEY: 'key',
    VERSION: 'version',
    WHY: 'why',
    VERSIONS: 'versions',
    BYTES: 'bytes',
  })
  if (items.length === 0) return shown
  const said = dry_run
    ? pen.warn('Nothing was removed yet. To remove these notes: --dry-run no')
    : pen.good(`pruned ${items.length}`)
  return `${shown}\n${said}`
}

const conflictTable = (page: AnswerOf<'conflict.list'>, pen: Pen) =>
  pageTable(pen, page, 'Nobody disagrees.', {
    ID: 'id',
    SCOPE: 'scope',
    KEY: 'key',
    OURS: 'ours',
    THEIRS: 'theirs',
    STATUS: ({ status }) => (status === 'open' ? pen.bad(status) : status),
    BY: 'opened_by',
    SINCE: ({ opened_at }) => `${since(opened_at)} ago`,
  })

function conflictSheet(shown: ShownConflict, pen: Pen): string {
  const { id, scope, key, status, why, sides, draft } = shown
  const settle = `${settling(id, pen)}, or theirs, or a content of your own`
  return [
    `${pen.strong(`${id}  ${key}`)}  ${pen.dim(scope)}`,
    `  ${status}${why ? `: ${why}` : ''}`,
    pen.strong('ours'),
    versionSheet(sides!.ours, pen),
    pen.strong('theirs'),
    versionSheet(sides!.theirs, pen),
    ...(draft ? [pen.strong('draft'), pen.body('memory', draft)] : []),
    ...(status === 'open' ? [pen.dim(settle)] : []),
  ].join('\n')
}

type Labelled = AnswerOf<'memory.context' | 'memory.search'>['items'][number]

function headOf(item: Labelled, pen: Pen): string {
  const { scope, key, author, age_seconds, confidence, disputed } = item
  const facts = [
    `by ${author}, ${span(age_seconds)} ago`,
    confidence !== null && `confidence ${confidence}`,
    disputed && pen.bad('disputed'),
  ]
  return `${pen.strong(key)}  ${pen.dim(`${scope}  ${facts.filter(Boolean).join(', ')}`)}`
}

/** Which ways were used: a note that was not found may be there all the same. */
const usedLine = (modes: string[], why: string | undefined, pen: Pen) =>
  pen.dim(`looked by ${modes.join(' and ')}${why === undefined ? '' : `; ${why}`}`)

function statusLines(status: AnswerOf<'memory.status'>, pen: Pen): string {
  const { notes, embedded, provider, waiting, put_aside, problems } = status
  const share = notes === 0 ? '' : ` (${Math.floor((100 * embedded) / notes)} %)`
  return [
    `${notes} notes, ${embedded} embedded${share} by ${provider ?? 'nobody yet'}`,
    `${waiting} background jobs to do, ${put_aside} put aside`,
    ...(waiting > 0 ? [pen.dim('a running server does them: leasehold up')] : []),
    ...problems.map(({ kind, subject, attempts, error }) =>
      pen.warn(`  ${kind} ${subject}: ${error ?? ''} (${attempts} times)`),
    ),
    ...(put_aside > 0 ? [pen.dim('try again: leasehold memory retry --force')] : []),
  ].join('\n')
}
