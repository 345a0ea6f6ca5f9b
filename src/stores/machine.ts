import { groupFact, leaderFact, stopGroup } from './group.ts'
import type { Machine } from './port.ts'
import { boot, host, processFact, seat } from './process.ts'

/** This machine. `hrtime` counts from boot and is the same for all processes on it. */
export const machine: Machine = {
  host,
  boot,
  seat,
  monotonicMs: () => Number(process.hrtime.bigint() / 1000n) / 1000,
  wallMs: () => Date.now(),
  process: processFact,
  group: groupFact,
  leader: leaderFact,
  stop: stopGroup,
}
