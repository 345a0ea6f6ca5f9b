import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { seeAgent } from '../src/core/agent.ts'
import { claimNext } from '../src/core/claim.ts'
import { moveTask } from '../src/core/move.ts'
import { createTask } from '../src/core/task.ts'
import { machine } from '../src/stores/machine.ts'
import { addressOf } from '../src/stores/postgres/address.ts'
import { PostgresBackend } from '../src/stores/postgres/backend.ts'
import { Store } from '../src/stores/store.ts'
import { startPostgres } from '../test/postgres_server.ts'
import { callerOf } from './claims.ts'
import { median, printTable, progress, whole } from './report.ts'

const CALLERS = 128
const PROCESSES = [1, 2, 4] as const
const PAIRS = 8_000
const ROUNDS = 5
const ROUNDS_QUICK = 2
const ASK = { ttl_ms: 60_000, process: null, takeover: false }
const FIELDS = { body: 'Do it.', project: null, user: null, priority: 5, group: null }
const REST = { labels: [], depends_on: [], assigned_to: null, metadata: {} }

/** Claims and completes with so many processes on one server, `CALLERS` callers in all. */
export async function measurePostgres(quick: boolean) {
  const server = await startPostgres({ fsync: true })
  try {
    const rates: Record<string, number> = {}
    for (const processes of PROCESSES) {
      const measured: number[] = []
      for (let round = 0; round < (quick ? ROUNDS_QUICK : ROUNDS); round += 1) {
        progress(`${processes} processes, round ${round + 1}`)
        const url = `${server.url}?schema=p${processes}_${round}`
        measured.push(await claimBy(processes, url))
      }
      rates[`${processes} × ${CALLERS / processes} callers`] = median(measured)
    }
    progress('')
    return { rates }
  } finally {
    await server.stop()
  }
}

export function printPostgres({ rates }: Awaited<ReturnType<typeof measurePostgres>>): void {
  console.log('Claim + complete per second on PostgreSQL, durable:')
  printTable(Object.entries(rates).map(([name, rate]) => [name, whole(rate)]))
}

async function claimBy(processes: number, url: string): Promise<number> {
  await fill(url)
  const callers = CALLERS / processes
  const started = Array.from({ length: processes }, (_, i) => {
    const args = [process.argv[1]!, 'postgres_claims', url, String(callers), String(i)]
    return spawn(process.execPath, args, { stdio: ['pipe', 'pipe', 'inherit'] })
  })
  await Promise.all(started.map(lineOf))
  const start_ms = performance.now()
  for (const each of started) each.stdin.end('go\n')
  const claimed = await Promise.all(started.map(async (each) => Number(await lineOf(each))))
  return (claimed.reduce((a, b) => a + b, 0) / (performance.now() - start_ms)) * 1000
}

async function lineOf({ stdout }: ChildProcess): Promise<string> {
  const [line] = (await once(createInterface(stdout!), 'line')) as [string]
  return line
}

function open(url: string): Store {
  return new Store(
    new PostgresBackend({ address: addressOf(url), busy_timeout_ms: 5_000 }),
    machine,
  )
}

async function fill(url: string): Promise<void> {
  const store = open(url)
  const titles = Array.from({ length: PAIRS }, (_, i) => `Task ${i}`)
  const add = (title: string) => {
    return store.write((view) => createTask(view, { title, ...FIELDS, ...REST }, callerOf(0)))
  }
  await Promise.all(titles.map(add))
  await store.close()
}

/** `postgres_claims URL CALLERS NUMBER`: claims until nothing is ready, and says how many. */
export async function claimOnPostgres(args: string[]): Promise<void> {
  const [url, callers, number] = args as [string, string, string]
  const store = open(url)
  await store.write(() => undefined)
  console.log('ready')
  await once(process.stdin, 'data')
  const counts = await Promise.all(
    Array.from({ length: Number(callers) }, (_, i) => claimAll(store, Number(number) * 1000 + i)),
  )
  console.log(counts.reduce((a, b) => a + b, 0))
  await store.close()
}

async function claimAll(store: Store, agent: number): Promise<number> {
  const caller = callerOf(agent)
  for (let claimed = 0; ; claimed += 1) {
    const claim = await store.write((view) => {
      seeAgent(view, caller)
      return claimNext(view, {}, ASK, caller)
    })
    if (!claim) return claimed
    const { task, lease } = claim
    const move = { id: task.id, to: 'done' as const, fence: lease.fence, ...ASK }
    await store.write((view) => moveTask(view, move, caller))
  }
}
