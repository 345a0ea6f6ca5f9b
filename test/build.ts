import { execFileSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { build } from 'esbuild'

const ROOT = fileURLToPath(new URL('..', import.meta.url))
const PROGRAMS = [
  'test/e2e/participant.ts',
  'test/e2e/postgres_participant.ts',
  'test/faults/leader_participant.ts',
  'test/faults/postgres_claimer.ts',
  'test/faults/postgres_copier.ts',
  'test/faults/postgres_crowd_agents.ts',
  'lab/rig/rig_agent.ts',
  'test/faults/worst_token_agent.ts',
  'test/landing/lander_process.ts',
]

/**
 * Once per run of the tests: the command line as it ships, the same with planted bugs to switch on,
 * and the programs that tests start by the dozen (bundled, they start five times faster).
 */
export default async function setup(): Promise<void> {
  for (const flags of [[], ['--test']]) {
    execFileSync(process.execPath, ['build.mjs', ...flags], { cwd: ROOT, stdio: 'inherit' })
  }
  await build({
    absWorkingDir: ROOT,
    entryPoints: PROGRAMS,
    entryNames: '[name]',
    outdir: 'dist/test',
    outExtension: { '.js': '.mjs' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20.19',
    external: ['@photostructure/sqlite', 'pg'],
    define: { LEASEHOLD_TEST_BUILD: 'true' },
    logLevel: 'warning',
  })
}
