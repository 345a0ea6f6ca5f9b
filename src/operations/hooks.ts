import { noticeWrites, recordBypass, restorePaths } from '../core/paths/word.ts'
import * as answers from './answers/locks.ts'
import { field, writeOperation } from './operation.ts'
import * as f from './fields.ts'
import * as p from './path_fields.ts'
import { shownTold, whereOf } from './reservations.ts'
import * as s from './schemas.ts'

/** Kept so that it can be asked later who went past a refusal, and why. */
export const bypass = writeOperation({
  name: 'hook.bypass',
  internal: true,
  touches: 'own',
  refuses: ['invalid', 'too_large'],
  doc: 'Record that an edit was let past a hook (LEASEHOLD_BYPASS), and whether by a person.',
  input: {
    paths: p.touchedPaths,
    reason: field(() => s.plain(500), 'The reason that was given.'),
    refusal: field(() => s.optional(s.plain(2000)), 'What the hook would have said.'),
  },
  output: answers.bypassed,
  decide: (view, { paths, reason, refusal = null }, caller) =>
    recordBypass(view, { paths, reason, refusal }, caller),
})

const concerned = {
  paths: p.touchedPaths,
  project: p.project,
  checkout: p.checkout,
  process: f.holderProcess,
}

/** A write that no hook could refuse is told to both agents, and to people who watch. */
export const notice = writeOperation({
  name: 'hook.notice',
  internal: true,
  touches: ({ project }) => (project ? [{ project }] : []),
  refuses: ['invalid', 'too_large'],
  doc: 'Record that reserved files were changed, and not by a tool call of their holder.',
  input: concerned,
  output: answers.toldPaths,
  decide: (view, { paths, process, ...input }, caller) =>
    shownTold(view, noticeWrites(view, { ...whereOf(input), paths, process }, caller), caller),
})

/** Before a copy of a reserved file is put in its place: what another holds is not written over. */
export const restore = writeOperation({
  name: 'hook.restore',
  internal: true,
  touches: ({ project }) => (project ? [{ project }] : []),
  refuses: ['held', 'invalid', 'too_large'],
  doc: 'Record that copies of files are put in their place; what another has reserved is not.',
  input: concerned,
  output: answers.toldPaths,
  decide: (view, { paths, process, ...input }, caller) =>
    shownTold(view, restorePaths(view, { ...whereOf(input), paths, process }, caller), caller),
})
