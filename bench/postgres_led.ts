import * as z from 'zod/mini'
import type { Claim } from '../src/core/tasks/claim.ts'
import { Leading } from '../src/daemon/leading.ts'
import { call } from '../src/operations/call.ts'
import { field, type Operation, writeOperation } from '../src/operations/operation.ts'
import { LeaderFollower } from '../src/reach/leader.ts'
import type { Store } from '../src/stores/writer/store.ts'
import { newRequestId } from '../src/machine/digest.ts'
import { callerOf } from './claims.ts'
import { claimOf, claimWith, complete, type Kind } from './postgres_claims.ts'

const VERSION = 'bench'
const LOOK_MS = 20

const NOTHING = { operation: '', input: {}, request: undefined, caller: callerOf(0) }

/** As the SDK, hooks and commands ask. */
const asked = () => ({ request_id: newRequestId() })

const common = { refuses: [], doc: '', touches: () => [] }

/** What direct callers decide, as operations: so it can be sent. */
function operationsFor(kind: Kind) {
  const claim = writeOperation({
    ...common,
    name: 'bench.claim',
    input: {},
    output: () => z.unknown() as z.ZodMiniType<{ claim: Claim | null }>,
    decide: (view, _, caller) => ({ claim: claimOf(kind)(view, caller) ?? null }),
    // As task.claim does: the task is read anew.
    keeps: ({ claim: got }) =>
      got
        ? { claim: { task: { id: got.task.id }, lease: { fence: got.lease.fence } } as Claim }
        : undefined,
  })
  const done = writeOperation({
    ...common,
    name: 'bench.complete',
    input: { claim: field(() => z.unknown(), '') },
    output: () => z.unknown(),
    decide: (view, input, caller): unknown => {
      complete(view, kind, input.claim as Claim, caller)
      return {}
    },
  })
  return { claim, done }
}

/**
 * `postgres_led KIND URL CALLERS WINDOW_MS NUMBER`: number 0 leads, the others follow it. What it
 * asks has request ids, as what our own clients ask.
 */
export function claimLed(args: string[]): Promise<void> {
  return claimWith(args, async (store, kind, number) => {
    const { claim, done } = operationsFor(kind)
    const all = [claim, done] as unknown as Operation[]
    const operations = new Map(all.map((each) => [each.name as string, each]))
    const end = number === 0 ? await lead(store, operations) : await follow(store)
    return {
      claim: async (caller) => (await call(store, claim, asked(), caller)).claim,
      complete: (caller, { task, lease }) => {
        const named = { id: task.id, title: task.title, body: task.body, user: task.user }
        const { project, priority, group } = task
        const said = { ...named, project, priority, group }
        const held = { task: said, lease: { fence: lease.fence } }
        return call(store, done, { claim: held, ...asked() }, caller)
      },
      end,
    }
  })
}

async function lead(store: Store, operations: ReadonlyMap<string, Operation>) {
  const listen = () => ({ host: '127.0.0.1', port: 0 })
  const leading = new Leading(store, { listen, version: VERSION, say: console.error, operations })
  await leading.start()
  return async () => {
    await leading.stop()
    leading.follower.close()
    await store.close()
  }
}

async function follow(store: Store) {
  const follower = new LeaderFollower(store, VERSION)
  store.leader = follower
  while (!follower.isLed) {
    await follower.decide(NOTHING, async () => undefined)
    await new Promise((resolve) => void setTimeout(resolve, LOOK_MS))
  }
  return async () => {
    follower.close()
    await store.close()
  }
}
