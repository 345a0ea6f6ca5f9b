import { groupFact, leaderFact, stopGroup } from './group.ts'
import type { GroupRef, ProcessRef } from '../core/rows.ts'
import type { Fact } from '../core/view.ts'
import { boot, host, processFact, seat, timeShift } from './process.ts'

/** What the operating system knows: time, and which processes live. */
export interface Machine {
  readonly host: string
  /** Identifies this boot of this machine. */
  readonly boot: string
  /** Boot and pid namespace: where the facts below can be proved. */
  readonly seat: string
  monotonicMs(): number
  wallMs(): number
  process(ref: ProcessRef): Fact
  group(ref: GroupRef): Fact
  /** Whether the leader of a group carries its mark; `dead` when it certainly does not. */
  leader(ref: GroupRef): Fact
  /** Stops a process group and waits until it is gone. False when it could not be stopped. */
  stop(group: GroupRef): Promise<boolean>
}

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
