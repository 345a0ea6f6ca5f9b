import { once } from 'node:events'
import { seeAgent } from '../src/core/locks/agent.ts'
import type { Caller } from '../src/core/caller.ts'
import { type Claim, claimNext } from '../src/core/tasks/claim.ts'
import { moveTask } from '../src/core/tasks/move.ts'
import { enqueueTask } from '../src/core/queue/queue.ts'
import { createTask } from '../src/core/tasks/task.ts'
import type { View } from '../src/core/view.ts'
import { sumOf } from '../src/core/stats/histogram.ts'
import { machine } from '../src/machine/machine.ts'
import { addressOf } from '../src/stores/postgres/address.ts'
import { PostgresBackend } from '../src/stores/postgres/backend.ts'
import { Store } from '../src/stores/writer/store.ts'
import { callerOf } from './claims.ts'
import { awaitStart, type Drained } from './postgres_server.ts'
import { claimTurn } from './queue_claims.ts'

/**
 * `queue`: whose turn it is, one task per user at a time. `plain`: the next ready task. `round`: as
 * `queue`, and who completes a task adds another for the same user.
 */
export type Kind = 'queue' | 'plain' | 'round'

const ASK = { ttl_ms: 60_000, process: null, takeover: false }
const QUEUED = { agent_command: null, time_limit_ms: null, retries: 0, failed: 0, lost: 0 }
const REST = { labels: [], depends_on: [], assigned_to: null, metadata: {} }
const USERS = 2_000

export function openPostgres(url: string): Store {
  const address = addressOf(url)
  return new Store(new PostgresBackend({ address, busy_timeout_ms: 5_000 }), machine)
}

function taskOf(n: number, kind: Kind) {
  const user = kind !== 'plain' ? `user-${String(n % USERS).padStart(6, '0')}` : null
  const project = kind !== 'plain' ? 'web' : null
  const fields = { title: `Task ${n}`, body: 'Do it.', project, user, priority: 5, group: null }
  return { ...fields, ...REST }
}

export async function fillPostgres(url: string, kind: Kind, tasks: number): Promise<void> {
  const store = openPostgres(url)
  const add = (n: number) =>
    store.write((view) => {
      if (kind === 'plain') createTask(view, taskOf(n, kind), callerOf(0))
      else enqueueTask(view, { ...taskOf(n, kind), queue: QUEUED }, callerOf(0))
    })
  await Promise.all(Array.from({ length: tasks }, (_, n) => add(n)))
  await store.close()
}

const next = { queue: claimTurn, round: claimTurn, plain: nextReady }

function nextReady(view: View, caller: Caller) {
  seeAgent(view, caller)
  return claimNext(view, {}, ASK, caller)[0]
}

/** A claim and its completion, each decided somewhere. */
export interface Deciding {
  claim(caller: Caller): Promise<Claim | null | undefined>
  complete(caller: Caller, claim: Claim): Promise<unknown>
}

export const claimOf = (kind: Kind) => (view: View, caller: Caller) => next[kind](view, caller)

export function complete(view: View, kind: Kind, { task, lease }: Claim, caller: Caller): void {
  moveTask(view, { id: task.id, to: 'done', fence: lease.fence, ...ASK }, caller)
  if (kind !== 'round') return
  const { title, body, project, user, priority, group } = task
  const fields = { title, body, project, user, priority, group, queue: QUEUED }
  enqueueTask(view, { ...fields, ...REST }, caller)
}

/** In this process. */
export const direct = (store: Store, kind: Kind): Deciding => ({
  claim: (caller) => store.write((view) => claimOf(kind)(view, caller)),
  complete: (caller, claim) => store.write((view) => complete(view, kind, claim, caller)),
})

/** Nothing is counted before: forty programs that have just begun compile themselves first. */
const WARM_UP_MS = 2_000

/** `postgres_claims KIND URL CALLERS WINDOW_MS NUMBER`: until nothing is left or time is up. */
export function claimOnPostgres(args: string[]): Promise<void> {
  return claimWith(args, async (store, kind) => {
    await store.write(() => undefined)
    return { ...direct(store, kind), end: () => store.close() }
  })
}

/** The same, with asks decided as `prepare` says. */
export async function claimWith(
  args: string[],
  prepare: (
    store: Store,
    kind: Kind,
    number: number,
  ) => Promise<Deciding & { end: () => Promise<void> }>,
): Promise<void> {
  const [kind, url, callers, window_ms, number] = args as [Kind, string, string, string, string]
  const store = openPostgres(url)
  const deciding = await prepare(store, kind, Number(number))
  await awaitStart()
  const first_ms = Date.now() + WARM_UP_MS
  const until_ms = first_ms + Number(window_ms)
  const waits_ms: number[] = []
  const spent = () => ({ cpu: process.cpuUsage(), batches: sumOf(store.meter.batches) })
  let before = spent()
  setTimeout(() => (before = spent()), WARM_UP_MS)
  const counts = await Promise.all(
    Array.from({ length: Number(callers) }, (_, i) => {
      const caller = callerOf(Number(number) * 1000 + i)
      const isOver = () => Date.now() >= until_ms
      return claimUntil(deciding, caller, {
        isOver,
        isCounted: () => Date.now() >= first_ms,
        waits_ms,
      })
    }),
  )
  const { user, system } = process.cpuUsage(before.cpu)
  const drained: Drained = {
    done: counts.reduce((a, b) => a + b, 0),
    first_ms,
    last_ms: Date.now(),
    waits_ms: waits_ms.map(Math.round),
    cpu_ms: [Math.round((user + system) / 1000)],
    batches: sumOf(store.meter.batches) - before.batches,
  }
  console.log(JSON.stringify(drained))
  // One that leads is there for the others until they are done.
  await once(process.stdin, 'end')
  await deciding.end()
}

interface Counting {
  isOver: () => boolean
  isCounted?: () => boolean
  waits_ms?: number[]
}

/** Claims and completes, one after the other; how many counted. */
export async function claimUntil(
  deciding: Deciding,
  caller: Caller,
  { isOver, isCounted = () => true, waits_ms = [] }: Counting,
): Promise<number> {
  for (let done = 0; ; done += Number(isCounted())) {
    if (isOver()) return done
    const asked_ms = performance.now()
    const isWarm = isCounted()
    const claim = await deciding.claim(caller)
    if (isWarm) waits_ms.push(performance.now() - asked_ms)
    if (!claim) return done
    await deciding.complete(caller, claim)
  }
}
