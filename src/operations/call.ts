import { seeAgent } from '../core/agent.ts'
import type { Caller } from '../core/caller.ts'
import type { Waiting } from '../core/lock.ts'
import { planted } from '../core/planted.ts'
import { Refusal } from '../core/refusal.ts'
import { keyOf } from '../core/rows.ts'
import type { View } from '../core/view.ts'
import { sha256 } from '../stores/digest.ts'
import type { Store } from '../stores/store.ts'
import { waitForTask } from './claim_wait.ts'
import { type Fields, type Input, type Operation, parseInput } from './operation.ts'
import { isWaiting, waitInLine } from './wait.ts'

/**
 * One call, whichever door it came through: checks the input, may wait, and has one effect per
 * request id.
 */
export async function call<F extends Fields, O>(
  store: Store,
  operation: Operation<F, O>,
  raw: Record<string, unknown>,
  caller: Caller,
  signal?: AbortSignal,
): Promise<Exclude<O, Waiting>> {
  const input = parseInput(operation.input, raw)
  if (operation.role === 'admin' && !caller.admin) throw adminOnly(operation.name)
  if (operation.needs === 'database' && !store.isDatabase) throw fileStore(operation.name)
  if (operation.effect === 'read') {
    const found = await operation.lookup?.(store, input, caller)
    const look = (view: View) => operation.decide(view, input, caller, undefined, found)
    return store.read(look) as Promise<Settled<O>>
  }
  const request = requestOf(operation.name, input, caller)
  const decide = (view: View, ticket_id?: string) => {
    seeAgent(view, caller)
    return once(view, request, operation, input, caller, ticket_id)
  }
  const wait_ms = Number(input['wait_seconds'] ?? 0) * 1000
  if (wait_ms === 0) {
    return store.write(decide, operation.reads?.(input, caller)) as Promise<Settled<O>>
  }
  if (operation.waits === 'task') {
    const ask = () => store.write(decide, operation.reads?.(input, caller)) as Promise<Settled<O>>
    return waitForTask(store, ask, { wait_ms, signal })
  }
  return waitInLine(store, decide, { wait_ms, caller, signal, ticket_id: request?.key })
}

type Settled<O> = Exclude<O, Waiting>

interface Asked {
  key: string
  input_hash: string
}

function requestOf(name: string, input: Input<Fields>, caller: Caller): Asked | undefined {
  const { request_id, wait_seconds: _, ...rest } = input
  if (typeof request_id !== 'string') return undefined
  const input_hash = sha256(JSON.stringify(rest))
  return { key: keyOf(caller.agent, name, request_id), input_hash }
}

/** Effects are remembered, refusals are not: a refused ask may be tried again under its id. */
function once<F extends Fields, O>(
  view: View,
  request: Asked | undefined,
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
  ticket_id: string | undefined,
): O {
  const decide = () => operation.decide(view, input, caller, ticket_id)
  if (!request) return decide()
  const seen = planted('S7') ? undefined : view.get('request', request.key)
  if (seen) {
    if (seen.input_hash !== request.input_hash) throw reused(operation.name)
    const reply = seen.reply as O
    return operation.replay ? operation.replay(view, reply, input, caller) : reply
  }
  const reply = decide()
  if (!isWaiting(reply)) {
    const kept = operation.keeps ? operation.keeps(reply) : reply
    if (kept !== undefined) view.put('request', { ...request, reply: kept, at_ms: view.now })
  }
  return reply
}

function reused(name: string): Refusal {
  return new Refusal('invalid', `This request id was used for another ${name}`, {
    next: 'A request id belongs to one input: use a new one for a new ask.',
  })
}

/** R38: the whole document of a file store is written with every commit. */
function fileStore(name: string): Refusal {
  const lacks = /^(?:queue|run)\./.test(name) ? 'queue' : 'memory'
  return new Refusal('unavailable', `${name} needs a database: a file store has no ${lacks}`, {
    next: 'Unset LEASEHOLD_STORE to use SQLite; leasehold db copy takes along what is here.',
    details: { lasting: true },
  })
}

function adminOnly(name: string): Refusal {
  return new Refusal('forbidden', `${name} is for admins`, {
    next: 'Ask a person with an admin token, or use --force on the machine of the store.',
  })
}
