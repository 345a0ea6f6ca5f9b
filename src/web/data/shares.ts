import type { AnswerOf } from '../../operations/registry.ts'
import type { QueueAnswer } from './about.ts'
import { secondsSince } from '../parts/words.ts'

/** How far back it is looked for what a user got. */
export const SHARE_SECONDS = 3600

export type Fairness = AnswerOf<'stats.get'>['fairness']

type Share = QueueAnswer['shares'][number]

export interface ShownShare extends Share {
  /** A task that runs for the user, if one does. */
  task_id: string | null
  /** Its part of all time that runs took, 0…1; null when nothing ran. */
  got: number | null
}

/**
 * What each user got of the last hour, beside what is fair among those who want something now. Runs
 * are counted when they end, so those that go on are added.
 */
export function sharesIn(
  status: QueueAnswer,
  fairness: Fairness | undefined,
  now_ms: number,
): ShownShare[] {
  const seconds = new Map((fairness?.users ?? []).map((each) => [each.user, each.run_seconds]))
  for (const { user, acquired_at } of status.user_locks.details) {
    const ran = acquired_at === null ? 0 : secondsSince(acquired_at, now_ms)
    const more = Math.min(Math.max(0, ran), SHARE_SECONDS)
    seconds.set(user, (seconds.get(user) ?? 0) + more)
  }
  const all = [...seconds.values()].reduce((total, each) => total + each, 0)
  return status.shares.map((share) => ({
    ...share,
    task_id: status.user_locks.details.find(({ user }) => user === share.user)?.task_id ?? null,
    got: all === 0 ? null : (seconds.get(share.user) ?? 0) / all,
  }))
}
