import { BaseSequencer, type TestSpecification } from 'vitest/node'

/**
 * Files of these share one process, however many processes they start: to load the program anew for
 * each of them took half of their time. They leave nothing behind in it. The others, most of which
 * kill, stop and starve what they start, have a process each.
 */
export const SHARED = [
  'test/tidy.test.ts',
  'test/{doors,plugins,simulation,stores}/**/*.test.ts',
  'test/daemon/{commands,config,config_memory}.test.ts',
  'test/e2e/{cli,holders,memory,queue,reservations,run,tasks,wrong_situations}.test.ts',
  'test/faults/input.test.ts',
  'test/memory/{contradictions,left_out,merges,nearest,search,store,sync_parts}.test.ts',
  'test/reservations/glob.test.ts',
]

/** Not timed, so that nothing is amiss while the checks of `npm test` run at their side. */
const RULES = ['tidy.test.ts', 'simulation/', 'stores/'].map((each) => `/test/${each}`)

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
 * The rules first. Then the order of vitest (the largest file first), behind those that take
 * longest; files that share a process follow each other.
 */
export class RulesFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId, project }: TestSpecification) => {
      const at = LONG.findIndex((each) => moduleId.endsWith(`/test/${each}`))
      const isRule = RULES.some((each) => moduleId.includes(each))
      const group = isRule ? 0 : project.name === 'shared' ? 1 : 2
      return group * (LONG.length + 1) + (at < 0 ? LONG.length : at)
    }
    // oxlint-disable-next-line unicorn/no-array-sort -- it is of the sequencer, not an array's
    const inOrder = await super.sort(files)
    return inOrder.toSorted((a, b) => rank(a) - rank(b))
  }
}
