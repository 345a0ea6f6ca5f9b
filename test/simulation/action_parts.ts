import type { Claim } from '../../src/core/tasks/claim.ts'
import type { Outcome, SimAgent, World } from './world.ts'

export const TASKS_MAX = 24

export const anyTask = ({ random, tasks }: World) => `t${1 + random.below(Math.max(tasks, 1))}`

/** Some asks are sent twice, as by a client that lost patience. */
export function sends<T>({ random }: World, ask: () => Promise<T>): Promise<T>[] {
  return random.chance(0.15) ? [ask(), ask()] : [ask()]
}

export function learnClaim(agent: SimAgent, got: Outcome<Claim | undefined>): void {
  if (got.kind !== 'ok' || !got.value) return
  agent.held.set(got.value.lease.name, got.value.lease.fence)
}
