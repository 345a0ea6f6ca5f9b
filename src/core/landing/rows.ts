import { TASK_AGING_MS } from '../bounds.ts'

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
  /** Its place among those that wait: when it was asked for, later by its want of priority. */
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

/** Waiting counts as it does among tasks. Those of one instant are told apart by their number. */
export function rankOfLanding(asked_ms: number, priority: number, seq: number): string {
  const due_ms = Math.trunc(asked_ms) + (9 - priority) * TASK_AGING_MS
  return [due_ms, seq].map((each) => String(each).padStart(16, '0')).join('.')
}

const isOpen = ({ status }: Landing) => status === 'waiting' || status === 'landing'

const landings = { table: 'landing' } as const

/** See INDEXES in src/core/view.ts. */
export const LANDING_INDEXES = {
  /** Those that are not over, in the order in which they are landed. */
  landings_open: {
    ...landings,
    group: (row: Landing) => (isOpen(row) ? row.project : null),
    order: (row: Landing) => row.rank,
  },
  landings_newest: { ...landings, group: () => '', order: (row: Landing) => -row.seq },
  landings_of: {
    ...landings,
    group: (row: Landing) => row.task_id,
    order: (row: Landing) => -row.seq,
  },
  landings_ended: {
    ...landings,
    group: (row: Landing) => (row.ended_at === null ? null : ''),
    order: (row: Landing) => row.ended_at ?? '',
  },
  landing_rules: {
    table: 'landing_rule',
    group: () => '',
    order: (row: LandingRule) => row.project,
  },
} as const
