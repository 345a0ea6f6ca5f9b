import type { AnswerOf, InputOf, RegisteredName } from '../operations/registry.ts'

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
