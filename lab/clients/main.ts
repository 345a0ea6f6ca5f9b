import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { parseArgs } from 'node:util'
import { clientsNamed, install, usualFolder } from './install.ts'
import { tryCost } from './cost.ts'
import { tryOrdinary } from './ordinary.ts'
import { writeResults } from './page.ts'
import type { Client } from './client.ts'
import { tryPairs, tryResume } from './together.ts'
import { tryNotices } from './notices.ts'
import { tryQueue } from './queue.ts'
import { tryShared } from './shared.ts'
import { tellStory } from './story.ts'
import { type Bench, type Cells, tryEnds, tryKill, tryOwn, tryPlugin, tryWrites } from './trials.ts'

const HELP = `npm run clients -- [--dir FOLDER] [--client KIND]… [--only TRIAL]… [--rounds N]
                   [--seed N] [--keep] [--dry]

Installs the real programs of coding agents into a folder of their own, packs this checkout,
and drives the programs by a scripted model on loopback. Results go to docs/clients.md and
test/fixtures/clients.

  --dir      where the programs are kept; else leasehold-clients in the cache of this login
  --client   claude, codex, …; all unless named
  --only     writes, notices, own, kill, ends, shared, plugin, queue, ordinary, cost, pairs, resume,
             story; all unless named
  --rounds   of resume, and tellings of the story (3)
  --seed     of the first telling (1)
  --keep     leaves the folders of the trials
  --dry      prints what was seen, and writes nothing`

const { values } = parseArgs({
  options: {
    dir: { type: 'string' },
    client: { type: 'string', multiple: true },
    only: { type: 'string', multiple: true },
    rounds: { type: 'string', default: '3' },
    seed: { type: 'string', default: '1' },
    keep: { type: 'boolean', default: false },
    dry: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

/** Trials that give cells of a client's column. */
const TRIALS = {
  ...{ writes: tryWrites, notices: tryNotices, own: tryOwn },
  ...{ kill: tryKill, ends: tryEnds, shared: tryShared, plugin: tryPlugin },
  ...{ queue: tryQueue, ordinary: tryOrdinary, cost: tryCost },
}
const isWanted = (trial: string) => values.only === undefined || values.only.includes(trial)
const faults: string[] = []

async function attempt<T>(what: string, work: () => Promise<T>): Promise<T | undefined> {
  const began = performance.now()
  try {
    const found = await work()
    const seconds = ((performance.now() - began) / 1000).toFixed(1)
    console.log(`${what} (${seconds} s): ${JSON.stringify(found)}`)
    return found
  } catch (error) {
    faults.push(what)
    console.log(`  FAILS ${what}: ${String(error)}`)
    return undefined
  }
}

async function tryClient(bench: Bench, client: Client): Promise<void> {
  const cells: Cells = {}
  for (const [name, trial] of Object.entries(TRIALS)) {
    if (!isWanted(name)) continue
    await attempt(`${client.kind} ${name}`, async () => {
      await trial(bench, client, cells)
      return cells
    })
  }
  if (values.dry || Object.keys(cells).length === 0) return
  writeResults(({ clients }) => {
    const { kind, name, version } = client
    const before = clients[kind]?.version === version ? clients[kind].cells : {}
    clients[kind] = { name, version, cells: { ...before, ...cells } }
  })
}

async function tryTogether(bench: Bench, clients: Client[]): Promise<void> {
  for (const first of isWanted('pairs') ? clients : []) {
    const found = await attempt(`pairs ${first.kind}`, () => tryPairs(bench, first, clients))
    if (found && !values.dry) {
      writeResults(({ pairs }) => void (pairs[first.kind] = { ...pairs[first.kind], ...found }))
    }
  }
  const rounds = Number(values.rounds)
  const named = isWanted('resume') ? clients.filter((each) => each.named) : []
  for (const [client, other] of named.flatMap((a) => named.map((b) => [a, b] as const))) {
    const between = `${client.kind}/${other.kind}`
    const lost = await attempt(`resume ${between}`, () => tryResume(bench, client, other, rounds))
    if (lost === undefined || values.dry) continue
    writeResults(({ resumes }) => void (resumes[between] = { rounds, lost }))
  }
}

async function tellStories(bench: Bench, clients: Client[]): Promise<void> {
  const first = Number(values.seed)
  for (let seed = first; seed < first + Number(values.rounds); seed += 1) {
    const told = await attempt(`story ${seed}`, () => tellStory(bench, clients, seed))
    if (told === undefined || values.dry) continue
    const { kept, lost, own } = told
    writeResults((results) => {
      results.stories = { ...results.stories, [seed]: { kept, lost: lost.length + own.length } }
    })
  }
}

if (values.help) {
  console.log(HELP)
  process.exit(0)
}
const folder = mkdtempSync(join(tmpdir(), 'leasehold-clients-'))
try {
  const dir = values.dir === undefined ? usualFolder() : resolve(values.dir)
  mkdirSync(dir, { recursive: true })
  const { bin, own, clients, missing } = install(dir, folder, clientsNamed(values.client))
  for (const [kind, why] of missing) console.log(`${kind} is left out: ${why}`)
  const bench = { folder, bin, plugins: own, keepsRecordings: !values.dry }
  for (const client of clients) await tryClient(bench, client)
  await tryTogether(bench, clients)
  if (isWanted('story')) await tellStories(bench, clients)
} finally {
  if (values.keep) console.log(`kept: ${folder}`)
  else rmSync(folder, { recursive: true, force: true })
}
if (faults.length > 0) console.log(`did not work: ${faults.join(', ')}`)
process.exit(faults.length > 0 ? 1 : 0)
