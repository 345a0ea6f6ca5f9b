import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, readdirSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { build } from 'esbuild'

const WORKLOADS: Record<string, string> = {
  core: 'claim + complete per second on SQLite, beside plainjob; and the cold start',
  http: 'claims per second over HTTP, beside an echo behind the same checks',
  queue: 'claims from the queue, few and many users; and how long a dispatch takes',
  postgres: 'claim + complete per second on PostgreSQL, beside graphile-worker and pg-boss',
  costs: 'what a claim and its completion cost on PostgreSQL, in counts by table',
  sse: '10,000 listeners: how late events come, what they cost; and an idle daemon',
  memory: 'shared notes: put, get and search at 10,000 and 100,000; puts while embedding',
  scale: 'the arithmetic of docs/scale.md; no database',
  hook: 'how long a hook takes before an edit, beside bare node; what it costs the daemon',
  dashboard: 'what the dashboard costs: a first look, a busy store, and an idle one',
  cold_start: 'how long the command line takes to start, beside bare node',
}

const USAGE = `Measures Leasehold on this machine.

  npm run bench -- WORKLOAD [--quick] [--json FILE]

${Object.entries(WORKLOADS)
  .map(([name, what]) => `  ${name.padEnd(12)}${what}`)
  .join('\n')}

  --quick       fewer rounds: a look, not a result
  --json FILE   write the numbers there too
`

/** Bundled as the program ships: the same code ran about a sixth slower through tsx. */
async function bundle(): Promise<string> {
  const folder = resolve('node_modules/.cache/leasehold-bench')
  mkdirSync(folder, { recursive: true })
  const outfile = resolve(folder, 'run.mjs')
  await build({
    entryPoints: [fileURLToPath(new URL('run.ts', import.meta.url))],
    outfile,
    bundle: true,
    platform: 'node',
    target: 'node20.19',
    format: 'esm',
    packages: 'external',
    define: { LEASEHOLD_TEST_BUILD: 'false' },
    logLevel: 'warning',
  })
  for (const from of ['src/stores/sqlite', 'src/stores/postgres']) {
    for (const name of readdirSync(from).filter((file) => file.endsWith('.sql'))) {
      copyFileSync(`${from}/${name}`, resolve(folder, name))
    }
  }
  return outfile
}

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { quick: { type: 'boolean' }, json: { type: 'string' }, help: { type: 'boolean' } },
  })
  const [workload = ''] = positionals
  if (values.help || !Object.hasOwn(WORKLOADS, workload)) {
    if (workload) console.error(`There is no workload ${workload}.\n`)
    console.log(USAGE)
    return values.help ? 0 : 2
  }
  const file = values.json === undefined ? '' : resolve(values.json)
  process.chdir(resolve(dirname(fileURLToPath(import.meta.url)), '..'))
  const args = [await bundle(), workload, String(values.quick ?? false), file]
  return spawnSync(process.execPath, args, { stdio: 'inherit' }).status ?? 1
}

try {
  process.exitCode = await main()
} catch (error) {
  console.error(`${error instanceof Error ? error.message : String(error)}\n\n${USAGE}`)
  process.exitCode = 2
}
