import { join } from 'node:path'
import type { Client, Place } from './client.ts'
import { filesNamed } from './scene.ts'
import { type Bench, type Cells, stepsOf } from './trials.ts'
import { World } from './world.ts'

/** By the rule of thumb, as for the lists of tools in test/doors. */
const BYTES_PER_TOKEN = 4
const FILES = filesNamed('a', 'b', 'c')

/**
 * What Leasehold costs an agent: twelve calls in a repository with it and in one without, and how
 * much longer the request is in which the model reads all of them. That is the tools, the brief,
 * what AGENTS.md says, and what hooks and tools answer.
 */
export async function tryCost(bench: Bench, client: Client, cells: Cells): Promise<void> {
  const [without, with_] = [await read(bench, client, false), await read(bench, client, true)]
  for (const [what, bytes] of Object.entries(with_)) {
    console.log(`  ${client.kind} ${what}: ${bytes} bytes, ${without[what] ?? 0} without us`)
  }
  const tokens = (with_['all']! - without['all']!) / BYTES_PER_TOKEN
  cells.cost = `${(tokens / 1000).toFixed(1)} k`
}

async function read(
  { folder, bin }: Bench,
  client: Client,
  isSetUp: boolean,
): Promise<Record<string, number>> {
  // Paths stand in requests: they are of one length.
  const root = join(folder, `cost-${client.kind}-${isSetUp ? 'us' : 'no'}`)
  const world = await World.make(root, bin, [client], FILES, { isSetUp })
  try {
    if (isSetUp) {
      world.run('leasehold', 'task', 'add', 'Mend the roof', '--id', 'roof')
      world.run('leasehold', 'reserve', 'add', 'b.txt', '--agent', 'holder')
    }
    const words = client.words(world)
    // Without us nobody has our tools, and something else is asked instead.
    const mcp = isSetUp ? words.mcp : () => words.shell('true')
    const { loading } = client
    const calls = [
      ...(loading && isSetUp ? [loading.load(['claim_task', 'update_task_status'])] : []),
      mcp('claim_task', { task_id: 'roof' }),
      ...[words.read('a.txt'), words.edit('a.txt', 'two', 'A')],
      // Refused, and tried again by one who does not believe it.
      ...[words.read('b.txt'), words.edit('b.txt', 'two', 'A'), words.edit('b.txt', 'one', 'A')],
      ...[words.shell('ls'), words.edit('a.txt', 'one', 'A'), words.shell('git status --short')],
      ...[words.read('c.txt'), words.shell('git commit -qm Mend -- a.txt')],
      mcp('update_task_status', { task_id: 'roof', status: 'done' }),
    ]
    const env = (place: Place) => ({ ...client.env(place), ...loading?.env })
    const asUsual = { ...client, env }
    const out = await world.play(asUsual, 'cost', [...stepsOf(calls), { text: 'Done.' }])
    const last = world.model.asked.findLast(({ step }) => step === calls.length)
    if (!last) throw new Error(`not all was played: ${out.slice(-2000)}`)
    const { tools, ...rest } = JSON.parse(last.body) as { tools: object[] }
    const bytes = (part: unknown) => Buffer.byteLength(JSON.stringify(part))
    return { all: bytes({ ...rest, tools }), tools: bytes(tools) }
  } finally {
    await world.end()
  }
}
