import { writeFileSync } from 'node:fs'
import { measureColdStart, printColdStart } from './cold_start.ts'
import { measureCore, printCore } from './core.ts'

/** What `main.ts` starts, bundled as the program itself is: `run WORKLOAD QUICK JSON_FILE`. */
const [, , workload, quick, file] = process.argv
const isQuick = quick === 'true'

const core = workload === 'core' ? await measureCore(isQuick) : undefined
if (core) printCore(core)
const cold_start = measureColdStart(isQuick)
if (cold_start) printColdStart(cold_start)
if (file) writeFileSync(file, `${JSON.stringify({ core, cold_start }, null, 2)}\n`)
