import { seeAgent } from '../../src/core/locks/agent.ts'
import { moveTask } from '../../src/core/tasks/move.ts'
import { claimQueued } from '../../src/core/queue/queue.ts'
import type { View } from '../../src/core/view.ts'
import { machine } from '../../src/machine/machine.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { Store } from '../../src/stores/writer/store.ts'

/**
 * A process that claims from the queue and completes, with so many callers at once, until nothing
 * waits: `URL CALLERS`. Prints a line per task: its id, user and project, and two fences: that of
 * its lease, and one taken right after its end. Fences are given in the order of all decisions, so
 * they tell who ran beside whom, whatever the clocks say.
 */
const [, , url = '', callers = '1'] = process.argv
const TTL_MS = 600_000
/** What a daemon has: however long the line, none may give up while it moves. */
const BUSY_MS = 5_000
const PAUSE_MS = 50
const address = addressOf(url)
const store = new Store(new PostgresBackend({ address, busy_timeout_ms: BUSY_MS }), machine)

const callerOf = (i: number) => {
  return { agent: `agent-${i}`, given: true, process: null, admin: false, under: null }
}

function claim(view: View, agent: number) {
  const caller = callerOf(agent)
  seeAgent(view, caller)
  const claimed = claimQueued(view, { ttl_ms: TTL_MS, process: null, as: () => caller })
  for (const _ of claimed ? [] : view.scan('shares_waiting', '')) return 'later' as const
  return claimed
}

async function claimAll(agent: number): Promise<void> {
  for (;;) {
    const claimed = await store.write((view) => claim(view, agent))
    if (!claimed) return
    if (claimed === 'later') {
      // reason: a limit is full; whoever is under it says nothing when it ends.
      await new Promise((resolve) => void setTimeout(resolve, PAUSE_MS))
      continue
    }
    const { task, lease } = claimed
    const move = { id: task.id, to: 'done' as const, fence: lease.fence, ttl_ms: TTL_MS }
    const over = await store.write((view) => {
      moveTask(view, { ...move, process: null }, callerOf(agent))
      return view.nextFence()
    })
    process.stdout.write(`${task.id} ${task.user} ${task.project} ${lease.fence} ${over}\n`)
  }
}

await store.write(() => undefined)
process.stdout.write('ready\n')
await new Promise((resolve) => void process.stdin.once('data', resolve))
const numbers = Array.from({ length: Number(callers) }, (_, i) => process.pid * 1_000 + i)
await Promise.all(numbers.map(claimAll))
await store.close()
