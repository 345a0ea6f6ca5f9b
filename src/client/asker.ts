import type { Caller } from '../core/caller.ts'
import {
  type AnswerOf,
  type InputOf,
  registered,
  type RegisteredName,
} from '../operations/registry.ts'
import type { Operation } from '../operations/operation.ts'
import { newRequestId } from '../machine/digest.ts'
import { ownProcess } from '../machine/process.ts'
import type { How } from './calls.ts'
import type { Fences } from './fences.ts'
import { persist } from '../reach/patience.ts'
import type { Transport } from './transport.ts'

/** Asks for one agent: adds what the caller may leave out, and does not give up at once. */
export class Asker {
  constructor(
    readonly transport: Transport,
    /** Without a name where a token says who it is. */
    readonly who: Caller,
    readonly fences: Fences,
    private readonly retry_ms: number,
  ) {}

  /** The same way to the store for another agent, with a memory of its own for fences. */
  as(agent: string, fences: Fences): Asker {
    return new Asker(this.transport, { ...this.who, agent, given: true }, fences, this.retry_ms)
  }

  call<N extends RegisteredName>(name: N, input: InputOf<N>, how: How = {}): Promise<AnswerOf<N>> {
    return this.ask(registered(name), input, how) as Promise<AnswerOf<N>>
  }

  /** Every write carries a request id: a reply that was lost is asked for again under it. */
  async ask(operation: Operation, given: Record<string, unknown>, how: How): Promise<unknown> {
    const input = this.filled(operation, given)
    const until_ms = performance.now() + Number(input['wait_seconds'] ?? 0) * 1000
    const who = how.agent === undefined ? this.who : { ...this.who, agent: how.agent, given: true }
    const admin = who.admin || operation.role === 'admin'
    const attempt = () =>
      this.transport.ask({
        operation,
        input: isWait(input) ? { ...input, wait_seconds: secondsUntil(until_ms) } : input,
        caller: { ...who, admin },
        signal: how.signal,
      })
    const retry_ms = how.retry_seconds === undefined ? this.retry_ms : how.retry_seconds * 1000
    const reply = await persist(attempt, retry_ms, how.signal)
    this.fences.learn(operation, input, reply)
    return reply
  }

  private filled(operation: Operation, given: Record<string, unknown>): Record<string, unknown> {
    if (operation.effect === 'read') return given
    const input = 'fence' in operation.input ? this.fences.fill(operation, given) : given
    const names = this.transport.isLocal && 'process' in operation.input
    return {
      ...(names && { process: ownProcess() }),
      ...input,
      request_id: input['request_id'] ?? newRequestId(),
    }
  }
}

const isWait = (input: Record<string, unknown>) => Number(input['wait_seconds'] ?? 0) > 0

/** What is left of a wait. At least a little: none at all would mean not to join the line. */
function secondsUntil(until_ms: number): number {
  return Math.max(0.001, (until_ms - performance.now()) / 1000)
}
