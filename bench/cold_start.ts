import { spawnSync } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { type Goal, median, printGoals, printTable, progress } from './report.ts'

/** What a hook runs, so what its user waits for. */
const COMMAND = resolve('bin/leasehold')
const RATIO_MAX = 1.6
const ROUNDS = 40
const ROUNDS_QUICK = 10

export interface ColdStart {
  node_ms: number
  leasehold_ms: number
  goals: Goal[]
}

/**
 * `leasehold lock status x` against `node -e 0`: started in turn, so that noise hits both alike;
 * medians. Undefined when there is no command to start yet.
 */
export function measureColdStart(quick: boolean): ColdStart {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  const env = { ...process.env, LEASEHOLD_DIR: folder }
  try {
    const status = [COMMAND, 'lock', 'status', 'x']
    // The first call builds what is missing; the second one finds a store with a lock in it.
    run([COMMAND, 'lock', 'acquire', 'x', '--agent', 'bench'], env)
    run(status, env)
    const node: number[] = []
    const ours: number[] = []
    for (let i = 0; i < (quick ? ROUNDS_QUICK : ROUNDS); i += 1) {
      progress(`cold start ${i + 1}`)
      node.push(run(['-e', '0'], env))
      ours.push(run(status, env))
    }
    progress('')
    const [node_ms, leasehold_ms] = [median(node), median(ours)]
    const ratio = leasehold_ms / node_ms
    const name = 'cold start: lock status / bare node'
    const goals = [{ name, ratio, goal: `≤ ${RATIO_MAX}`, met: ratio <= RATIO_MAX }]
    return { node_ms, leasehold_ms, goals }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function run(args: string[], env: NodeJS.ProcessEnv): number {
  const start_ms = performance.now()
  const { status, stderr } = spawnSync(process.execPath, args, { env, encoding: 'utf8' })
  if (status !== 0) throw new Error(`node ${args.join(' ')} exited with ${status}: ${stderr}`)
  return performance.now() - start_ms
}

export function printColdStart({ node_ms, leasehold_ms, goals }: ColdStart): void {
  console.log('\nCold start, median ms')
  printTable([
    ['node -e 0', node_ms.toFixed(1)],
    ['leasehold lock status x', leasehold_ms.toFixed(1)],
  ])
  printGoals(goals)
}
