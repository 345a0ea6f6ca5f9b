import { join } from 'node:path'
import { seeAgent } from '../src/core/locks/agent.ts'
import type { Caller } from '../src/core/caller.ts'
import { acquireLocks } from '../src/core/locks/lock.ts'
import { claimQueued, enqueueTask } from '../src/core/queue/queue.ts'
import type { View } from '../src/core/view.ts'
import { callerOf, openStore } from './claims.ts'

const ENQUEUED_AT_ONCE = 2_000
const TTL_MS = 60_000
const DAY_MS = 24 * 3600_000

/** Users that hold half of all tasks and cannot run any: each is busy already. */
const BLOCKED = 10

/**
 * A store of `tasks` enqueued tasks. Half of them belong to ten users that are busy; the rest to
 * `users` others, in turn.
 */
export async function fillQueue(folder: string, tasks: number, users: number): Promise<string> {
  const path = join(folder, `queue-${tasks}.db`)
  const store = openStore(path)
  for (let i = 0; i < BLOCKED; i += 1) {
    const caller = callerOf(1_000_000 + i)
    const names = [`user:${blocked(i)}`]
    const ask = { names, ttl_ms: DAY_MS, process: null, priority: 5, takeover: false }
    await store.write((view) => acquireLocks(view, ask, caller))
  }
  for (let made = 0; made < tasks; made += ENQUEUED_AT_ONCE) {
    const numbers = Array.from({ length: ENQUEUED_AT_ONCE }, (_, i) => made + i)
    await Promise.all(
      numbers.map((n) => {
        const user =
          n % 2 === 0
            ? blocked((n / 2) % BLOCKED)
            : `user-${String((n >> 1) % users).padStart(6, '0')}`
        return store.write((view) => enqueueTask(view, taskOf(n, user), callerOf(0)))
      }),
    )
  }
  await store.close()
  return path
}

const blocked = (i: number) => `blocked-${i}`

function taskOf(n: number, user: string) {
  return {
    title: `Task ${n}`,
    body: 'Do it.',
    project: 'web',
    user,
    priority: 5,
    group: null,
    labels: [],
    depends_on: [],
    assigned_to: null,
    metadata: {},
    queue: { agent_command: null, time_limit_ms: null, retries: 0, failed: 0, lost: 0 },
  }
}

/** The task whose turn it is, as a dispatcher takes it. */
export function claimTurn(view: View, caller: Caller) {
  seeAgent(view, caller)
  return claimQueued(view, { ttl_ms: TTL_MS, process: null, as: () => caller })
}
