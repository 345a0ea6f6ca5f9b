import { keyOf } from '../rows.ts'
import type { TableIndex } from '../view.ts'

export const LANDING_STATUSES = ['waiting', 'landing', 'landed', 'returned', 'cancelled'] as const
export type LandingStatus = (typeof LANDING_STATUSES)[number]

/** A branch on its way to a target; or, where there is no target, only to a passed check. */
export interface Landing {
  id: string
  /** Rises with every landing that is asked for. */
  seq: number
  project: string
  target: string | null
  /** Null: the branch of the task's last worktree; without one, what the project's folder has. */
  branch: string | null
  /** What is to be landed: as asked for, or as the lander found the branch. */
  commit: string | null
  task_id: string | null
  priority: number
  /** Its place among those that wait: by priority, then first come, first served. */
  rank: string
  status: LandingStatus
  /** Of the lander that has taken it. */
  fence: number | null
  /** What the target was, and what it becomes: written down before the target is moved. */
  base: string | null
  candidate: string | null
  /** Why it waits, or came back. */
  reason: string | null
  /** The files that stood in its way. */
  paths: string[]
  /** The end of what its check said. */
  output: string | null
  asked_by: string
  asked_at: string
  ended_at: string | null
}

/** How a project lands, as its config.json says: with such a row, `done` has to be proved. */
export interface LandingRule {
  project: string
  onto: string | null
  /** Whether it is landed as soon as somebody says that it is done. */
  auto: boolean
  checks: boolean
}

export const rankOfLanding = (priority: number, seq: number) =>
  keyOf(String(9 - priority), String(seq).padStart(16, '0'))

const isOpen = ({ status }: Landing) => status === 'waiting' || status === 'landing'

export const LANDING_INDEXES = {
  /** Those that are not over, in the order in which they are landed. */
  landings_open: {
    table: 'landing',
    group: (row) => (isOpen(row) ? row.project : null),
    order: (row) => row.rank,
  } satisfies TableIndex<'landing'>,
  landings_newest: {
    table: 'landing',
    group: () => '',
    order: (row) => -row.seq,
  } satisfies TableIndex<'landing'>,
  landings_of: {
    table: 'landing',
    group: (row) => row.task_id,
    order: (row) => -row.seq,
  } satisfies TableIndex<'landing'>,
  landings_ended: {
    table: 'landing',
    group: (row) => (row.ended_at === null ? null : ''),
    order: (row) => row.ended_at ?? '',
  } satisfies TableIndex<'landing'>,
  landing_rules: {
    table: 'landing_rule',
    group: () => '',
    order: (row) => row.project,
  } satisfies TableIndex<'landing_rule'>,
}
