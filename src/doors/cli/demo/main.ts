import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pc from 'picocolors'
import { connect } from '../../../client/connect.ts'
import { Refusal } from '../../../core/refusal.ts'
import { VERSION } from '../../../machine/version.ts'
import { placeOf } from '../../../stores/open.ts'
import { print } from '../show/show.ts'
import { plainEnvironment, runHalf, type Scene, type Tally } from './half.ts'
import { Picture } from './picture.ts'
import { commit, demoTasks, makeRepository, saveFile, TODO } from './repository.ts'
import { todoList } from './ways.ts'
import type { DemoTask, Way } from './words.ts'

export interface DemoOptions {
  seconds: string
  agents: string
  keep?: boolean
  json?: boolean
}

/** More than agents can do in the time they have. */
const TASKS_PER_SECOND = 4
/** Created side by side: as many as share a commit. */
const CREATED_AT_ONCE = 64
const INTERRUPTED = 130

/** The same agents on the same tasks, twice; then what became of their edits. */
export async function demo(options: DemoOptions): Promise<void> {
  const seconds = numberOf('--seconds', options.seconds, 1, 600)
  const agents = numberOf('--agents', options.agents, 2, 32)
  const folder = mkdtempSync(join(tmpdir(), 'leasehold-demo-'))
  const stop = new AbortController()
  const interrupt = () => stop.abort(new Error('interrupted'))
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.once(signal, interrupt)
  const picture = new Picture(process.stderr, options.json ?? false)
  picture.say(
    `${agents} processes edit 12 files for ${seconds} s, twice. Nothing of yours is used.`,
  )
  try {
    const halves = { folder, agents, seconds, picture, signal: stop.signal }
    const without = await half('without', halves)
    const withIt = await half('with', halves)
    tell({ seconds, agents, without, with: withIt }, options, folder)
  } catch (error) {
    if (!stop.signal.aborted) throw error
    process.exitCode = INTERRUPTED
  } finally {
    picture.end()
    // A git that was stopped may still be closing its files.
    if (!options.keep) rmSync(folder, { recursive: true, force: true, maxRetries: 10 })
  }
}

function numberOf(option: string, text: string, least: number, most: number): number {
  const number = Number(text)
  if (Number.isInteger(number) && number >= least && number <= most) return number
  throw new Refusal('invalid', `${option} is not a number from ${least} to ${most}: ${text}`, {
    next: `For example: leasehold demo ${option} ${Math.min(most, 8)}`,
  })
}

interface Halves {
  folder: string
  agents: number
  seconds: number
  picture: Picture
  signal: AbortSignal
}

const TITLES: Record<Way, string> = {
  without: 'without Leasehold',
  with: 'with Leasehold   ',
}

async function half(
  way: Way,
  { folder, agents, seconds, picture, signal }: Halves,
): Promise<Tally> {
  picture.begin(TITLES[way])
  const repository = join(folder, way)
  const state = join(folder, 'state')
  mkdirSync(repository)
  const tasks = demoTasks(agents * seconds * TASKS_PER_SECOND)
  saveFile(join(repository, TODO), todoList(way === 'without' ? tasks : []), 'demo')
  makeRepository(repository)
  const orders = Array.from({ length: agents }, (_, i) => {
    return { way, agent: `agent-${i + 1}`, repository, state }
  })
  const duration_ms = seconds * 1000
  const show = (scene: Scene) => picture.show(TITLES[way], duration_ms, scene)
  const run = () => runHalf({ orders, duration_ms, signal, show })
  const tally = way === 'with' ? await served(state, tasks, run, signal) : await run()
  picture.end()
  const { edits_made, edits_lost } = tally
  picture.say(`${TITLES[way]}  ${edits_made} edits made, ${edits_lost} of them lost`)
  commit(repository, `What ${agents} agents have left`)
  return tally
}

/** With a server on a store of its own, as `leasehold up` would start it. */
async function served(
  state: string,
  tasks: DemoTask[],
  run: () => Promise<Tally>,
  signal: AbortSignal,
): Promise<Tally> {
  const { serve } = await import('../../../daemon/main.ts')
  const env = { ...plainEnvironment(), LEASEHOLD_DIR: state }
  const server = await serve(placeOf(env, state), 0, VERSION)
  const ends = [() => server.stop()]
  try {
    const client = await connect({ dir: state, store: '', agent: 'demo' })
    ends.push(() => client.close())
    for (let at = 0; at < tasks.length; at += CREATED_AT_ONCE) {
      signal.throwIfAborted()
      const some = tasks.slice(at, at + CREATED_AT_ONCE)
      await Promise.all(some.map(({ file }) => client.task.create({ title: file, labels: [file] })))
    }
    return await run()
  } finally {
    for (const end of ends.toReversed()) await end()
  }
}

interface Outcome {
  seconds: number
  agents: number
  without: Tally
  with: Tally
}

function tell(outcome: Outcome, { json, keep }: DemoOptions, folder: string): void {
  const { without, with: kept } = outcome
  const lost = kept.edits_lost + kept.tasks_done_twice
  if (lost > 0) process.exitCode = 1
  if (json) {
    print(JSON.stringify({ ...outcome, folder: keep ? folder : null }))
    return
  }
  const row = (name: string, one: number | string, other: number | string) =>
    `${name.padEnd(20)} ${String(one).padStart(9)} ${String(other).padStart(16)}`
  const bad = (count: number, width: number) =>
    count > 0 ? pc.red(String(count).padStart(width)) : pc.green('0'.padStart(width))
  print(
    [
      '',
      pc.dim(row('', 'without', 'with Leasehold')),
      row('edits made', without.edits_made, kept.edits_made),
      row('of them kept', shareKept(without), shareKept(kept)),
      row('edits lost', bad(without.edits_lost, 9), bad(kept.edits_lost, 16)),
      row('tasks done twice', bad(without.tasks_done_twice, 9), bad(kept.tasks_done_twice, 16)),
      row('conflicts prevented', '-', kept.conflicts_prevented),
      '',
      'An edit is lost when an agent was told that it is written, and it is in no file at the end.',
      ...(keep ? [`The repositories are in ${folder}`] : []),
      `Next, in a repository of yours: ${pc.bold('leasehold init')}`,
    ].join('\n'),
  )
}

/** Both halves made as many as they could: what counts is how many of these are left. */
const shareKept = ({ edits_made, edits_lost }: Tally) =>
  edits_made === 0 ? '-' : `${Math.floor((100 * (edits_made - edits_lost)) / edits_made)} %`
