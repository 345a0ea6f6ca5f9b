import type { Request } from '../core/schema/caller.ts'
import type { Caller } from '../core/caller.ts'
import type { Waiting } from '../core/locks/lock.ts'
import { planted } from '../core/planted.ts'
import { isRefusal, Refusal } from '../core/refusal.ts'
import { keyOf } from '../core/rows.ts'
import type { View } from '../core/view.ts'
import { sha256 } from '../machine/digest.ts'
import type { Asked } from '../stores/port.ts'
import type { Store } from '../stores/writer/store.ts'
import type { Fields, Input, Operation } from './operation.ts'
import { isWaiting } from './wait.ts'

export function requestOf(
  operation: string,
  input: Input<Fields>,
  caller: Caller,
): Asked | undefined {
  const { request_id, wait_seconds: _, ...rest } = input
  if (typeof request_id !== 'string') return undefined
  // Fields come in the order of their schema; what is in them, as the client wrote it.
  const said = Object.entries(rest).map(([field, value]) => [field, ordered(value)])
  const input_hash = sha256(JSON.stringify(Object.fromEntries(said)))
  return { operation, key: keyFor(request_id, caller.agent, operation), input_hash }
}

/** The same input has the same hash, in whatever order a client wrote the keys of its JSON. */
function ordered(value: unknown): unknown {
  if (typeof value !== 'object' || value === null) return value
  if (Array.isArray(value)) return value.map(ordered)
  const entries = Object.entries(value).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return Object.fromEntries(entries.map(([key, each]) => [key, ordered(each)]))
}

const VERSION_7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7/

/**
 * Ids that sort by time come first in their keys: a commit then writes requests side by side, not
 * each into a page of its own.
 */
function keyFor(request_id: string, agent: string, operation: string): string {
  if (VERSION_7.test(request_id)) return keyOf('', request_id, agent, operation)
  return keyOf(agent, operation, request_id)
}

/** What is known under this request id; with other input it is `invalid`, a wait's too. */
function known(view: View, { operation, key, input_hash }: Asked): Request | undefined {
  const seen = planted('S7') ? undefined : view.get('request', key)
  if (!seen || seen.input_hash === input_hash) return seen
  throw new Refusal('invalid', `This request id was used for another ${operation}`, {
    next: 'A request id belongs to one input: use a new id for a new request.',
  })
}

function remember(view: View, { key, input_hash }: Asked, reply: unknown): void {
  view.put('request', { key, input_hash, reply, at_ms: view.now })
}

/**
 * Effects are remembered, refusals are not: a refused ask may be tried again under its id. A wait
 * is remembered as one, until it ends.
 */
export function once<F extends Fields, O>(
  view: View,
  asked: Asked | undefined,
  operation: Operation<F, O>,
  input: Input<F>,
  caller: Caller,
  ticket_id: string | undefined,
): O | Waiting {
  // What is asked has nothing to do with how often it is.
  const { request_id: _, ...said } = input as Input<Fields>
  const decide = () => operation.decide(view, said as Input<F>, caller, ticket_id)
  if (!asked) return decide()
  const seen = known(view, asked)
  if (seen && !isWaiting(seen.reply)) {
    const reply = seen.reply as O
    return operation.replay ? operation.replay(view, reply, input, caller) : reply
  }
  const reply = decide()
  if (isWaiting(reply)) {
    if (!seen) remember(view, asked, waitingFor(asked))
    return reply
  }
  const kept = operation.keeps ? operation.keeps(reply) : reply
  if (kept !== undefined) remember(view, asked, kept)
  return reply
}

const waitingFor = ({ key }: Asked): Partial<Waiting> => ({ waiting: key })

/**
 * A wait for a task has no ticket. So that its request id is taken all the same, it is noted when
 * the first ask finds nothing, and forgotten if the wait ends without a claim.
 */
export async function whileNoted<O>(
  store: Store,
  asked: Asked | undefined,
  ask: () => Promise<O>,
  wait: (ask: () => Promise<O>) => Promise<O>,
): Promise<O> {
  if (!asked) return wait(ask)
  let noted = false
  const note = async () => {
    if (noted) return
    noted = true
    await store.write((view) => {
      if (!known(view, asked)) remember(view, asked, waitingFor(asked))
    })
  }
  const forget = (view: View) => {
    const seen = view.get('request', asked.key)
    if (seen && isWaiting(seen.reply)) view.remove('request', asked.key)
  }
  const asking = async () => {
    const reply = await ask().catch(async (error: unknown) => {
      if (isRefusal(error, 'held')) await note()
      throw error
    })
    if ((reply as { task: unknown }).task === null) await note()
    return reply
  }
  // A store in trouble cannot forget; then the id is taken for a day, for this input only.
  return wait(asking).finally(() => (noted ? store.write(forget).catch(() => undefined) : null))
}
