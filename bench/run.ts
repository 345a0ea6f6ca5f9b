import { writeFileSync } from 'node:fs'
import { measureColdStart, printColdStart } from './cold_start.ts'
import { measureDashboard, printDashboard } from './dashboard.ts'
import { measureCore, printCore } from './core.ts'
import { echo } from './echo.ts'
import { measureHook, printHook } from './hook.ts'
import { measureHttp, printHttp } from './http.ts'
import { load } from './load.ts'
import { drainGraphile, fillGraphile } from './peers/graphile_worker.ts'
import { drainPgboss, fillPgboss } from './peers/pgboss.ts'
import { measureMemory, printMemory } from './memory.ts'
import { measurePostgres, printPostgres } from './postgres.ts'
import { claimOnPostgres } from './postgres_claims.ts'
import { measureCosts, printCosts } from './postgres_costs.ts'
import { claimLed } from './postgres_led.ts'
import { printScale, simulateScale } from './postgres_scale.ts'
import { measureQueue, printQueue } from './queue.ts'
import { listen, measureSse, printSse } from './sse.ts'

/** What `main.ts` starts, bundled as the program itself is: `run WORKLOAD QUICK JSON_FILE`. */
const [, , workload, quick, file] = process.argv
const isQuick = quick === 'true'

/** A workload: what it measures, and how its numbers are printed. */
const workloadOf =
  <T>(measure: (isQuick: boolean) => Promise<T> | T, print: (got: T) => void) =>
  async (): Promise<unknown> => {
    const got = await measure(isQuick)
    print(got)
    return got
  }

const cold_start = workloadOf(measureColdStart, printColdStart)

const WORKLOADS: Record<string, () => Promise<unknown>> = {
  core: workloadOf(measureCore, printCore),
  hook: workloadOf(measureHook, printHook),
  http: workloadOf(measureHttp, printHttp),
  queue: workloadOf(measureQueue, printQueue),
  sse: workloadOf(measureSse, printSse),
  memory: workloadOf(measureMemory, printMemory),
  postgres: workloadOf(measurePostgres, printPostgres),
  costs: workloadOf(measureCosts, printCosts),
  scale: workloadOf(simulateScale, printScale),
  dashboard: workloadOf(measureDashboard, printDashboard),
  cold_start,
}

/** What a workload starts beside itself; not to be asked for. */
const PARTS: Record<string, (args: string[]) => Promise<void>> = {
  load,
  echo,
  listen,
  postgres_claims: claimOnPostgres,
  postgres_led: claimLed,
  graphile_fill: fillGraphile,
  graphile_drain: drainGraphile,
  pgboss_fill: fillPgboss,
  pgboss_drain: drainPgboss,
}
const part = PARTS[workload ?? '']
if (part) await part(process.argv.slice(3))
else await measureOne(workload!)

async function measureOne(name: string): Promise<void> {
  const numbers: Record<string, unknown> = { [name]: await WORKLOADS[name]!() }
  if (name === 'core') numbers['cold_start'] = await cold_start()
  if (file) writeFileSync(file, `${JSON.stringify(numbers, null, 2)}\n`)
}
