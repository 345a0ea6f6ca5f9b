import type { ComponentChildren } from 'preact'
import type { LandingStatus } from '../../core/landing/rows.ts'
import type { WorktreeState } from '../../core/queue/rows.ts'
import type { RunStatus, Status } from '../../core/rows.ts'
import { Icon, type IconName } from './icon.tsx'

export const STATUS_NAMES: Record<Status, string> = {
  todo: 'To do',
  in_progress: 'In progress',
  review: 'Review',
  done: 'Done',
  failed: 'Failed',
  cancelled: 'Cancelled',
}

export const LANDING_NAMES: Record<LandingStatus, string> = {
  waiting: 'Waiting',
  landing: 'Landing',
  landed: 'Landed',
  returned: 'Came back',
  cancelled: 'Cancelled',
}

interface BadgeProps {
  icon: IconName
  /** The status whose colour it has. */
  tone: Status
  says: string
}

/** A state is always an icon and a word; colour only helps. */
function Badge({ icon, tone, says }: BadgeProps) {
  return (
    <span class={`badge is-${tone}`}>
      <Icon name={icon} size={13} /> {says}
    </span>
  )
}

export const StatusBadge = ({ status }: { status: Status }) => (
  <Badge icon={status} tone={status} says={STATUS_NAMES[status]} />
)

const RUNS: Record<RunStatus, [IconName, Status]> = {
  running: ['in_progress', 'in_progress'],
  completed: ['done', 'done'],
  failed: ['failed', 'failed'],
  cancelled: ['cancelled', 'cancelled'],
  lost: ['lost', 'failed'],
}

export function RunBadge({ status }: { status: RunStatus }) {
  const [icon, tone] = RUNS[status]
  return <Badge {...{ icon, tone }} says={status} />
}

const LANDINGS: Record<LandingStatus, Status> = {
  waiting: 'todo',
  landing: 'in_progress',
  landed: 'done',
  returned: 'failed',
  cancelled: 'cancelled',
}

export function LandingBadge({ status }: { status: LandingStatus }) {
  const tone = LANDINGS[status]
  return <Badge icon={tone} tone={tone} says={LANDING_NAMES[status]} />
}

const WORKTREES: Record<WorktreeState, [IconName, Status]> = {
  making: ['todo', 'todo'],
  ready: ['in_progress', 'in_progress'],
  left: ['folder', 'todo'],
  removing: ['cancelled', 'todo'],
}

export function WorktreeBadge({ state }: { state: WorktreeState }) {
  const [icon, tone] = WORKTREES[state]
  return <Badge {...{ icon, tone }} says={state} />
}

export function Tag({ children, tone = '' }: { children: ComponentChildren; tone?: string }) {
  return <span class={`tag ${tone}`}>{children}</span>
}
