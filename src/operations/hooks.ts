import { recordBypass } from '../core/paths/bypass.ts'
import * as answers from './answers/locks.ts'
import { field, writeOperation } from './operation.ts'
import * as f from './fields.ts'
import * as p from './path_fields.ts'
import * as s from './schemas.ts'

/** Kept so that it can be asked later who went past a refusal, and why. */
export const bypass = writeOperation({
  name: 'hook.bypass',
  touches: 'own',
  refuses: ['invalid', 'too_large'],
  doc: 'Record that a person let an edit past a hook (LEASEHOLD_BYPASS).',
  input: {
    paths: p.touchedPaths,
    reason: field(() => s.plain(500), 'The reason that the person gave.'),
    refusal: field(() => s.optional(s.plain(2000)), 'What the hook would have said.'),
    request_id: f.requestId,
  },
  output: answers.bypassed,
  decide: (view, { paths, reason, refusal = null }, caller) =>
    recordBypass(view, { paths, reason, refusal }, caller),
})
