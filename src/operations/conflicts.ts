import * as z from 'zod/mini'
import { getConflict, type Resolution, resolveConflict } from '../core/memory/resolve.ts'
import { Refusal } from '../core/refusal.ts'
import * as answers from './answers/memory.ts'
import type { AnswerAs } from './answers/shape.ts'
import * as f from './fields.ts'
import * as m from './memory_fields.ts'
import { showConflict, showConflictWhole } from './memory_show.ts'
import { field, onDatabase } from './operation.ts'
import { pageIn } from './page.ts'
import { textTools } from './text_merge.ts'
import * as s from './schemas.ts'

export const list = onDatabase.read({
  name: 'conflict.list',
  refuses: ['invalid', 'not_found'],
  doc: 'Notes that disagree. With an id: both contents and a draft of a merge.',
  tool: 'conflicts_list',
  input: {
    id: field(
      () => s.optional(s.plain(64)),
      'Only this conflict, with both contents and a draft of a merge.',
    ),
    scope: m.scopeOptional,
    status: field(
      () =>
        s.or(
          z.enum(
            ['open', 'merged', 'resolved', 'replaced'],
            'must be open, merged, resolved or replaced',
          ),
          'open',
        ),
      'Conflicts with this status: open (the default), merged, resolved or replaced.',
    ),
    ...f.page,
  },
  output: answers.conflicts,
  command: 'memory conflicts',
  decide: (view, { id, scope, status, ...page }): AnswerAs<typeof answers.conflicts> => {
    if (id !== undefined) {
      return { items: [showConflictWhole(view, getConflict(view, id))], next: null }
    }
    return pageIn(view, ['conflicts', status], page, (row) =>
      scope === undefined || scope === row.scope ? showConflict(row) : null,
    )
  },
})

export const resolve = onDatabase.write({
  name: 'conflict.resolve',
  touches: ({ id }) => [{ conflict: id }],
  refuses: ['invalid', 'not_found', 'conflict', 'too_large'],
  doc: 'Settle a conflict: choose a side, or give a text that combines or replaces both.',
  tool: 'conflict_resolve',
  input: {
    id: field(() => s.plain(64), 'Id of the conflict.'),
    /** A number may come as text: the command line has no other way to say it. */
    choose: field(
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
    ),
    content: m.resolution,
    supersede: field(s.flag, 'The content replaces both versions instead of combining them.'),
  },
  output: answers.resolved,
  command: 'memory resolve id',
  decide: (view, { id, ...said }, caller) => {
    const resolved = resolveConflict(view, id, resolutionOf(said), caller, textTools)
    const { scope, key } = resolved.memory
    const { version, parents, kind } = resolved.version
    const open = resolved.memory.heads.length - 1
    return { id, scope, key, version, parents, kind, strategy: resolved.version.strategy, open }
  },
})

interface Said {
  choose?: string | number | undefined
  content?: string | undefined
  supersede: boolean
}

function resolutionOf({ choose, content, supersede }: Said): Resolution {
  if (content !== undefined && choose === undefined) return { content, supersede }
  if (choose !== undefined && content === undefined && !supersede) {
    const word = String(choose)
    return { choose: word === 'ours' || word === 'theirs' ? word : Number(word) }
  }
  throw new Refusal('invalid', 'Say how to settle it: choose a side, or give a content', {
    next: {
      says: 'For example',
      operation: 'conflict.resolve',
      input: { id: 'ID', choose: 'theirs' },
    },
  })
}
