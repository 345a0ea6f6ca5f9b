import type { Memory, MemoryVersion } from '../core/schema/memory.ts'
import type { Touched } from '../core/touched.ts'
import { deleteMemory, getMemory, putMemory } from '../core/memory/memory.ts'
import { openConflicts } from '../core/memory/conflict.ts'
import { versionOf } from '../core/memory/history.ts'
import { pruneMemories } from '../core/memory/prune.ts'
import { isExpired, memoryAt, textOf } from '../core/memory/version.ts'
import { lockOf } from '../core/locks/lease.ts'
import { word } from '../core/quote.ts'
import { Refusal } from '../core/refusal.ts'
import { keyOf } from '../core/rows.ts'
import type { Need, View } from '../core/view.ts'
import * as answers from './answers/memory.ts'
import * as f from './fields.ts'
import * as m from './memory_fields.ts'
import {
  showItem,
  showMemory,
  type ShownPut,
  showPut,
  showVersion,
  showWhole,
} from './memory_show.ts'
import { field, LEASE_REFUSALS, onDatabase, toMs } from './operation.ts'
import { cursorIn, pageIn, placeOf } from './page.ts'
import { textTools } from './text_merge.ts'
import * as s from './schemas.ts'

interface Named {
  scope: string
  key: string
  task_id?: string | undefined
}

const reads = ({ scope, key, task_id }: Named): Need[] => [
  { table: 'memory', key: keyOf(scope, key) },
  { index: 'host_settings_of', group: 'memory' },
  ...(task_id === undefined ? [] : [{ table: 'lease' as const, key: lockOf(task_id) }]),
]

/** A content may be a megabyte, and is in the store already: replies are remembered without it. */
const keeps = (reply: ShownPut): ShownPut => {
  const { conflict } = reply
  return { ...reply, conflict: conflict && { ...conflict, with: without(conflict.with) } }
}
const without = <T extends { content: string | null }>(shown: T): T => ({ ...shown, content: null })
const replay = (view: View, reply: ShownPut): ShownPut => {
  const { conflict, scope, key } = reply
  if (!conflict) return reply
  const row = versionOf(view, keyOf(scope, key), conflict.with.version)
  const content = row ? textOf(view, row) : null
  return { ...reply, conflict: { ...conflict, with: { ...conflict.with, content } } }
}

/** Written under a claim of a task, it tells whether that is held. */
const written = ({
  scope,
  task_id,
}: {
  scope: string
  task_id?: string | undefined
}): Touched[] => [
  { notes: scope },
  ...(task_id === undefined ? [] : [{ task: task_id, changes: true }]),
]

export const put = onDatabase.write({
  name: 'memory.put',
  touches: written,
  refuses: ['invalid', 'not_found', 'too_large', ...LEASE_REFUSALS],
  doc: 'Write a shared note. If another version disagrees, both are kept and the answer says so.',
  tool: 'memory_put',
  input: {
    key: m.key,
    content: field(m.content, 'The note, up to 1 MB of text. "-" reads standard input.'),
    scope: m.scope,
    based_on: field(
      s.someCount,
      'The version you read. Without it, writing over different content is a conflict.',
    ),
    confidence: field(() => s.optional(s.numberIn(0, 1)), 'How sure you are, 0 to 1.'),
    tags: m.tags,
    ttl_seconds: field(
      () => s.optional(s.seconds(1, 10 * 365 * 86_400)),
      'Forget the note after this long (default: never).',
    ),
    task_id: m.taskId,
    fence: m.fence,
  },
  output: answers.put,
  command: 'memory put key content',
  reads,
  decide: (view, { ttl_seconds, ...said }, caller) => {
    const ask = { ...said, ttl_ms: toMs(ttl_seconds) }
    return showPut(view, putMemory(view, ask, caller, textTools))
  },
  keeps,
  replay,
})

export const get = onDatabase.read({
  name: 'memory.get',
  refuses: ['not_found', 'invalid'],
  doc: 'A shared note, with the versions that disagree with it.',
  tool: 'memory_get',
  input: {
    key: m.key,
    scope: m.scope,
    version: field(s.someCount, 'The version to show (default: the current one).'),
  },
  output: answers.memory,
  command: 'memory get key',
  decide: (view, { scope, key, version }) => {
    if (version === undefined) {
      const memory = getMemory(view, scope, key)
      return showMemory(view, memory, openConflicts(view, memory.id))
    }
    const row = versionAt(view, scope, key, version)
    return { scope, key, ...showWhole(view, row), siblings: [], conflicts: [] }
  },
})

function versionAt(view: View, scope: string, key: string, version: number): MemoryVersion {
  const row = versionOf(view, keyOf(scope, key), version)
  if (row) return row
  throw new Refusal(
    'not_found',
    `There is no version ${version} of ${word(key)} in ${word(scope)}`,
    {
      next: { says: 'See which there are', operation: 'memory.history', input: { key, scope } },
      details: { scope, key, version },
    },
  )
}

export const list = onDatabase.read({
  name: 'memory.list',
  refuses: ['invalid'],
  doc: 'Notes by scope and key, without their contents.',
  input: {
    scope: m.scopeOptional,
    tag: field(() => s.optional(m.tagName()), 'Only notes with this tag.'),
    ...f.page,
  },
  output: answers.memories,
  command: 'memory list',
  decide: (view, { scope, tag, ...page }) => {
    const show = (memory: Memory) => {
      if (isExpired(view, memory)) return null
      return tag === undefined || memory.tags.includes(tag) ? showItem(view, memory) : null
    }
    return scope === undefined
      ? pageIn(view, ['memories', ''], page, show)
      : pageIn(view, ['memories_in', scope], page, show)
  },
})

export const history = onDatabase.read({
  name: 'memory.history',
  refuses: ['invalid', 'not_found'],
  doc: 'Every version of a note, newest first: who wrote it, and what it is based on.',
  input: { key: m.key, scope: m.scope, ...f.page },
  output: answers.history,
  command: 'memory history key',
  decide: (view, { scope, key, ...page }) => {
    const memory = memoryAt(view, scope, key) ?? getMemory(view, scope, key)
    return pageIn(view, ['versions_of', memory.id], page, (row) => {
      return { ...showVersion(view, row), head: memory.heads.includes(row.version) }
    })
  },
})

export const remove = onDatabase.write({
  name: 'memory.delete',
  touches: written,
  refuses: ['invalid', 'not_found', 'conflict', ...LEASE_REFUSALS],
  doc: 'Delete a note; its history stays until it is pruned.',
  input: {
    key: m.key,
    scope: m.scope,
    based_on: field(s.someCount, 'The version you read (default: the current one).'),
    task_id: m.taskId,
    fence: m.fence,
  },
  output: answers.put,
  command: 'memory delete key',
  reads,
  decide: (view, said, caller) => showPut(view, deleteMemory(view, said, caller, textTools)),
  keeps,
  replay,
})

export const prune = onDatabase.admin({
  name: 'memory.prune',
  refuses: ['invalid'],
  doc: 'Remove notes for good: deleted and expired ones, and those that match. Dry run by default.',
  input: {
    scope: m.scopeOptional,
    older_than_seconds: field(
      () => s.optional(s.seconds(0, 100 * 365 * 86_400)),
      'Only notes that have not changed for this long.',
    ),
    expired: field(s.flag, 'Only notes that have expired.'),
    below_confidence: field(
      () => s.optional(s.numberIn(0, 1)),
      'Only notes with a lower confidence than this.',
    ),
    history: field(s.flag, 'Keep the notes, remove the texts of their old versions.'),
    dry_run: field(
      () => s.or(s.yesOrNo(), true),
      'Only show what would be removed (default yes).',
      '--dry-run <yes|no>',
    ),
    after: f.after,
  },
  output: answers.pruned,
  command: 'memory prune',
  decide: (view, { older_than_seconds, after, ...said }, caller) => {
    const ask = { ...said, older_than_ms: toMs(older_than_seconds) }
    const { items, last } = pruneMemories(view, ask, caller, cursorIn(after))
    return { dry_run: said.dry_run, items, next: last && placeOf(last.index, last.memory) }
  },
})
