import type { Salvage, WorktreeState } from '../queue/rows.ts'
import { text, int, json, type RowOf, table } from './table.ts'

/** Git worktrees of runs. */

/**
 * A git worktree that a run has for itself. Its row is there before any of it is on disk, and until
 * nothing of it is left: whatever a crash leaves behind has a row.
 */
export const worktree = table({
  key: 'id',
  columns: {
    /** The id of the run that it was made for; later runs of the task may go on in it. */
    id: text(),
    task_id: text(),
    /** The run that has it, or had it last, and the fence under which that is so. */
    run_id: text(),
    fence: int(),
    project: text(),
    host: text(),
    /** What all worktrees of the repository share: the real path of its `.git`. */
    repository: text(),
    path: text(),
    branch: text(),
    /** The commit that the branch began at; null while that is not known. */
    base: text().orNull,
    state: text<WorktreeState>(),
    salvage: json<Salvage>().orNull,
    /** Paths that differ from `base`, as last told; of too many, the folders: `src/`. */
    changed: json<string[]>(),
    /** Why it is still here, when somebody wanted it removed. */
    kept_because: text().orNull,
    begun_at: text(),
    left_at: text().orNull,
  },
  indexes: {
    worktrees: { order: 'begun_at' },
    worktrees_of: { group: ['task_id'], order: 'begun_at' },
  },
})
export type Worktree = RowOf<typeof worktree>
