import * as z from 'zod/mini'
import { STATUSES } from '../../core/rows.ts'
import { WORKTREE_STATES } from '../../core/queue/rows.ts'
import * as tables from '../../core/schema/worktree.ts'
import {
  columnsOf,
  count,
  list,
  orNull,
  page,
  shape,
  strings,
  text,
  time,
  unnamed,
  yes,
} from './shape.ts'

const salvage = shape('Salvage', 'What a run left uncommitted, kept as a commit.', () => ({
  ref: text(),
  commit: text(),
  at: time(),
  left_out: strings(),
}))

const worktreeFields = () => ({
  ...columnsOf(tables.worktree, [], {
    state: z.enum(WORKTREE_STATES),
    salvage: orNull(salvage()),
  }),
  is_over: yes(),
})

const worktree = shape(
  'Worktree',
  'A git worktree of a run. `is_over`: the run that has it has ended.',
  worktreeFields,
)

export const foreseen = shape(
  'ForeseenWorktree',
  'A worktree, and tasks on their way that change the same paths.',
  () => ({
    ...worktreeFields(),
    overlaps: list({ task_id: text(), status: z.enum(STATUSES), paths: strings() }),
  }),
)
export const worktrees = page(worktree)
export const entered = unnamed(() => ({ fence: count(), items: list(worktree()) }))
export const recorded = unnamed(() => ({ fence: count() }))
