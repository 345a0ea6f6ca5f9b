import { afterEach, describe } from 'vitest'
import type { Store } from '../../src/stores/writer/store.ts'
import { MachineSim, type Open, temporaryFolder, Verbs } from '../support/helpers.ts'
import { exerciseAgents } from './exercise/agents.ts'
import { exerciseCircles } from './exercise/circles.ts'
import { exerciseClaims } from './exercise/claims.ts'
import { exerciseClocks } from './exercise/clocks.ts'
import { exerciseDeadlocks } from './exercise/deadlocks.ts'
import { exerciseForeseen } from './exercise/foreseen.ts'
import { exerciseHandOff } from './exercise/handoff.ts'
import { exerciseLeases } from './exercise/leases.ts'
import { exerciseLines } from './exercise/lines.ts'
import { exerciseSweeping } from './exercise/sweeping.ts'
import { exerciseLocks } from './exercise/locks.ts'
import { exerciseLanding } from './exercise/landing.ts'
import { exerciseLandingLine } from './exercise/landing_line.ts'
import { exerciseMemory } from './exercise/memory.ts'
import { exerciseMemoryConflicts } from './exercise/memory_conflicts.ts'
import { exerciseMemorySiblings } from './exercise/memory_siblings.ts'
import { exerciseMoves } from './exercise/moves.ts'
import { exerciseProcesses } from './exercise/processes.ts'
import { exerciseQueueAgents } from './exercise/queue_agents.ts'
import { exerciseQueueExplain } from './exercise/queue_explain.ts'
import { exerciseQueueResources } from './exercise/queue_resources.ts'
import { exerciseQueueLanes } from './exercise/queue_lanes.ts'
import { exerciseQueueLimits } from './exercise/queue_limits.ts'
import { exerciseQueueOrder } from './exercise/queue_order.ts'
import { exerciseQueueRuns } from './exercise/queue_runs.ts'
import { exerciseQueueSettings } from './exercise/queue_settings.ts'
import { exerciseQueueSettling } from './exercise/queue_settle.ts'
import { exerciseReservations } from './exercise/reservations.ts'
import { exerciseRetention } from './exercise/retention.ts'
import { exerciseStats } from './exercise/stats.ts'
import { exerciseStuck } from './exercise/stuck.ts'
import { exerciseTasks } from './exercise/tasks.ts'
import { exerciseWriter } from './exercise/writer.ts'
import type { Scene } from './exercise/scene.ts'

/** By what they are about. */
export const EXERCISES = {
  locks: exerciseLocks,
  leases: exerciseLeases,
  lines: exerciseLines,
  sweeping: exerciseSweeping,
  deadlocks: exerciseDeadlocks,
  hand_off: exerciseHandOff,
  processes: exerciseProcesses,
  clocks: exerciseClocks,
  tasks: exerciseTasks,
  claims: exerciseClaims,
  moves: exerciseMoves,
  agents: exerciseAgents,
  queue_order: exerciseQueueOrder,
  queue_limits: exerciseQueueLimits,
  queue_agents: exerciseQueueAgents,
  queue_runs: exerciseQueueRuns,
  queue_lanes: exerciseQueueLanes,
  queue_settings: exerciseQueueSettings,
  queue_settling: exerciseQueueSettling,
  queue_explain: exerciseQueueExplain,
  foreseen: exerciseForeseen,
  landing: exerciseLanding,
  landing_line: exerciseLandingLine,
  queue_resources: exerciseQueueResources,
  reservations: exerciseReservations,
  circles: exerciseCircles,
  stats: exerciseStats,
  stuck: exerciseStuck,
  retention: exerciseRetention,
  writer: exerciseWriter,
  memory: exerciseMemory,
  memory_conflicts: exerciseMemoryConflicts,
  memory_siblings: exerciseMemorySiblings,
}

export type Part = keyof typeof EXERCISES
const ALL = Object.keys(EXERCISES) as Part[]

/**
 * What every store must do, whatever it keeps its rows in. `open` opens the store at a folder;
 * `clear` is told after every test, when all stores are closed. With `parts` it is only those.
 */
export function exerciseStore(
  name: string,
  open: Open,
  { clear, parts = ALL }: { clear?: () => Promise<void>; parts?: Part[] } = {},
): void {
  const opened: Store[] = []

  function begin(): Scene {
    const machine = new MachineSim()
    const dir = temporaryFolder()
    const store = open(dir, machine)
    opened.push(store)
    const beside = () => {
      const other = open(dir, machine)
      opened.push(other)
      return new Verbs(other)
    }
    return { machine, store, verbs: new Verbs(store), beside }
  }

  describe(`on the ${name} store`, () => {
    afterEach(async () => {
      for (const store of opened.splice(0)) await store.close()
      await clear?.()
    })
    for (const each of parts) EXERCISES[each](begin)
  })
}
