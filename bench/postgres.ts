import { spawnSync } from 'node:child_process'
import { leftInGraphile } from './peers/graphile_worker.ts'
import { fillPostgres } from './postgres_claims.ts'
import { goalsOf, LED, PLAIN, QUEUE } from './postgres_goals.ts'
import { installPeers, PEER_NODE } from './postgres_peers.ts'
import { type Bench, drain, type Drained, p99Of, rateOf, startBench } from './postgres_server.ts'
import { median, printGoals, printTable, progress, whole } from './report.ts'

const CALLERS = 128
/** 1,000 agents are spread over so many processes. */
const CROWD = 40
const AGENTS = 1_000
const USERS = 2_000
/** All are given so many jobs; graphile-worker's are each in a queue of its own where named. */
const JOBS = 100_000
const JOBS_QUICK = 20_000
const WINDOW_MS = Number(process.env['BENCH_WINDOW_MS'] ?? 15_000)
const ROUNDS = Number(process.env['BENCH_ROUNDS'] ?? 5)
const ROUNDS_QUICK = 2
/** Part of it: `BENCH_ONLY='queue|named'` measures those whose name has one of these. */
const ONLY = process.env['BENCH_ONLY']?.split('|') ?? ['']
const isWanted = ({ name }: { name: string }) => ONLY.some((part) => name.includes(part))

/** Who is measured: from a copy of which database, by how many processes, and how. */
interface Contender {
  name: string
  from: string
  processes: number
  args: (url: string) => string[]
  node?: string
}

const each = (processes: number) => String((processes < CROWD ? CALLERS : AGENTS) / processes)

function ours(kind: 'queue' | 'plain', processes: number): Contender {
  const what = kind === 'queue' ? QUEUE : PLAIN
  return {
    name: `${what}, ${processes} × ${each(processes)}`,
    from: kind,
    processes,
    args: (url) => ['postgres_claims', kind, url, each(processes), String(WINDOW_MS)],
  }
}

/** The first process leads, and has callers of its own; the others send it what theirs ask. */
function led(kind: 'queue' | 'plain', processes: number): Contender {
  const { name, ...contender } = ours(kind, processes)
  const args = (url: string) => ['postgres_led', ...contender.args(url).slice(1)]
  return { ...contender, name: `${name}, ${LED}`, args }
}

function graphile(from: 'graphile' | 'graphile_named', processes: number): Contender {
  const what = from === 'graphile' ? 'batched' : 'named queues'
  return {
    name: `graphile-worker, ${what}, ${processes} × ${each(processes)}`,
    from,
    processes,
    args: (url) => ['graphile_drain', url, each(processes), String(WINDOW_MS)],
    node: PEER_NODE,
  }
}

function pgboss(from: 'pgboss' | 'pgboss_grouped'): Contender {
  const how = from === 'pgboss' ? 'plain' : 'grouped'
  return {
    name: `pg-boss, batches of 5,000${how === 'plain' ? '' : ', groupConcurrency 1'}`,
    from,
    processes: 1,
    args: (url) => ['pgboss_drain', url, how, String(WINDOW_MS)],
    node: PEER_NODE,
  }
}

const OURS = [ours('queue', 1), ours('queue', 4), ours('plain', 1), ours('plain', 4)]
const WITH_LEADER = [
  ...[led('queue', 1), led('queue', 4), led('queue', 8), led('queue', CROWD)],
  ...[led('plain', 1), led('plain', 4), led('plain', 8)],
]
const CONTENDERS = [
  ...OURS,
  ...WITH_LEADER,
  ...[graphile('graphile', 1), graphile('graphile', 4)],
  ...[graphile('graphile_named', 1), graphile('graphile_named', 4)],
  pgboss('pgboss'),
  pgboss('pgboss_grouped'),
].filter(isWanted)

/** Everybody in turn, round after round, on one server that syncs every commit. */
export async function measurePostgres(quick: boolean) {
  const missing = CONTENDERS.some(({ node }) => node !== undefined) ? installPeers() : undefined
  if (missing) throw new Error(missing)
  const jobs = quick ? JOBS_QUICK : JOBS
  const bench = await startBench()
  try {
    await fillAll(bench, jobs)
    const measured = new Map<string, Drained[]>(CONTENDERS.map(({ name }) => [name, []]))
    for (let round = 0; round < (quick ? ROUNDS_QUICK : ROUNDS); round += 1) {
      for (const contender of CONTENDERS) {
        progress(`round ${round + 1}: ${contender.name}`)
        measured.get(contender.name)!.push(await measureOne(bench, contender, jobs))
      }
    }
    const rates = Object.fromEntries(
      [...measured].map(([name, all]) => [name, median(all.map(rateOf))]),
    )
    const p99_ms = Object.fromEntries(
      [...measured].map(([name, all]) => [name, median(all.map(p99Of))]),
    )
    progress('')
    const goals = goalsOf({ rates, p99_ms })
    const perBatch = Object.fromEntries(
      [...measured].map(([name, all]) => [name, median(all.map(asksPerBatch))]),
    )
    return { rates, p99_ms, jobs, perBatch, cpu: cpuOf(measured), goals }
  } catch (error) {
    // A server that went away took the reason with it, but for this.
    progress('')
    console.error(`The server’s log ends with:\n${bench.said()}`)
    throw error
  } finally {
    await bench.stop()
  }
}

async function fillAll(bench: Bench, jobs: number): Promise<void> {
  const byPeer = (...args: string[]) => {
    const { status } = spawnSync(PEER_NODE, [process.argv[1]!, ...args], { stdio: 'inherit' })
    if (status !== 0) throw new Error(`${args[0]} ended with ${status}`)
    return Promise.resolve()
  }
  progress('filling')
  const count = String(jobs)
  const wanted = new Set(['queue', ...CONTENDERS.map(({ from }) => from)])
  const fill = async (name: string, how: (url: string) => Promise<void>) => {
    if (wanted.has(name)) await bench.template(name, how)
  }
  await fill('queue', (url) => fillPostgres(url, 'queue', jobs))
  await fill('plain', (url) => fillPostgres(url, 'plain', jobs))
  await fill('graphile', (url) => byPeer('graphile_fill', url, count, 'plain'))
  await fill('graphile_named', (url) => byPeer('graphile_fill', url, count, 'named'))
  await fill('pgboss', (url) => byPeer('pgboss_fill', url, count, '0'))
  await fill('pgboss_grouped', (url) => byPeer('pgboss_fill', url, count, String(USERS)))
}

async function measureOne(bench: Bench, contender: Contender, jobs: number): Promise<Drained> {
  const { from, processes, args, node } = contender
  const url = await bench.copyOf(from)
  const drained = await drain({ args: args(url), processes, ...(node && { node }) })
  if (from.startsWith('graphile')) {
    const gone = jobs - (await leftInGraphile(url))
    if (gone !== drained.done) throw new Error(`graphile-worker did ${drained.done}, not ${gone}`)
  }
  await bench.drop(url)
  return drained
}

/** A claim and its completion are two asks. */
const asksPerBatch = ({ done, batches }: Drained) => (batches ? (2 * done) / batches : 0)

/** Milliseconds of processor time per job: of the first process, and of the others together. */
function cpuOf(measured: Map<string, Drained[]>): Record<string, [number, number]> {
  const spent = [...measured].map(([name, all]): [string, [number, number]] => {
    const jobs = all.reduce((sum, { done }) => sum + done, 0)
    const sum = (of: (cpu: number[]) => number[]) =>
      all.flatMap(({ cpu_ms = [] }) => of(cpu_ms)).reduce((a, b) => a + b, 0)
    return [name, [sum((cpu) => cpu.slice(0, 1)) / jobs, sum((cpu) => cpu.slice(1)) / jobs]]
  })
  return Object.fromEntries(spent)
}

export function printPostgres(measured: Awaited<ReturnType<typeof measurePostgres>>): void {
  const { rates, p99_ms, jobs, perBatch, cpu, goals } = measured
  console.log('PostgreSQL, fsync and synchronous_commit on. Jobs claimed and completed:')
  const rows = Object.entries(rates).map(([name, rate]) => {
    const p99 = p99_ms[name]
    const [first, others] = (cpu[name] ?? [0, 0]).map((ms) => whole(ms * 1000))
    const spent = first === '0' ? '' : `${first} + ${others} µs`
    return [
      name,
      whole(rate),
      p99 ? `p99 of a claim ${whole(p99)} ms` : '',
      spent,
      whole(perBatch[name] ?? 0),
    ]
  })
  printTable([['', 'per second', '', 'processor, first + others', 'asks per commit'], ...rows])
  console.log(`${whole(jobs)} jobs each; ours, from the queue, of ${whole(USERS)} users.`)
  printGoals(goals)
}
