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
  /** The part that its weight entitles it to. */
  fair: number
}

/**
 * What each user got of the last hour and what would be fair, among all who wait, run, or ran in
 * it. Runs are counted when they end, so those that go on are added.
 */
export function sharesIn(
  status: QueueAnswer,
  fairness: Fairness | undefined,
  now_ms: number,
): ShownShare[] {
  const seconds = new Map((fairness?.users ?? []).map((each) => [each.user, each.run_seconds]))
  const weights = new Map((fairness?.users ?? []).map((each) => [each.user, each.weight]))
  for (const { user, acquired_at } of status.user_locks.details) {
    const ran = acquired_at === null ? 0 : secondsSince(acquired_at, now_ms)
    const more = Math.min(Math.max(0, ran), SHARE_SECONDS)
    seconds.set(user, (seconds.get(user) ?? 0) + more)
  }
  for (const { user, weight } of status.shares) weights.set(user, weight)
  const all = sum(seconds.values())
  const weight = sum(weights.values())
  return status.shares.map((share) => ({
    ...share,
    task_id: status.user_locks.details.find(({ user }) => user === share.user)?.task_id ?? null,
    got: all === 0 ? null : (seconds.get(share.user) ?? 0) / all,
    fair: share.weight / weight,
  }))
}

const sum = (values: Iterable<number>) => [...values].reduce((total, each) => total + each, 0)
