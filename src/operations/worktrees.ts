import * as z from 'zod/mini'
import type { Worktree } from '../core/schema/worktree.ts'
import { overlapsOf } from '../core/paths/foreseen.ts'
import { WORKTREE_STATES } from '../core/queue/rows.ts'
import {
  ENTERED_MS,
  enterRepository,
  getWorktree,
  recordWorktree,
  repositoryLock,
  seen,
} from '../core/queue/worktree.ts'
import * as answers from './answers/worktrees.ts'
import * as f from './fields.ts'
import { stillLive } from './locks.ts'
import { field, LEASE_REFUSALS, onDatabase } from './operation.ts'
import { pageIn } from './page.ts'
import * as s from './schemas.ts'

/**
 * What is known of worktrees. Their files are on one host: programs of ours there make, save and
 * remove them (src/daemon/worktrees), and record here what they do, before and after.
 */

const PLACE_MAX = 4096
const PATHS_MAX = 1000

const place = () => s.plain(PLACE_MAX)
const places = () =>
  z.array(s.text(PLACE_MAX)).check(z.maxLength(PATHS_MAX, `may have at most ${PATHS_MAX} entries`))

const salvage = () =>
  z.strictObject({ ref: place(), commit: s.plain(64), at: s.instant(), left_out: places() })

const worktree = (): z.ZodMiniType<Worktree> =>
  z.strictObject({
    id: s.runId(),
    task_id: s.id(),
    run_id: s.runId(),
    fence: s.count(),
    project: s.name(),
    host: s.plain(256),
    repository: place(),
    path: place(),
    branch: place(),
    base: s.nullable(s.plain(64)),
    state: z.enum(WORKTREE_STATES),
    salvage: s.nullable(salvage()),
    changed: places(),
    kept_because: s.nullable(s.text(1000)),
    begun_at: s.instant(),
    left_at: s.nullable(s.instant()),
  })

const repository = field(place, 'What all worktrees of the repository share: its .git folder.')
const worktreeId = field(s.runId, 'The worktree, by the run that it was made for: 42.1.')

export const list = onDatabase.read({
  name: 'worktree.list',
  refuses: ['invalid'],
  doc: 'Worktrees of runs that are there, in part or whole; the oldest first.',
  input: { task_id: f.onlyTask, project: f.filterProject, ...f.page },
  output: answers.worktrees,
  command: 'worktree list',
  decide: (view, { task_id, project, ...page }) => {
    const show = (row: Worktree) =>
      project === undefined || row.project === project ? seen(view, row) : null
    return task_id === undefined
      ? pageIn(view, ['worktrees', ''], page, show)
      : pageIn(view, ['worktrees_of', task_id], page, show)
  },
})

export const get = onDatabase.read({
  name: 'worktree.get',
  refuses: ['not_found'],
  doc: 'One worktree: where it is, whose, what was saved of it, who else changes the same.',
  input: { id: worktreeId },
  output: answers.foreseen,
  command: 'worktree show id',
  decide: (view, { id }) => {
    const found = getWorktree(view, id)
    const task = view.get('task', found.task_id)
    return { ...seen(view, found), overlaps: task ? overlapsOf(view, task) : [] }
  },
})

/** Used by runners and keepers, one at a time per repository and host. */
export const enter = onDatabase.admin({
  name: 'worktree.enter',
  internal: true,
  refuses: [...LEASE_REFUSALS],
  doc: 'A program of ours is about to make, save or remove worktrees of a repository.',
  input: {
    repository,
    process: f.runnerProcess,
    group: f.group,
    run: field(
      () => s.optional(z.strictObject({ task_id: s.id(), fence: s.count() })),
      'The run that it is for, by its task and fence; without one, a keeper asks.',
    ),
  },
  output: answers.entered,
  decide: (view, ask, caller) => enterRepository(view, { ...ask, ttl_ms: ENTERED_MS }, caller),
  replay: (view, reply, { repository: common, process }) => {
    stillLive(view, repositoryLock(process.host, common), reply.fence)
    return reply
  },
})

export const record = onDatabase.admin({
  name: 'worktree.record',
  internal: true,
  refuses: [...LEASE_REFUSALS, 'conflict'],
  doc: 'How a worktree stands now, under the fence of its repository, and of its run.',
  input: {
    repository,
    host: field(() => s.plain(256), 'The host that has it.'),
    fence: field(s.count, 'The fence that the repository was entered under.'),
    worktree: field(() => s.optional(worktree()), 'How it stands.'),
    gone: field(() => s.optional(s.runId()), 'Nothing is left of this worktree.'),
    leaves: field(s.flag, 'Whether the program is done with the repository.'),
  },
  output: answers.recorded,
  decide: (view, ask, caller) => {
    recordWorktree(view, ask, caller)
    return { fence: ask.fence }
  },
})
