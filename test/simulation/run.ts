import { parseArgs } from 'node:util'
import { removeTemporaryFolders } from '../support/helpers.ts'
import { ensurePostgres } from '../support/postgres.ts'
import { BACKENDS, type StoreName } from './backends.ts'
import { simulate } from './simulate.ts'

/** `npm run sim -- [--seed N] [--steps N] [--runs N] [--store NAME]` */
const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    steps: { type: 'string', default: '1000' },
    runs: { type: 'string' },
    store: { type: 'string', default: 'memory' },
  },
})

const store = Object.keys(BACKENDS).find((name) => name === values.store) as StoreName | undefined
if (!store) throw new Error(`--store is one of ${Object.keys(BACKENDS).join(', ')}`)
const endPostgres = store === 'postgres' ? await ensurePostgres() : undefined
const first = Number(values.seed ?? Date.now() % 1_000_000)
const steps = Number(values.steps)
// A seed alone repeats that one run.
const runs = Number(values.runs ?? (values.seed === undefined ? 100 : 1))
const counts = new Map<string, number>()
const began = performance.now()

let whole = true
for (let i = 0; i < runs && whole; i += 1) whole = await runOnce(first + i, i)
removeTemporaryFolders()
await endPostgres?.()
if (whole) report()
else process.exitCode = 1

async function runOnce(seed: number, i: number): Promise<boolean> {
  try {
    for (const [key, n] of await simulate({ seed, steps, store: store! })) {
      counts.set(key, (counts.get(key) ?? 0) + n)
    }
  } catch (error) {
    process.stderr.write(`\n${error instanceof Error ? error.stack : String(error)}\n`)
    return false
  }
  process.stdout.write(`\rseed ${seed}: ${steps} steps, run ${i + 1} of ${runs}`)
  return true
}

function report(): void {
  const seconds = (performance.now() - began) / 1000
  process.stdout.write(`\n${runs * steps} steps in ${seconds.toFixed(1)} s, nothing broken\n`)
  for (const [key, n] of [...counts].toSorted(([a], [b]) => (a < b ? -1 : 1))) {
    process.stdout.write(`  ${key}: ${n}\n`)
  }
}
