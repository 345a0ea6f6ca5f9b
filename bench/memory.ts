import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { IndexedMeaning } from '../src/daemon/embedding/meaning.ts'
import { LocalProvider } from '../src/daemon/embedding/local.ts'
import { NoteKeeper } from '../src/daemon/embedding/keeper.ts'
import { call } from '../src/operations/call.ts'
import { operationNamed } from '../src/operations/registry.ts'
import { placeOf } from '../src/stores/open.ts'
import type { Store } from '../src/stores/writer/store.ts'
import { callerOf, openStore } from './claims.ts'
import { fillNotes, noteOf, queryOf, WORDS_PROVIDER } from './memory_notes.ts'
import { type Goal, median, printGoals, printTable, progress, whole } from './report.ts'

const SIZES = [10_000, 100_000] as const
const SIZES_QUICK = [2_000, 20_000] as const
const SEARCHES = 400
const SEARCHES_QUICK = 150
const CALLERS = 64
const PUTS = 2_000
const ROUNDS = 3
const SEARCH_RATIO_MAX = 3
const PUT_RATIO_MIN = 0.8

interface Spread {
  p50: number
  p99: number
}

interface Sized {
  notes: number
  puts_per_second: number
  get_ms: Spread
  search_ms: Record<'text' | 'meaning' | 'fused', Spread>
  index_ms: number
  index_mb: number
}

const ask = (store: Store, name: string, input: object) =>
  call(store, operationNamed.get(name)!, input as Record<string, unknown>, callerOf(1))

function spreadOf(times: number[]): Spread {
  const sorted = times.toSorted((a, b) => a - b)
  return { p50: median(sorted), p99: sorted[Math.floor(sorted.length * 0.99)]! }
}

interface Filled extends Pick<Sized, 'notes' | 'puts_per_second' | 'index_ms' | 'index_mb'> {
  store: Store
  meaning: IndexedMeaning
}

/** A store with so many notes, and their vectors in memory. */
async function fill(path: string, notes: number): Promise<Filled> {
  const store = openStore(path)
  progress(`putting ${whole(notes)} notes`)
  const begun = performance.now()
  await fillNotes(store, 0, notes)
  const puts_per_second = notes / ((performance.now() - begun) / 1000)
  progress(`building the index of ${whole(notes)}`)
  const before = process.memoryUsage().rss
  const meaning = new IndexedMeaning(store, WORDS_PROVIDER)
  store.meaning = meaning
  const from = performance.now()
  await meaning.ready()
  const index_ms = performance.now() - from
  const index_mb = (process.memoryUsage().rss - before) / 2 ** 20
  return { store, meaning, notes, puts_per_second, index_ms, index_mb }
}

type Step = (filled: Filled, i: number) => Promise<unknown>

/** The same for each, in turn: what else this machine does is shared by all. */
async function inTurn(all: Filled[], count: number, step: Step): Promise<Spread[]> {
  const times: number[][] = all.map(() => [])
  // The first ones warm up the compiler.
  for (let i = -20; i < count; i += 1) {
    for (const [which, each] of all.entries()) {
      const begun = performance.now()
      await step(each, i)
      if (i >= 0) times[which]!.push(performance.now() - begun)
    }
  }
  return times.map(spreadOf)
}

async function measureAll(all: Filled[], searches: number): Promise<Sized[]> {
  progress('getting and searching')
  const get_ms = await inTurn(all, searches, ({ store, notes }, i) => {
    const n = Math.abs(i * 37) % notes
    return ask(store, 'memory.get', { scope: `project:p${n % 20}`, key: `note-${n}` })
  })
  const search = (mode: string) =>
    inTurn(all, searches, ({ store }, i) => {
      return ask(store, 'memory.search', { query: queryOf(i + 100), mode })
    })
  const [text, meaning, fused] = [
    await search('text'),
    await search('meaning'),
    await search('fused'),
  ]
  return all.map(({ notes, puts_per_second, index_ms, index_mb }, i) => {
    const search_ms = { text: text[i]!, meaning: meaning[i]!, fused: fused[i]! }
    return { notes, puts_per_second, index_ms, index_mb, get_ms: get_ms[i]!, search_ms }
  })
}

async function putRate(store: Store, from: number): Promise<number> {
  const begun = performance.now()
  let next = from
  const put = async () => {
    while (next < from + PUTS) {
      const n = next++
      await ask(store, 'memory.put', { key: `put-${n}`, content: noteOf(n) })
    }
  }
  await Promise.all(Array.from({ length: CALLERS }, put))
  return PUTS / ((performance.now() - begun) / 1000)
}

/** Puts while notes are embedded behind them by the real model, in turn with puts alone. */
async function measureBehind(folder: string, rounds: number) {
  const rates = { off: [] as number[], on: [] as number[] }
  const place = placeOf({ LEASEHOLD_DIR: folder }, folder)
  const file = pathToFileURL(resolve('dist/embedder.mjs'))
  for (let round = 0; round <= rounds; round += 1) {
    for (const kind of ['off', 'on'] as const) {
      progress(`round ${round} of ${rounds}: puts with embedding ${kind}`)
      const store = openStore(join(folder, `puts-${round}-${kind}.db`))
      const open = async () => new LocalProvider(undefined, file)
      const keeper = new NoteKeeper(store, { place, env: {}, say: () => undefined, open })
      if (kind === 'on') {
        await keeper.start()
        await store.meaning!.search('warm up', undefined, 1)
      }
      const rate = await putRate(store, round * PUTS)
      if (round > 0) rates[kind].push(rate)
      await keeper.stop()
      await store.close()
    }
  }
  return { off: median(rates.off), on: median(rates.on) }
}

/** How long the model takes over one query, in its worker thread. */
async function measureModel(): Promise<Spread & { load_ms: number }> {
  const model = new LocalProvider(undefined, pathToFileURL(resolve('dist/embedder.mjs')))
  const begun = performance.now()
  await model.embed(['load'])
  const load_ms = performance.now() - begun
  const times: number[] = []
  for (let i = 0; i < 60; i += 1) {
    const from = performance.now()
    await model.embed([`a question about the build ${i}`], true)
    times.push(performance.now() - from)
  }
  const spread = spreadOf(times)
  await model.close()
  return { ...spread, load_ms }
}

/** Notes at two sizes, and puts with and without what is done behind them. */
export async function measureMemory(quick: boolean) {
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-bench-'))
  try {
    const all: Filled[] = []
    for (const notes of quick ? SIZES_QUICK : SIZES) {
      all.push(await fill(join(folder, `notes-${notes}.db`), notes))
    }
    const sizes = await measureAll(all, quick ? SEARCHES_QUICK : SEARCHES)
    for (const { store, meaning } of all) {
      meaning.stop()
      await store.close()
    }
    const puts = await measureBehind(folder, quick ? 1 : ROUNDS)
    const model = await measureModel()
    progress('')
    return { sizes, puts, model, goals: goalsOf(sizes, puts) }
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function goalsOf([few, many]: Sized[], puts: { off: number; on: number }): Goal[] {
  const modes = ['text', 'meaning', 'fused'] as const
  const searches = modes.map((mode): Goal => {
    const ratio = many!.search_ms[mode].p99 / few!.search_ms[mode].p99
    const name = `search by ${mode}, p99 at ten times the notes`
    return { name, ratio, goal: `≤ ${SEARCH_RATIO_MAX}×`, met: ratio <= SEARCH_RATIO_MAX }
  })
  const ratio = puts.on / puts.off
  const goal = `≥ ${PUT_RATIO_MIN}×`
  const put = { name: 'puts while notes are embedded', ratio, goal, met: ratio >= PUT_RATIO_MIN }
  return [...searches, put]
}

export function printMemory(measured: Awaited<ReturnType<typeof measureMemory>>): void {
  const { sizes, puts, model, goals } = measured
  const ms = ({ p50, p99 }: Spread) => `${p50.toFixed(1)} / ${p99.toFixed(1)} ms`
  printTable([
    ['notes', 'puts/s', 'get', 'text', 'meaning', 'fused (p50 / p99)', 'index'],
    ...sizes.map(({ notes, puts_per_second, get_ms, search_ms, index_ms, index_mb }) => [
      whole(notes),
      whole(puts_per_second),
      ms(get_ms),
      ms(search_ms.text),
      ms(search_ms.meaning),
      ms(search_ms.fused),
      `${(index_ms / 1000).toFixed(1)} s, ${whole(index_mb)} MB`,
    ]),
  ])
  console.log(`  puts/s alone ${whole(puts.off)}, while embedding ${whole(puts.on)}`)
  console.log(`  the model: loaded in ${whole(model.load_ms)} ms, a query ${ms(model)}`)
  printGoals(goals)
}
