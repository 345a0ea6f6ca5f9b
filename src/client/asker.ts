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

/** How to ask, beside what is asked. */
export interface How {
  /** Gives up: a wait leaves its line. What was already done stays done. */
  signal?: AbortSignal | undefined
  /** Asks as this agent: one nested under the client's own, or any other for an admin. */
  agent?: string | undefined
  /** How long to go on trying while nobody answers. */
  retry_seconds?: number | undefined
}

type NounOf<Name> = Name extends `${infer Noun}.${string}` ? Noun : never
type VerbOf<Name, Noun extends string> = Name extends `${Noun}.${infer Verb}` ? Verb : never

/** An operation's input as a caller may write it; all of it may be left out if every field may. */
type Asked<Input> =
  Record<string, never> extends Input ? [input?: Input, how?: How] : [input: Input, how?: How]

type Call<N extends RegisteredName> = (...asked: Asked<InputOf<N>>) => Promise<AnswerOf<N>>

/** `client.lock.acquire(…)` is the operation `lock.acquire`: every operation, and nothing else. */
export type Calls = {
  [Noun in NounOf<RegisteredName>]: {
    [N in RegisteredName as VerbOf<N, Noun>]: Call<N>
  }
}
