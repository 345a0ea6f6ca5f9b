// plainjob's own benchmark workload (bench/run-scenario.ts and bench/worker-better.ts of its
// repository at 0.0.14): a queue is filled with `addMany`, then workers whose processor does
// nothing drain it, each in a process of its own. Timed from start to the last job, so that
// neither filling the queue nor starting a process counts.
//
//   node drain.mjs fill DATABASE JOBS        node drain.mjs drain DATABASE default|full
import Database from 'better-sqlite3'
import { better, defineQueue, defineWorker } from 'plainjob'

const [, , verb, path, argument] = process.argv
const quiet = () => {}
const logger = { error: console.error, warn: console.warn, info: quiet, debug: quiet }
const database = new Database(path)
const queue = defineQueue({ connection: better(database), logger })

if (verb === 'fill') {
  const jobs = Array.from({ length: Number(argument) }, (_, jobId) => ({ jobId }))
  queue.addMany('bench', jobs)
} else {
  // defineQueue sets synchronous = NORMAL, plainjob's default.
  if (argument === 'full') database.pragma('synchronous = FULL')
  await drain()
}
queue.close()
database.close()

async function drain() {
  let done = 0
  let last_ms = 0
  const count = () => {
    done += 1
    last_ms = Date.now()
  }
  const worker = defineWorker('bench', () => Promise.resolve(), {
    queue,
    logger,
    pollIntervall: 50,
    onCompleted: count,
  })
  // The parent says when: workers in several processes must begin together.
  process.send({ ready: true })
  await new Promise((resolve) => process.once('message', resolve))
  const started_ms = Date.now()
  const working = worker.start()
  while (queue.countJobs({ type: 'bench', status: 0 }) > 0) {
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  await worker.stop()
  await working
  const synchronous = database.pragma('synchronous', { simple: true })
  process.send({ done, started_ms, last_ms, synchronous })
  process.disconnect()
}
