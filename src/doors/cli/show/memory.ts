import pc from 'picocolors'
import type {
  ShownConflict,
  ShownMemory,
  ShownPut,
  ShownVersion,
} from '../../../operations/memory_show.ts'
import type { AnswerOf, ByAnswer } from '../../../operations/registry.ts'
import { clock, indented, pageTable, span } from './table.ts'

/** How results about shared memory are shown to a person. Whatever notes say is spelled out. */
export const MEMORY_PRINTERS: ByAnswer<string> = {
  'memory.put': (put) => putLines(put, 'wrote'),
  'memory.delete': (put) => putLines(put, 'deleted'),
  'memory.get': noteSheet,
  'memory.list': (page) =>
    pageTable(page, 'No notes here. Write one: leasehold memory put KEY CONTENT', {
      SCOPE: 'scope',
      KEY: 'key',
      VERSION: ({ version, conflict }) => `${version}${conflict ? pc.red(' conflict') : ''}`,
      AUTHOR: 'author',
      UPDATED: ({ updated_at }) => since(updated_at),
      BYTES: 'size',
      TAGS: 'tags',
    }),
  'memory.history': (page) =>
    pageTable(page, 'All its versions were pruned.', {
      '': ({ head }) => (head ? pc.green('*') : ''),
      VERSION: 'version',
      FROM: ({ parents }) => parents.join(' '),
      WHAT: ({ kind, strategy, kept }) =>
        `${kind}${strategy ? ` (${strategy})` : ''}${kept ? '' : ' -'}`,
      AUTHOR: 'author',
      AT: ({ created_at }) => clock(created_at),
      BYTES: 'size',
    }),
  'memory.prune': pruneLines,
  'conflict.list': (page) =>
    page.items[0]?.sides ? conflictSheet(page.items[0]) : conflictTable(page),
  'conflict.resolve': ({ key, scope, version, open }) =>
    `${pc.green('resolved')}: ${key} in ${scope} is now version ${version}` +
    (open > 0 ? pc.yellow(`; ${open} more to settle`) : ''),
}

const since = (at: string) =>
  `${span(Math.max(0, Math.round((Date.now() - Date.parse(at)) / 1000)))} ago`

function putLines({ key, scope, version, written, conflict }: ShownPut, verb: string): string {
  const name = `${key} in ${scope}`
  const said = written
    ? `${pc.green(verb)} ${name}, version ${pc.bold(String(version))}`
    : `${name} says this already, in version ${version}`
  if (!conflict) return said
  const { id, status, strategy, why } = conflict
  const other = `version ${conflict.with.version} of ${conflict.with.author}`
  if (status === 'merged') return `${said}: merged with ${other} (${strategy})`
  return [
    said,
    `${pc.red('conflict')} ${pc.bold(id)} with ${other}: both are kept (${why ?? 'not merged'})`,
    versionSheet(conflict.with),
    pc.dim(`  settle it: leasehold memory resolve ${id} --choose ours|theirs`),
  ].join('\n')
}

function noteSheet(note: ShownMemory): string {
  const { siblings, conflicts } = note
  const head = pc.bold(`${note.key}  ${pc.dim(note.scope)}`)
  const notice = `${siblings.length + 1} versions disagree: ${conflicts.join(', ')}`
  return [
    head,
    ...(siblings.length > 0 ? [pc.red(notice)] : []),
    ...[note, ...siblings].map(versionSheet),
  ].join('\n')
}

function versionSheet(shown: ShownVersion): string {
  const { version, author, created_at, confidence, tags, task_id, expires_at, content } = shown
  const facts = [
    `version ${version} by ${author}, ${clock(created_at)}`,
    confidence !== null && `confidence ${confidence}`,
    tags.length > 0 && `tags ${tags.join(' ')}`,
    task_id !== null && `for task ${task_id}`,
    expires_at !== null && `until ${clock(expires_at)}`,
  ]
  const head = pc.dim(`  ${facts.filter(Boolean).join(', ')}`)
  const none = shown.kind === 'delete' ? '(deleted)' : '(its text was pruned)'
  const text = content === '' ? pc.dim('(empty)') : indented(content ?? '')
  return `${head}\n${content === null ? pc.dim(none) : text}`
}

function pruneLines(page: AnswerOf<'memory.prune'>): string {
  const { dry_run, items } = page
  const shown = pageTable(page, 'Nothing to prune.', {
    SCOPE: 'scope',
    KEY: 'key',
    VERSION: 'version',
    WHY: 'why',
    VERSIONS: 'versions',
    BYTES: 'bytes',
  })
  if (items.length === 0) return shown
  const said = dry_run
    ? pc.yellow('Nothing was removed yet. To remove these notes: --dry-run no')
    : pc.green(`pruned ${items.length}`)
  return `${shown}\n${said}`
}

function conflictTable(page: AnswerOf<'conflict.list'>): string {
  return pageTable(page, 'Nobody disagrees.', {
    ID: 'id',
    SCOPE: 'scope',
    KEY: 'key',
    OURS: 'ours',
    THEIRS: 'theirs',
    STATUS: ({ status }) => (status === 'open' ? pc.red(status) : status),
    BY: 'opened_by',
    SINCE: ({ opened_at }) => since(opened_at),
  })
}

function conflictSheet(shown: ShownConflict): string {
  const { id, scope, key, status, why, sides, draft } = shown
  return [
    pc.bold(`${id}  ${key}  ${pc.dim(scope)}`),
    `  ${status}${why ? `: ${why}` : ''}`,
    pc.cyan('ours'),
    versionSheet(sides!.ours),
    pc.cyan('theirs'),
    versionSheet(sides!.theirs),
    ...(draft === null || draft === undefined ? [] : [pc.cyan('draft'), indented(draft)]),
    ...(status === 'open'
      ? [pc.dim(`settle it: leasehold memory resolve ${id} --choose ours|theirs, or --content -`)]
      : []),
  ].join('\n')
}
