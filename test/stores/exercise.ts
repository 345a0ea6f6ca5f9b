import { afterEach, describe } from 'vitest'
import type { Store } from '../../src/stores/writer/store.ts'
import { MachineSim, type Open, temporaryFolder, Verbs } from '../support/helpers.ts'
import { exerciseAgents } from './exercise/agents.ts'
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

/**
 * What every store must do, whatever it keeps its rows in. `open` opens the store at a folder;
 * `clear` is told after every test, when all stores are closed.
 */
export function exerciseStore(name: string, open: Open, clear?: () => Promise<void>): void {
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
    exerciseLocks(begin)
    exerciseLeases(begin)
    exerciseLines(begin)
    exerciseSweeping(begin)
    exerciseDeadlocks(begin)
    exerciseHandOff(begin)
    exerciseProcesses(begin)
    exerciseClocks(begin)
    exerciseTasks(begin)
    exerciseClaims(begin)
    exerciseMoves(begin)
    exerciseAgents(begin)
    exerciseQueueOrder(begin)
    exerciseQueueLimits(begin)
    exerciseQueueAgents(begin)
    exerciseQueueRuns(begin)
    exerciseQueueLanes(begin)
    exerciseQueueSettings(begin)
    exerciseQueueSettling(begin)
    exerciseQueueExplain(begin)
    exerciseForeseen(begin)
    exerciseLanding(begin)
    exerciseLandingLine(begin)
    exerciseQueueResources(begin)
    exerciseReservations(begin)
    exerciseStats(begin)
    exerciseStuck(begin)
    exerciseRetention(begin)
    exerciseWriter(begin)
    exerciseMemory(begin)
    exerciseMemoryConflicts(begin)
    exerciseMemorySiblings(begin)
  })
}
