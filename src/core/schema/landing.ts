import type { LandingStatus } from '../landing/rows.ts'
import { text, int, bool, json, notNull, isTrue, type RowOf, table } from './table.ts'

/** Branches on their way to a target. */

/** A branch on its way to a target; or, where there is no target, only to a passed check. */
export const landing = table({
  key: 'id',
  columns: {
    id: text(),
    /** Rises with every landing that is asked for. */
    seq: int(),
    project: text(),
    target: text().orNull,
    /** Null: the branch of the task's last worktree; without one, what the project's folder has. */
    branch: text().orNull,
    /** What is to be landed: as asked for, or as the lander found the branch. */
    commit: text().orNull,
    task_id: text().orNull,
    priority: int(),
    /** Its place among those that wait: when it was asked for, later by its want of priority. */
    rank: text(),
    status: text<LandingStatus>(),
    /** Of the lander that has taken it. */
    fence: int().orNull,
    /** What the target was, and what it becomes: written down before the target is moved. */
    base: text().orNull,
    candidate: text().orNull,
    /** Why it waits, or came back. */
    reason: text().orNull,
    /** The files that stood in its way. */
    paths: json<string[]>(),
    /** The end of what its check said. */
    output: text().orNull,
    asked_by: text(),
    asked_at: text(),
    ended_at: text().orNull,
  },
  derived: { open: { bool: ({ status }) => status === 'waiting' || status === 'landing' } },
  indexes: {
    /** Those that are not over, in the order in which they are landed. */
    landings_open: { rows: [isTrue('open')], group: ['project'], order: 'rank' },
    landings_newest: { order: 'seq', descends: true },
    landings_of: { group: ['task_id'], order: 'seq', descends: true },
    landings_ended: { rows: [notNull('ended_at')], order: 'ended_at' },
  },
})
export type Landing = RowOf<typeof landing>

/** How a project lands, as its config.json says: with such a row, `done` has to be proved. */
export const landing_rule = table({
  key: 'project',
  columns: {
    project: text(),
    onto: text().orNull,
    /** Whether it is landed as soon as somebody says that it is done. */
    auto: bool(),
    checks: bool(),
  },
  indexes: { landing_rules: { order: 'project' } },
})
export type LandingRule = RowOf<typeof landing_rule>
