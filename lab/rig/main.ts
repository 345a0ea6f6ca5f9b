import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import build from '../../test/build.ts'
import { Counts } from './counts.ts'
import { nowMs } from './history.ts'
import { playCases, playWorlds } from './play.ts'
import { sweepUp } from './sweeping.ts'
import { summaryOf, tableOf, writeDocs } from './summary.ts'

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '5' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    only: { type: 'string' },
    json: { type: 'string' },
    'write-docs': { type: 'string' },
    keep: { type: 'boolean', default: false },
    'no-build': { type: 'boolean', default: false },
  },
})

const seed = Number(values.seed)
const minutes = Number(values.minutes)
const folder = mkdtempSync(join(tmpdir(), 'leasehold-rig-'))
if (!values['no-build']) await build()
console.log(`rig: seed ${seed}, ${minutes} min, in ${folder}`)

for (const name of ['SIGINT', 'SIGTERM', 'uncaughtException'] as const) {
  process.on(name, (why: unknown) => {
    console.error(why)
    sweepUp(folder)
    process.exit(1)
  })
}

const counts = new Counts()
const begun = nowMs()
const told = setInterval(() => console.log(progress()), 10_000)
mkdirSync(folder, { recursive: true })
await playCases(folder, counts, values.only)
const worlds = await playWorlds(seed, begun + minutes * 60_000, folder, counts, values.only)
clearInterval(told)

const summary = summaryOf(counts, { seed, minutes: (nowMs() - begun) / 60_000, worlds })
console.log(tableOf(summary))
for (const { where, check, says } of summary.violations.slice(0, 60)) {
  console.log(`VIOLATION in ${where}: ${check}: ${says}`)
}
const json = values.json ?? join(folder, 'summary.json')
writeFileSync(json, JSON.stringify(summary, null, 2))
if (values['write-docs']) writeDocs(values['write-docs'], summary)
sweepUp(folder)
const isBroken = summary.violations.length > 0
if (isBroken || values.keep) console.log(`kept: ${folder}`)
else rmSync(folder, { recursive: true, force: true })
process.exit(isBroken ? 1 : 0)

function progress(): string {
  const s = Math.round((nowMs() - begun) / 1000)
  const [kills, pauses] = [Counts.sum(counts.kills), Counts.sum(counts.pauses)]
  const found = `${counts.violations.length} violations`
  return `rig: ${s} s, ${counts.now}, ${kills} kills, ${pauses} pauses, ${found}`
}
