import { awaitStart, ask, type Drained } from '../postgres_server.ts'
import { importPeer } from '../postgres_peers.ts'

/**
 * graphile-worker as its own performance guide has it: jobs are fetched and locked many at a time
 * into a queue in the process, and completed many at a time. A job is a row that is deleted when
 * done: no lease, no fence, no history. With named queues, jobs of one queue run one by one.
 */

/** As in the benchmark of that project. */
const FETCHED_AT_ONCE = 500
const ADDED_AT_ONCE = 5_000

interface Runner {
  stop(): Promise<void>
}

interface GraphileWorker {
  makeWorkerUtils: (options: object) => Promise<{
    migrate(): Promise<void>
    addJobs(jobs: object[]): Promise<unknown>
    release(): Promise<void>
  }>
  run: (options: object) => Promise<Runner>
  Logger: new (make: () => () => void) => object
}

const load = () => importPeer('graphile-worker/dist/index.js') as Promise<GraphileWorker>

/** `graphile_fill URL JOBS named|plain`: each job in a named queue of its own, or in none. */
export async function fillGraphile(args: string[]): Promise<void> {
  const [url, jobs, named] = args as [string, string, string]
  const { makeWorkerUtils } = await load()
  const utils = await makeWorkerUtils({ connectionString: url })
  await utils.migrate()
  for (let made = 0; made < Number(jobs); made += ADDED_AT_ONCE) {
    const numbers = Array.from({ length: ADDED_AT_ONCE }, (_, i) => made + i)
    await utils.addJobs(
      numbers.map((n) => {
        const queueName = named === 'named' ? `user-${n}` : undefined
        return { identifier: 'nothing', payload: { n }, queueName }
      }),
    )
  }
  await utils.release()
}

/** `graphile_drain URL CONCURRENCY WINDOW_MS NUMBER` */
export async function drainGraphile(args: string[]): Promise<void> {
  const [url, concurrency, window_ms] = args as [string, string, string]
  const { run, Logger } = await load()
  const drained: Drained = { done: 0, first_ms: 0, last_ms: 0 }
  await awaitStart()
  let idle = () => {}
  const until = new Promise<void>((resolve) => {
    const timer = setTimeout(resolve, Number(window_ms))
    idle = () => {
      clearTimeout(timer)
      resolve()
    }
  })
  const watch = setInterval(() => {
    if (drained.last_ms > 0 && Date.now() - drained.last_ms > 500) idle()
  }, 100)
  const runner = await run({
    taskList: { nothing: () => count(drained) },
    logger: new Logger(() => () => {}),
    noHandleSignals: true,
    preset: {
      worker: {
        connectionString: url,
        concurrentJobs: Number(concurrency),
        maxPoolSize: 10,
        localQueue: { size: FETCHED_AT_ONCE },
        completeJobBatchDelay: 0,
        failJobBatchDelay: 0,
      },
    },
  })
  await until
  clearInterval(watch)
  await runner.stop()
  console.log(JSON.stringify(drained))
}

function count(drained: Drained): void {
  drained.last_ms = Date.now()
  drained.first_ms ||= drained.last_ms
  drained.done += 1
}

/** How many jobs are left, to see that those counted as done are gone. */
export async function leftInGraphile(url: string): Promise<number> {
  const rows = await ask(url, 'SELECT count(*) FROM graphile_worker._private_jobs')
  return Number(rows[0]![0])
}
