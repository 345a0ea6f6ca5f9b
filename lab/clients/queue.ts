import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Client } from './client.ts'
import { filesNamed } from './scene.ts'
import type { Bench, Cells } from './trials.ts'
import { stepsOf } from './trials.ts'
import { held, until, World } from './world.ts'

/** What of the story of a queue is told; each is a task that has to be landed in the end. */
export const TALES = ['plain', 'left', 'said', 'killed', 'lost', 'conflict', 'red'] as const
type Tale = (typeof TALES)[number]

/** How often each is told of one client. */
const TIMES: Record<Tale, number> = {
  ...{ plain: 4, left: 1, said: 1 },
  ...{ killed: 1, lost: 1, conflict: 1, red: 1 },
}
const STORY_MS = 240_000

interface Told {
  tale: Tale
  name: string
  landed: boolean
  why: string
}

/** As a person would have it who reads docs/queue.md and docs/landing.md, and nothing more. */
const configFor = ({ kind }: Client) => ({
  slots: { max: 2 },
  projects: { web: { agent: kind, land: { onto: 'main', check: ['sh', 'check.sh'], auto: true } } },
})
const CHECK = '! grep -rqs BROKEN --include=*.txt .\n'

/**
 * From the queue to a landed branch: `queue add`, and nothing more is done by hand. In some tales
 * the agent is killed, its runner is, somebody changes the same lines, or the check fails once.
 */
export async function tryQueue(
  { folder, bin }: Bench,
  client: Client,
  cells: Cells,
): Promise<void> {
  const tales = TALES.flatMap((tale) =>
    Array.from({ length: TIMES[tale] }, (_, i) => ({ tale, name: `${tale}${i}` })),
  )
  const files = { ...filesNamed(...tales.map(({ name }) => name)), 'check.sh': CHECK }
  const world = await World.make(join(folder, `queue-${client.kind}`), bin, [client], files)
  const told: Told[] = []
  try {
    world.write('.leasehold/config.json', JSON.stringify(configFor(client)))
    world.run('leasehold', 'config', 'approve', '--yes')
    Object.assign(world.env, client.env(world))
    await client.trust?.(world, world.env)
    world.run('leasehold', 'up', '--port', '0')
    for (const { tale, name } of tales) told.push(await tellOne(world, client, tale, name))
  } finally {
    await world.end()
  }
  const landed = told.filter((each) => each.landed).length
  for (const { name, why } of told.filter((each) => !each.landed)) {
    console.log(`  ${client.kind} ${name}: ${why}`)
  }
  cells.queue = `${landed} of ${told.length}`
}

async function tellOne(world: World, client: Client, tale: Tale, name: string): Promise<Told> {
  const file = `${name}.txt`
  const tree = `.leasehold/worktrees/web/${name}-1`
  const words = client.words({ repo: join(world.repo, tree), home: world.home, port: world.port })
  const texts = { plain: 'one\nB\nthree\n', red: 'one\nBROKEN\nthree\n' }
  const { step, gate } = held()
  const write = (text: string) => [
    words.read(file),
    ...(words.replace?.(file, text) ?? [words.write(file, text)]),
  ]
  const commit = words.shell(`git add ${file} && git commit -m 'Change ${file}'`)
  const says = (id: string, status: string) =>
    words.isAskedForOurs
      ? words.mcp('update_task_status', { task_id: name, status })
      : words.shell(`leasehold task status ${id} ${status}`)
  const review = says('$LEASEHOLD_TASK', 'review')
  const done = says(name, 'done')
  // In its worktree it has what it reserved itself, by its shell too.
  const own = ['add', 'check', 'release'].map((verb) => `leasehold reserve ${verb} own.txt`)
  const owns = words.isAskedForOurs ? [] : [words.shell(`${own.join(' && ')} && echo all-its-own`)]
  const first = tale === 'red' ? texts.red : texts.plain
  const isHeld = tale === 'killed' || tale === 'lost' || tale === 'conflict'
  const begun = [...write(first), ...(tale === 'left' ? [] : [commit])]
  const end = tale === 'said' ? stepsOf([...owns, review, done]) : []
  world.script(name, [...stepsOf(begun), ...(isHeld ? [step] : end), { text: `Did ${name}.` }])
  world.script(`${name}_again`, [...stepsOf([...write(texts.plain), commit]), { text: 'Again.' }])
  const prompt = `[play ${name}] Change the second line of ${file}.`
  const asked = ['queue', 'add', prompt, '--project', 'web', '--user', name, '--retries', '1']
  world.run('leasehold', ...asked, '--id', name)
  if (isHeld) {
    await until(`${name} begins`, () => gate.isReached, STORY_MS)
    if (tale === 'conflict') {
      world.write(file, 'one\nmain\nthree\n')
      world.run('git', 'commit', '-qm', `Change ${file} on main`, file)
    } else killOf(world, `${name}.1`, tale)
    gate.open()
  }
  let why = ''
  const landed = await until(`${name} lands`, () => ended(world, name), STORY_MS).catch(
    (error: Error) => ({ status: error.message, metadata: {} }),
  )
  const isThere = world.read(file) === texts.plain
  if (landed.status !== 'done' || !isThere) {
    why = `${landed.status} ${JSON.stringify(landed.metadata)} ${JSON.stringify(world.read(file))}`
    why += `\n${logOf(world, name)}`
  }
  if (tale === 'said') {
    const heard = end.map((_, n) => world.model.result(name, begun.length + n))
    console.log(`  ${client.kind} said: ${JSON.stringify(heard)}`)
    if (owns.length > 0 && !heard[0]?.includes('all-its-own')) why ||= `not its own: ${heard[0]}`
  }
  return { tale, name, landed: why === '', why }
}

function ended(world: World, id: string) {
  const task = JSON.parse(world.run('leasehold', 'task', 'show', id, '--json')) as {
    status: string
    metadata: object
  }
  return ['done', 'failed', 'cancelled'].includes(task.status) ? task : undefined
}

/** The group of the agent, or its runner, is gone at once. */
function killOf(world: World, run: string, tale: 'killed' | 'lost'): void {
  const meta = join(world.repo, '.leasehold/runs', run, 'meta.json')
  const { pid, runner_pid } = JSON.parse(readFileSync(meta, 'utf8')) as Record<string, number>
  process.kill(tale === 'killed' ? -pid! : runner_pid!, 'SIGKILL')
}

function logOf(world: World, id: string): string {
  return [1, 2]
    .map((n) => {
      const file = join(world.repo, '.leasehold/runs', `${id}.${n}`, 'output.log')
      return existsSync(file) ? `${n}: ${readFileSync(file, 'utf8').slice(-1500)}` : ''
    })
    .join('\n')
}
