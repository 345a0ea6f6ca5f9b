import { mkdtempSync, rmSync } from 'node:fs'
import { cpus, loadavg, platform, tmpdir, totalmem } from 'node:os'
import { join } from 'node:path'
import { claimAndComplete, fillStore } from './claims.ts'
import { type Durability, drainPlainjob, installPlainjob } from './peers/plainjob.ts'
import { type Goal, median, printGoals, printTable, progress, whole } from './report.ts'

const SIZES = [20_000, 200_000] as const
const CALLERS = [1, 16, 128, 512] as const
/** The goals are stated for this many. */
const CALLERS_MANY = 128

const PEER_RATIO_MIN = 7
const SIZE_RATIO_MAX = 1.5

/** Enough for about a second each. Only tasks that are there can be claimed. */
const PAIRS: Record<(typeof CALLERS)[number], number> = {
  1: 1_000,
  16: 6_000,
  128: 15_000,
  512: 15_000,
}
const JOBS: Record<Durability, number> = { default: 16_000, full: 6_000 }
/** plainjob's own benchmark runs with these; the best one is what we compare with. */
const PEER_PROCESSES = [1, 2, 4] as const

const ROUNDS = 5
const ROUNDS_QUICK = 2

interface Series {
  name: string
  rates: number[]
  measure: () => Promise<number | undefined>
}

/** Everything in one run and in turn: round after round, so that noise hits all alike. */
export async function measureCore(quick: boolean) {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  try {
    const unmeasured = installPlainjob()
    warnIfBusy()
    if (unmeasured) console.error(unmeasured)
    const series = [...(await ourSeries(folder)), ...(unmeasured ? [] : peerSeries(folder))]
    const rounds = quick ? ROUNDS_QUICK : ROUNDS
    const gave_up: Record<string, number> = {}
    // The first round warms up the compiler, as in a daemon that has run for a while.
    for (let round = 0; round <= rounds; round += 1) {
      for (const { name, rates, measure } of series) {
        progress(`round ${round} of ${rounds}: ${name}`)
        const rate = await measure()
        if (rate === undefined) gave_up[name] = (gave_up[name] ?? 0) + 1
        else if (round > 0) rates.push(rate)
      }
    }
    progress('')
    const measured = series.filter((each) => each.rates.length > 0)
    const rates = Object.fromEntries(measured.map((each) => [each.name, median(each.rates)]))
    return { rounds, rates, gave_up, goals: goalsOf(rates), machine: describeMachine() }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

const ours = (tasks: number, callers: number) => `leasehold ${tasks} ${callers}`
const peer = (durability: Durability, processes: number) => `plainjob ${durability} ${processes}`

async function ourSeries(folder: string): Promise<Series[]> {
  const series: Series[] = []
  for (const tasks of SIZES) {
    progress(`creating ${whole(tasks)} tasks`)
    const template = await fillStore(folder, tasks)
    for (const callers of CALLERS) {
      const measure = () => claimAndComplete(template, callers, PAIRS[callers])
      series.push({ name: ours(tasks, callers), rates: [], measure })
    }
  }
  return series
}

function peerSeries(folder: string): Series[] {
  return (['default', 'full'] as const).flatMap((durability) =>
    PEER_PROCESSES.map((processes) => {
      const path = join(folder, 'plainjob.db')
      const measure = () => drainPlainjob(path, JOBS[durability], processes, durability)
      return { name: peer(durability, processes), rates: [], measure }
    }),
  )
}

function bestPeer(rates: Record<string, number>, durability: Durability): number {
  return Math.max(...PEER_PROCESSES.map((processes) => rates[peer(durability, processes)] ?? 0))
}

function goalsOf(rates: Record<string, number>): Goal[] {
  const [few, many] = SIZES.map((tasks) => rates[ours(tasks, CALLERS_MANY)]!) as [number, number]
  const size = few / many
  const goals = [
    {
      name: `20 k / 200 k tasks, ${CALLERS_MANY} callers`,
      ratio: size,
      goal: `≤ ${SIZE_RATIO_MAX}`,
      met: size <= SIZE_RATIO_MAX,
    },
  ]
  const full = bestPeer(rates, 'full')
  if (full === 0) return goals
  const ratio = few / full
  const name = `leasehold / plainjob, both at FULL, ${CALLERS_MANY} callers`
  return [{ name, ratio, goal: `≥ ${PEER_RATIO_MIN}`, met: ratio >= PEER_RATIO_MIN }, ...goals]
}

function describeMachine(): string {
  const cores = cpus()
  const model = cores[0]?.model.trim() ?? 'unknown'
  const memory = Math.round(totalmem() / 2 ** 30)
  return `${cores.length} × ${model}, ${memory} GB, ${platform()}, Node ${process.versions.node}`
}

/** Others on the machine slow everything down, though not everything alike. */
function warnIfBusy(): void {
  const [load = 0] = loadavg()
  if (load < cpus().length / 2) return
  console.error(`The machine is busy (load ${load.toFixed(1)}): expect low rates and rough ratios.`)
}

export function printCore(result: Awaited<ReturnType<typeof measureCore>>): void {
  const { rates, rounds, gave_up, goals, machine } = result
  console.log(`\nClaim + complete per second, median of ${rounds} rounds (${machine})`)
  const header = CALLERS.map((callers) => `${callers} caller${callers === 1 ? '' : 's'}`)
  const rows = SIZES.map((tasks) => ourRow(rates, tasks))
  printTable([['leasehold, synchronous=FULL', ...header], ...rows])
  if (bestPeer(rates, 'full') > 0) {
    console.log('\nplainjob 0.0.14, its own benchmark workload, jobs per second')
    printTable([
      ['', ...PEER_PROCESSES.map((n) => `${n} process${n === 1 ? '' : 'es'}`)],
      ['synchronous=NORMAL (its default)', ...peerRow(rates, 'default')],
      ['synchronous=FULL', ...peerRow(rates, 'full')],
    ])
    for (const [name, times] of Object.entries(gave_up)) {
      console.log(`  ${name}: left out ${times} times, a process of it ended early (see above)`)
    }
  }
  console.log('')
  printGoals(goals)
}

function ourRow(rates: Record<string, number>, tasks: number): string[] {
  const cells = CALLERS.map((callers) => whole(rates[ours(tasks, callers)]!))
  return [`${whole(tasks)} tasks`, ...cells]
}

function peerRow(rates: Record<string, number>, durability: Durability): string[] {
  return PEER_PROCESSES.map((processes) => {
    const rate = rates[peer(durability, processes)]
    return rate === undefined ? 'gave up' : whole(rate)
  })
}
