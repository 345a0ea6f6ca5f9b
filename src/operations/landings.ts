import type { Landing } from '../core/schema/landing.ts'
import { addedNote, getLanding, showLanding } from '../core/landing/ask.ts'
import { cancelLanding, land } from '../core/landing/land.ts'
import { LANDING_STATUSES } from '../core/landing/rows.ts'
import { sightOf } from '../core/sight.ts'
import * as answers from './answers/tasks.ts'
import * as f from './fields.ts'
import { field, LEASE_REFUSALS, onDatabase, readOperation, writeOperation } from './operation.ts'
import { pageIn } from './page.ts'
import * as s from './schemas.ts'

const landingId = field(s.id, 'The landing, e.g. L7.')

export const add = onDatabase.write({
  name: 'land.add',
  touches: ({ id, project, branch, onto }) => [
    { task: id, changes: true },
    ...(project === undefined ? [] : [{ project }]),
    ...(branch === undefined ? [] : [{ branch, of: id }]),
    ...(onto === undefined ? [] : [{ target: onto, of: id }]),
  ],
  refuses: ['not_found', 'invalid', ...LEASE_REFUSALS, 'illegal_move'],
  doc: 'Land the work of a task, or a branch: bring it up to date, check it, move its target.',
  tool: 'land_task',
  input: {
    id: field(s.name, 'The task, or the branch (default: LEASEHOLD_TASK).'),
    onto: field(s.someBranch, "The branch to land onto (default: the project's)."),
    branch: field(s.someBranch, "The task's branch (default: of its last run)."),
    commit: field(s.someCommit, 'Land this, and only if the branch still has it.'),
    project: field(s.someName, 'The project of a branch that has no task.'),
    priority: field(
      () => s.optional(s.level()),
      "Priority in the line for its target, 0–9 (default: the task's).",
    ),
    fence: f.fence,
  },
  output: answers.addedLanding,
  command: 'land add [id]',
  decide: (view, ask, caller) => {
    const landing = land(view, ask, caller)
    return { ...showLanding(sightOf(view, caller), landing), note: addedNote(view, landing) }
  },
})

export const list = readOperation({
  name: 'land.list',
  refuses: ['invalid'],
  doc: 'Landings, newest first: what waits, what was landed, what came back and why.',
  input: {
    project: f.filterProject,
    task_id: f.onlyTask,
    status: field(s.someLandingStatus, `Only these: ${LANDING_STATUSES.join(', ')}.`),
    ...f.page,
  },
  output: answers.landings,
  command: 'land list',
  decide: (view, { project, task_id, status, ...page }) => {
    const show = (landing: Landing) => {
      if (project !== undefined && landing.project !== project) return null
      const { output: _, ...shown } = showLanding(view, landing)
      return status === undefined || landing.status === status ? shown : null
    }
    return task_id === undefined
      ? pageIn(view, ['landings_newest', ''], page, show)
      : pageIn(view, ['landings_of', task_id], page, show)
  },
})

export const get = readOperation({
  name: 'land.get',
  refuses: ['not_found'],
  doc: 'One landing: its place in line, or how it ended, with the end of what its check said.',
  input: { id: landingId },
  output: answers.landing,
  command: 'land show id',
  decide: (view, { id }) => showLanding(view, getLanding(view, id)),
})

export const cancel = writeOperation({
  name: 'land.cancel',
  touches: ({ id }) => [{ landing: id }],
  refuses: ['not_found', 'forbidden', 'illegal_move'],
  doc: 'Take a landing out of its line. Its task stays in review.',
  input: { id: landingId },
  output: answers.landing,
  command: 'land cancel id',
  decide: (view, { id }, caller) => showLanding(view, cancelLanding(view, id, caller)),
})
