import type { Worktree } from '../../core/schema/worktree.ts'
import { ENTERED_MS, repositoryLock, type SeenWorktree } from '../../core/queue/worktree.ts'
import { isRefusal, Refusal } from '../../core/refusal.ts'
import { ownGroup } from '../../machine/group.ts'
import { ownProcess } from '../../machine/process.ts'
import { keepRenewing } from '../../reach/renewing.ts'

/** Asks the engine until it answers; refusals are thrown. */
export type AskTrees = (
  name: 'worktree.enter' | 'worktree.record',
  input: Record<string, unknown>,
) => Promise<unknown>

const PAUSE_MS = 100

/** A repository in which nobody else makes or removes worktrees meanwhile. */
export interface Entered {
  /** What was recorded of it when it was entered. */
  items: SeenWorktree[]
  record(worktree: Worktree): Promise<void>
  gone(id: string): Promise<void>
}

/**
 * Does `work` alone in a repository of this host. Nobody enters while this process lives, nor any
 * git command that it has started: if it dies, those are stopped first.
 */
export async function inRepository<T>(
  ask: AskTrees,
  { host, repository }: Pick<Worktree, 'host' | 'repository'>,
  work: (entered: Entered) => Promise<T>,
  run?: { task_id: string; fence: number },
): Promise<T> {
  const { fence, items } = await enter(ask, host, repository, run)
  const record = async (change: Record<string, unknown>) =>
    void (await ask('worktree.record', { repository, host, fence, ...change }))
  const endRenewing = keepRenewing({ ttl_ms: ENTERED_MS, renew: () => record({}) })
  try {
    return await work({
      items,
      record: ({ is_over: _, ...worktree }: Worktree & { is_over?: boolean }) =>
        record({ worktree }),
      gone: (id) => record({ gone: id }),
    })
  } finally {
    endRenewing()
    await record({ leaves: true })
  }
}

async function enter(ask: AskTrees, host: string, repository: string, run?: object) {
  const group = ownGroup()
  // Without a group that can be stopped, a killed program's git would work on unseen.
  if (!group) throw new Refusal('internal', 'only a program with a group of its own may enter')
  const lock = repositoryLock(host, repository)
  for (;;) {
    try {
      const process = { ...ownProcess(), host }
      const input = { repository, process, group, ...(run && { run }) }
      return (await ask('worktree.enter', input)) as { fence: number; items: SeenWorktree[] }
    } catch (error) {
      // Of the run's own lock: it is over.
      const isOurs = isRefusal(error, 'held') && error.details['name'] === lock
      if (!isOurs) throw error
    }
    await new Promise((again) => void setTimeout(again, PAUSE_MS * (0.5 + Math.random())))
  }
}
