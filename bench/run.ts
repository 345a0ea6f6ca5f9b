import { writeFileSync } from 'node:fs'
import { measureColdStart, printColdStart } from './cold_start.ts'
import { measureCore, printCore } from './core.ts'
import { measureHttp, printHttp } from './http.ts'
import { load } from './load.ts'
import { claimOnPostgres, measurePostgres, printPostgres } from './postgres.ts'
import { measureQueue, printQueue } from './queue.ts'

/** What `main.ts` starts, bundled as the program itself is: `run WORKLOAD QUICK JSON_FILE`. */
const [, , workload, quick, file] = process.argv
const isQuick = quick === 'true'

/** `load` is what a workload starts beside itself, not one to be asked for. */
if (workload === 'load') await load(process.argv.slice(3))
else if (workload === 'postgres_claims') await claimOnPostgres(process.argv.slice(3))
else await measure()

async function measure(): Promise<void> {
  const core = workload === 'core' ? await measureCore(isQuick) : undefined
  if (core) printCore(core)
  const http = workload === 'http' ? await measureHttp(isQuick) : undefined
  if (http) printHttp(http)
  const queue = workload === 'queue' ? await measureQueue(isQuick) : undefined
  if (queue) printQueue(queue)
  const postgres = workload === 'postgres' ? await measurePostgres(isQuick) : undefined
  if (postgres) printPostgres(postgres)
  const cold_start = http || queue || postgres ? undefined : measureColdStart(isQuick)
  if (cold_start) printColdStart(cold_start)
  if (file)
    writeFileSync(file, `${JSON.stringify({ core, http, queue, postgres, cold_start }, null, 2)}\n`)
}
