import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * What is tested in the process of the tests, without servers and commands: files of these share
 * one process. They must leave nothing behind in it.
 */
export const RULES = [
  'test/tidy.test.ts',
  'test/{plugins,simulation,stores}/**/*.test.ts',
  'test/daemon/{config,config_memory}.test.ts',
  'test/doors/{answers,call,claim_wait,forgotten_lock,init_parts,past}.test.ts',
  'test/doors/{queue_calls,reference,refusals,replay,waiting}.test.ts',
  'test/memory/{contradictions,left_out,merges,nearest,search,store,sync_parts}.test.ts',
  'test/reservations/glob.test.ts',
]

/**
 * Small files that take long. What begins last should end soon: the other worker waits for it. And
 * beside hundreds of processes that race there had better be none that are timed.
 */
const LONG = [
  'simulation/simulation.test.ts',
  'simulation/planted.test.ts',
  'simulation/differential.test.ts',
  'stores/postgres.test.ts',
  'stores/stores.test.ts',
  'doors/parity.test.ts',
  'e2e/race.test.ts',
  'faults/dispatch_crash.test.ts',
  'faults/rig.test.ts',
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

/**
 * The rules first: they are not timed, so nothing is amiss while the checks of `npm test` run at
 * their side; and files that follow each other share a process. Then the order of vitest (the
 * largest file first), behind those that take longest.
 */
export class RulesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const at = LONG.findIndex((each) => moduleId.endsWith(`/test/${each}`))
      const last = LONG.length
      return (project.name === 'rules' ? 0 : last + 1) + (at < 0 ? last : at)
    }
    // oxlint-disable-next-line unicorn/no-array-sort -- it is of the sequencer, not an array's
    const inOrder = await super.sort(files)
    return inOrder.toSorted((a, b) => rank(a) - rank(b))
  }
}
