import type { Machine } from './port.ts'
import { boot, groupFact, host, processFact, seat, stopGroup } from './process.ts'

/** This machine. `hrtime` counts from boot and is the same for all processes on it. */
export const machine: Machine = {
  host,
  boot,
  seat,
  monotonicMs: () => Number(process.hrtime.bigint() / 1000n) / 1000,
  wallMs: () => Date.now(),
  process: processFact,
  group: groupFact,
  stop: stopGroup,
}
