import type { ProcessRef, TokenScope } from './rows.ts'
import type { View } from './view.ts'

/** What an ask adds to what its token keeps. */
export type Spending = Partial<Record<'leases' | 'globs' | 'tasks_waiting', number>>

/** Who is asking. */
export interface Caller {
  agent: string
  /** False when the id was defaulted: then it may stand for many terminals at once. */
  given: boolean
  /** The process that speaks, where the door can know it. */
  process: ProcessRef | null
  /** The process that waits on its behalf, where that is another: a daemon with an open request. */
  waiter?: ProcessRef
  admin: boolean
  /** It came with a token that is no admin's: a program's, whoever started it. */
  by_token?: true
  /** What the caller's token is bound to; undefined: to nothing. */
  scope?: TokenScope | undefined
  /** Where doors count what this ask uses of what all share; undefined: nobody counts. */
  uses?: object | undefined
  /** The lease this caller runs under (`LEASEHOLD_LOCK`, `LEASEHOLD_FENCE`). */
  under: { lock: string; fence: number } | null
}

/** What `holder` holds admits `agent`: the same id, or one nested under it. Siblings exclude. */
export function admits(holder: string, agent: string): boolean {
  return agent === holder || agent.startsWith(`${holder}/`)
}

/** `agent`, and every agent nested under it that was seen here: an agent that holds was seen. */
export function* subagents(view: View, agent: string): Generator<string> {
  yield agent
  for (const { id } of view.scan('agents', '', { order: `${agent}/`, key: '' })) {
    if (!admits(agent, id)) return
    yield id
  }
}

/** Those that `agent` is nested under: of `a/b/c` they are `a/b` and `a`. */
export function parentsOf(agent: string): string[] {
  const parts = agent.split('/')
  return parts.slice(1).map((_, i) => parts.slice(0, parts.length - 1 - i).join('/'))
}

/** Every dispatched run has an agent id of its own, `claude:42.1`: what it is called without. */
export function agentKind(agent: string, task: string): string {
  const at = agent.lastIndexOf(`:${task}.`)
  return at > 0 ? agent.slice(0, at) : agent
}

/** Who is behind a lease that others may contend for is not told. */
export const STRANGER = 'another agent'

export function sameProcess(a: ProcessRef | null, b: ProcessRef | null): boolean {
  if (a === null || b === null) return false
  // A host may change its name; the seat is of one boot.
  return a.seat === b.seat && a.pid === b.pid && a.start === b.start
}

/** The lease that a surrounding `leasehold run` or runner holds for this program. */
export function leaseUnder(env: Record<string, string | undefined>): Caller['under'] {
  const lock = env['LEASEHOLD_LOCK']
  const fence = Number(env['LEASEHOLD_FENCE'])
  return lock && Number.isSafeInteger(fence) && fence > 0 ? { lock, fence } : null
}
