import { defineConfig } from 'vitest/config'
import { RulesFirst, SHARED } from './test/sequence.ts'

export default defineConfig({
  // Lets a test switch a planted bug on; the bundle is built without it.
  define: { LEASEHOLD_TEST_BUILD: 'true' },
  test: {
    globalSetup: ['test/build.ts', 'test/postgres_setup.ts'],
    // Tests write their own configuration; that of approval takes this away.
    env: { LEASEHOLD_TRUST_CONFIG: 'yes', NO_COLOR: '1' },
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // A poll waits for what must come; on a busy machine it may come late.
    expect: { poll: { timeout: 20_000 } },
    pool: 'forks',
    // One more than the cores of a small machine: most tests wait for processes and for timers.
    maxWorkers: 3,
    sequence: { sequencer: RulesFirst },
    setupFiles: ['test/each_file.ts'],
    projects: [
      { extends: true, test: { name: 'shared', include: SHARED, isolate: false } },
      { extends: true, test: { name: 'alone', include: ['test/**/*.test.ts'], exclude: SHARED } },
    ],
  },
})
