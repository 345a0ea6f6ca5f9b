import { groupFact, leaderFact, stopGroup } from './group.ts'
import type { Machine } from './port.ts'
import { boot, host, processFact, seat } from './process.ts'
import { timeShift } from './time_namespace.ts'

/**
 * This machine. `hrtime` counts from boot and, without what a time namespace adds to it, is the
 * same for all processes on it. On Linux it stands still while the machine is suspended, and so do
 * leases.
 */
export const machine: Machine = {
  host,
  boot,
  seat,
  monotonicMs: () => Number(process.hrtime.bigint() / 1000n) / 1000 - timeShift.monotonic_ms,
  wallMs: () => Date.now(),
  process: processFact,
  group: groupFact,
  leader: leaderFact,
  stop: stopGroup,
}
