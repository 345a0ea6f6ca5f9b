import type { LandingStatus } from '../../core/landing/rows.ts'
import type { WorktreeState } from '../../core/queue/rows.ts'
import type { RunStatus, Status } from '../../core/rows.ts'
import { Icon, type IconName } from './icon.tsx'

/** Of tasks, runs, landings and worktrees: what is called the same means the same. */
type State = Status | RunStatus | LandingStatus | WorktreeState

/** An icon, and the status whose colour it has. */
const LOOKS: Record<State, [IconName, Status]> = {
  todo: ['todo', 'todo'],
  in_progress: ['in_progress', 'in_progress'],
  review: ['review', 'review'],
  done: ['done', 'done'],
  failed: ['failed', 'failed'],
  cancelled: ['cancelled', 'cancelled'],
  running: ['in_progress', 'in_progress'],
  completed: ['done', 'done'],
  lost: ['lost', 'failed'],
  waiting: ['todo', 'todo'],
  landing: ['in_progress', 'in_progress'],
  landed: ['done', 'done'],
  returned: ['failed', 'failed'],
  making: ['todo', 'todo'],
  ready: ['in_progress', 'in_progress'],
  left: ['folder', 'todo'],
  removing: ['cancelled', 'todo'],
}

const NAMES: Record<string, string> = {
  todo: 'To do',
  in_progress: 'In progress',
  returned: 'Came back',
}

export const nameOf = (state: string) =>
  NAMES[state] ?? `${state.slice(0, 1).toUpperCase()}${state.slice(1)}`

/** A state is always an icon and a word; colour only helps. */
export function Badge({ of }: { of: State }) {
  const [icon, tone] = LOOKS[of]
  return (
    <span class={`badge is-${tone}`}>
      <Icon name={icon} size={13} /> {nameOf(of)}
    </span>
  )
}
