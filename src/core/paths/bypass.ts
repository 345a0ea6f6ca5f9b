import type { Caller } from '../caller.ts'
import type { View } from '../view.ts'

export interface Bypass {
  paths: string[]
  reason: string
  /** What would have been said without it; null where there was nothing to say. */
  refusal: string | null
}

/**
 * Records `hook.bypassed`, and whether a person said so. Nothing is refused: the edit happens
 * either way, and must be found.
 */
export function recordBypass(view: View, ask: Bypass, caller: Caller): { recorded: true } {
  const { paths, reason, refusal } = ask
  view.record({
    type: 'hook.bypassed',
    agent: caller.agent,
    lock: null,
    task: null,
    // Whoever asks with an agent's token is not known to be a person.
    data: { paths, reason, by_person: !caller.by_token, ...(refusal !== null && { refusal }) },
  })
  return { recorded: true }
}
