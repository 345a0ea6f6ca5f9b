import { awaitStart, type Drained } from '../postgres_server.ts'
import { importPeer } from '../postgres_peers.ts'

/**
 * pg-boss: one caller per process fetches up to 5,000 jobs, does nothing, and completes them all
 * with one statement. A job is a row that changes its state twice and is kept. With
 * `groupConcurrency: 1` a fetch takes at most one job of each group, as our rule for users does.
 */

const FETCHED_AT_ONCE = 5_000
const QUEUE = 'nothing'

interface Boss {
  start(): Promise<unknown>
  stop(options: object): Promise<unknown>
  on(event: 'error', tell: (error: Error) => void): void
  createQueue(name: string): Promise<void>
  insert(name: string, jobs: object[]): Promise<unknown>
  fetch(name: string, options: object): Promise<{ id: string }[]>
  complete(name: string, ids: string[]): Promise<unknown>
}

async function open(url: string): Promise<Boss> {
  const { PgBoss } = (await importPeer('pg-boss/dist/index.js')) as {
    PgBoss: new (options: object) => Boss
  }
  const boss = new PgBoss({ connectionString: url, supervise: false, schedule: false })
  boss.on('error', (error) => console.error(error))
  await boss.start()
  return boss
}

/** `pgboss_fill URL JOBS USERS`: jobs in the groups of so many users, in turn; 0: in none. */
export async function fillPgboss(args: string[]): Promise<void> {
  const [url, jobs, users] = args as [string, string, string]
  const boss = await open(url)
  await boss.createQueue(QUEUE)
  for (let made = 0; made < Number(jobs); made += FETCHED_AT_ONCE) {
    const numbers = Array.from({ length: FETCHED_AT_ONCE }, (_, i) => made + i)
    const groupOf = (n: number) => ({ id: `user-${n % Number(users)}` })
    await boss.insert(
      QUEUE,
      numbers.map((n) => (users === '0' ? { data: { n } } : { data: { n }, group: groupOf(n) })),
    )
  }
  await boss.stop({ graceful: false })
}

/** `pgboss_drain URL grouped|plain WINDOW_MS NUMBER` */
export async function drainPgboss(args: string[]): Promise<void> {
  const [url, grouped, window_ms] = args as [string, string, string]
  const boss = await open(url)
  const options = {
    batchSize: FETCHED_AT_ONCE,
    ...(grouped === 'grouped' && { groupConcurrency: 1 }),
  }
  await awaitStart()
  const first_ms = Date.now()
  const drained: Drained = { done: 0, first_ms, last_ms: first_ms }
  for (let misses = 0; misses < 3 && Date.now() - first_ms < Number(window_ms);) {
    const jobs = await boss.fetch(QUEUE, options)
    misses = jobs.length === 0 ? misses + 1 : 0
    if (jobs.length === 0) continue
    const ids = jobs.map(({ id }) => id)
    await boss.complete(QUEUE, ids)
    drained.done += ids.length
    drained.last_ms = Date.now()
  }
  await boss.stop({ graceful: false })
  console.log(JSON.stringify(drained))
}
