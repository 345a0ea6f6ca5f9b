import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Small files that take long. What begins last should end soon: the other worker waits for it. And
 * beside hundreds of processes that race there had better be none that are timed.
 */
const LONG = [
  'simulation/simulation.test.ts',
  'doors/parity.test.ts',
  'stores/postgres.test.ts',
  'e2e/race.test.ts',
  'faults/dispatch_crash.test.ts',
  'faults/rig.test.ts',
  'simulation/differential.test.ts',
  'stores/stores.test.ts',
  'faults/dispatch_crash_pause.test.ts',
  'e2e/dispatch.test.ts',
  'e2e/postgres_hosts.test.ts',
  'e2e/run.test.ts',
  'faults/crash.test.ts',
  'doors/mcp.test.ts',
  'docs/docs.test.ts',
  'e2e/wrong_situations.test.ts',
  'e2e/dispatch_fair.test.ts',
]

/** The order of vitest (the largest file first), behind those that take longest. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((each) => moduleId.endsWith(`/test/${each}`))
      return at < 0 ? LONG.length : at
    }
    // oxlint-disable-next-line unicorn/no-array-sort -- it is of the sequencer, not an array's
    const inOrder = await super.sort(files)
    return inOrder.toSorted((a, b) => rank(a) - rank(b))
  }
}
