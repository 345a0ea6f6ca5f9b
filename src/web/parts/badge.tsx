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

/** A status is always an icon and a word; colour only helps. */
export function StatusBadge({ status }: { status: Status }) {
  return (
    <span class={`badge is-${status}`}>
      <Icon name={status} size={13} /> {STATUS_NAMES[status]}
    </span>
  )
}

const RUN_ICONS: Record<RunStatus, [IconName, Status]> = {
  running: ['in_progress', 'in_progress'],
  completed: ['done', 'done'],
  failed: ['failed', 'failed'],
  cancelled: ['cancelled', 'cancelled'],
  lost: ['lost', 'failed'],
}

export function RunBadge({ status }: { status: RunStatus }) {
  const [icon, tone] = RUN_ICONS[status]
  return (
    <span class={`badge is-${tone}`}>
      <Icon name={icon} size={13} /> {status}
    </span>
  )
}

export const LANDING_NAMES: Record<LandingStatus, string> = {
  waiting: 'Waiting',
  landing: 'Landing',
  landed: 'Landed',
  returned: 'Came back',
  cancelled: 'Cancelled',
}

const LANDING_TONES: Record<LandingStatus, Status> = {
  waiting: 'todo',
  landing: 'in_progress',
  landed: 'done',
  returned: 'failed',
  cancelled: 'cancelled',
}

export function LandingBadge({ status }: { status: LandingStatus }) {
  const tone = LANDING_TONES[status]
  return (
    <span class={`badge is-${tone}`}>
      <Icon name={tone} size={13} /> {LANDING_NAMES[status]}
    </span>
  )
}

const WORKTREE_ICONS: Record<WorktreeState, [IconName, Status]> = {
  making: ['todo', 'todo'],
  ready: ['in_progress', 'in_progress'],
  left: ['folder', 'todo'],
  removing: ['cancelled', 'todo'],
}

export function WorktreeBadge({ state }: { state: WorktreeState }) {
  const [icon, tone] = WORKTREE_ICONS[state]
  return (
    <span class={`badge is-${tone}`}>
      <Icon name={icon} size={13} /> {state}
    </span>
  )
}

export function Tag({ children, tone = '' }: { children: ComponentChildren; tone?: string }) {
  return <span class={`tag ${tone}`}>{children}</span>
}
