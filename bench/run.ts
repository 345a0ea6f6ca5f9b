import { writeFileSync } from 'node:fs'
import { measureColdStart, printColdStart } from './cold_start.ts'
import { measureDashboard, printDashboard } from './dashboard.ts'
import { measureCore, printCore } from './core.ts'
import { measureHttp, printHttp } from './http.ts'
import { load } from './load.ts'
import { drainGraphile, fillGraphile } from './peers/graphile_worker.ts'
import { drainPgboss, fillPgboss } from './peers/pgboss.ts'
import { measurePostgres, printPostgres } from './postgres.ts'
import { claimOnPostgres } from './postgres_claims.ts'
import { printScale, simulateScale } from './postgres_scale.ts'
import { measureQueue, printQueue } from './queue.ts'
import { listen, measureSse, printSse } from './sse.ts'

/** What `main.ts` starts, bundled as the program itself is: `run WORKLOAD QUICK JSON_FILE`. */
const [, , workload, quick, file] = process.argv
const isQuick = quick === 'true'

/** What a workload starts beside itself; not to be asked for. */
const PARTS: Record<string, (args: string[]) => Promise<void>> = {
  load,
  listen,
  postgres_claims: claimOnPostgres,
  graphile_fill: fillGraphile,
  graphile_drain: drainGraphile,
  pgboss_fill: fillPgboss,
  pgboss_drain: drainPgboss,
}
const part = PARTS[workload ?? '']
if (part) await part(process.argv.slice(3))
else await measure()

async function measure(): Promise<void> {
  const core = workload === 'core' ? await measureCore(isQuick) : undefined
  if (core) printCore(core)
  const http = workload === 'http' ? await measureHttp(isQuick) : undefined
  if (http) printHttp(http)
  const queue = workload === 'queue' ? await measureQueue(isQuick) : undefined
  if (queue) printQueue(queue)
  const sse = workload === 'sse' ? await measureSse(isQuick) : undefined
  if (sse) printSse(sse)
  const postgres = workload === 'postgres' ? await measurePostgres(isQuick) : undefined
  if (postgres) printPostgres(postgres)
  const scale = workload === 'scale' ? simulateScale() : undefined
  if (scale) printScale(scale)
  const dashboard = workload === 'dashboard' ? await measureDashboard(isQuick) : undefined
  if (dashboard) printDashboard(dashboard)
  const others = http ?? queue ?? sse ?? postgres ?? scale ?? dashboard
  const cold_start = others ? undefined : measureColdStart(isQuick)
  if (cold_start) printColdStart(cold_start)
  if (file)
    writeFileSync(
      file,
      `${JSON.stringify({ core, http, queue, sse, postgres, scale, dashboard, cold_start }, null, 2)}\n`,
    )
}
