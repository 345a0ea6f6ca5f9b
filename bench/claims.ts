import { copyFileSync, existsSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { seeAgent } from '../src/core/locks/agent.ts'
import type { Caller } from '../src/core/caller.ts'
import { type Claim, claimNext } from '../src/core/tasks/claim.ts'
import { moveTask } from '../src/core/tasks/move.ts'
import { createTask } from '../src/core/tasks/task.ts'
import type { View } from '../src/core/view.ts'
import { machine } from '../src/machine/machine.ts'
import { SqliteBackend } from '../src/stores/sqlite/backend.ts'
import { Store } from '../src/stores/writer/store.ts'

const TTL_MS = 60_000
const CREATED_AT_ONCE = 2_000

export function openStore(path: string): Store {
  return new Store(new SqliteBackend({ path, busy_timeout_ms: 5_000 }), machine)
}

export function callerOf(i: number): Caller {
  return { agent: `agent-${i}`, given: true, process: null, admin: false, under: null }
}

/** A store of `tasks` ready tasks, to be copied for every round. */
export async function fillStore(folder: string, tasks: number): Promise<string> {
  const path = join(folder, `tasks-${tasks}.db`)
  const store = openStore(path)
  const fields = { body: 'Do it.', project: null, user: null, priority: 5, group: null }
  const rest = { labels: [], depends_on: [], assigned_to: null, metadata: {} }
  for (let made = 0; made < tasks; made += CREATED_AT_ONCE) {
    const titles = Array.from({ length: CREATED_AT_ONCE }, (_, i) => `Task ${made + i}`)
    await Promise.all(
      titles.map((title) =>
        store.write((view) => createTask(view, { title, ...fields, ...rest }, callerOf(0))),
      ),
    )
  }
  await store.close()
  return path
}

/**
 * Claims and completes `pairs` tasks on a copy of the store at `template` and returns how many per
 * second. Every caller waits for each answer, which comes after its commit is on disk.
 */
export async function claimAndComplete(
  template: string,
  callers: number,
  pairs: number,
  next: Next = nextReady,
): Promise<number> {
  const path = `${template}.copy`
  // The driver checkpoints when it collects its statements, not when it closes: a WAL may be left.
  for (const end of ['', '-wal']) {
    if (existsSync(template + end)) copyFileSync(template + end, path + end)
  }
  const store = openStore(path)
  await store.write(() => undefined)
  let left = pairs
  const start_ms = performance.now()
  await Promise.all(
    Array.from({ length: callers }, async (_, i) => {
      const caller = callerOf(i)
      while (left-- > 0) await claimOne(store, caller, next)
    }),
  )
  const took_ms = performance.now() - start_ms
  await store.close()
  // The next copy begins where this one began: for a witness of this one, that would be a loss.
  const witness = join(dirname(path), `witness.${basename(path)}`)
  for (const each of [path, `${path}-wal`, `${path}-shm`, witness]) rmSync(each, { force: true })
  return (pairs / took_ms) * 1000
}

type Next = (view: View, caller: Caller) => Claim | undefined

function nextReady(view: View, caller: Caller): Claim | undefined {
  seeAgent(view, caller)
  return claimNext(view, {}, { ttl_ms: TTL_MS, process: null, takeover: false }, caller)[0]
}

async function claimOne(store: Store, caller: Caller, next: Next): Promise<void> {
  const ask = { ttl_ms: TTL_MS, process: null }
  const claim = await store.write((view) => next(view, caller))
  if (!claim) throw new Error('the store ran out of ready tasks')
  const { task, lease } = claim
  await store.write((view) =>
    moveTask(view, { id: task.id, to: 'done', fence: lease.fence, ...ask }, caller),
  )
}
