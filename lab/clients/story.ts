import { execFileSync } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { Random } from '../../test/simulation/random.ts'
import type { Client } from './client.ts'
import type { Step } from './model.ts'
import type { Bench } from './trials.ts'
import type { Call } from './wires.ts'
import { held, type Running, until, World } from './world.ts'

/** What one telling of the story came to. */
export interface Told {
  /** Edits that a client's model was told were made. */
  kept: number
  lost: string[]
  refused: number
  /** An agent was kept from what it had itself. */
  own: string[]
  saved: number
  done: number
  /** From the last agent's end in a round until nobody has a file, in the slowest. */
  free_seconds: number
  seconds: number
}

const FILES = ['a', 'b', 'c', 'd', 'e'].map((name) => `${name}.txt`)
const TASKS = 12
/** Reservations end when their agent is silent for so long. */
const TTL_SECONDS = 20
const TURN_MS = 600_000

/** A call, and the word that is in the tree when it was answered well. */
interface Act {
  call: Call
  word?: string
  /** Throws away what its own agent has not committed, which is that agent's to do. */
  discards?: boolean
}

const DISCARDS = /--hard|checkout -- |restore|clean/

/** Commands of git that make, take back, put aside and throw away, of one's own and of others'. */
const GITS = [
  'git add -A && git commit -qm All',
  'git commit -qam Mine',
  'git stash',
  'git stash && git stash pop',
  'git reset -q --hard',
  'git checkout -- .',
  'git restore .',
  'git clean -fdq',
  'git checkout -q -b side-NAME && git checkout -q main',
  'git mv -k a.txt moved-NAME.txt',
  'git log --oneline -3',
]

/** Takes trailing blanks away, in every file, as formatters do. */
const FORMAT = "sed -i 's/ *$//' *.txt"

class Story {
  readonly #random: Random
  /** Scripts, and which client plays each. */
  readonly #played = new Map<string, { acts: Act[]; client: Client }>()
  #words = 0

  constructor(
    readonly world: World,
    seed: number,
  ) {
    this.#random = new Random(seed)
  }

  /** One task, from its claim to done: by MCP, by edits, by the shell, by git. */
  #task(client: Client, name: string): Act[] {
    const words = client.words(this.world)
    const id = `task-${this.#played.size + 1}`
    const acts: Act[] = [{ call: words.mcp('claim_task', { task_id: id }) }]
    for (let i = 0; i < 4; i += 1) {
      const file = this.#random.pick(FILES)
      const word = `word-${name}-${(this.#words += 1)}-end`
      const how = this.#random.below(4)
      if (how < 2) {
        acts.push(
          { call: words.read(file) },
          { call: words.edit(file, 'last', `${word}\nlast`), word },
        )
      } else if (how === 2) acts.push({ call: words.shell(`echo ${word} >> ${file}`), word })
      else acts.push({ call: words.write(`new-${name}-${i}.txt`, `${word}\n`), word })
      const git = this.#random.pick([...GITS, FORMAT]).replaceAll('NAME', `${name}${i}`)
      if (this.#random.below(2) === 0) {
        acts.push({ call: words.shell(git), discards: DISCARDS.test(git) })
      }
    }
    acts.push({ call: words.shell('git add -A && git commit -qm Done') })
    const says = this.#random.pick(['review', 'done'])
    acts.push({ call: words.mcp('update_task_status', { task_id: id, status: says }) })
    return acts
  }

  /** The acts as steps, with one that is held back before act `stop`. */
  begin(client: Client, name: string, how: (prompt: string) => string[], stop?: number) {
    const acts = this.#task(client, name)
    this.#played.set(name, { acts, client })
    const steps: Step[] = acts.map(({ call }) => ({ calls: [call] }))
    const last = { text: 'Done.' }
    const { step, gate } = held(steps[stop ?? 0] ?? last)
    if (stop !== undefined) steps[stop] = step
    const running = this.world.start(client, how(this.world.script(name, [...steps, last])))
    return { running, gate }
  }

  /** What the models of all scripts were told of their calls. */
  said() {
    return [...this.#played].flatMap(([name, { acts }]) => {
      return acts.flatMap(({ word, discards = false }, step) => {
        const result = this.world.model.result(name, step)
        return result === undefined ? [] : [{ name, word, discards, result }]
      })
    })
  }

  /** All calls, as their models learned of them, oldest first. */
  timeline(): string {
    const { asked } = this.world.model
    return asked
      .flatMap(({ script, step, at }) => {
        const act = this.#played.get(script)?.acts[step - 1]
        if (!act) return []
        const input = JSON.stringify(act.call.input).slice(0, 300)
        return `${at} ${script} ${input}: ${this.world.model.result(script, step - 1)}`
      })
      .join('\n')
  }

  /** Who the agent of a script is, as its brief says. */
  idOf(name: string): string | undefined {
    const first = this.world.model.asked.find((each) => each.script === name)
    return /You are ([a-z]+:[\w-]+)/.exec(first?.body ?? '')?.[1]
  }
}

/** What is only told has nothing to be done next. */
const isRefused = (text: string) => /Leasehold: .*Next: /s.test(text)
const FAILED = /error|not found|could not|failed|modified since|unexpectedly|must read/i
const isMade = (text: string) => !isRefused(text) && !FAILED.test(text)

/** All that is in the tree, in commits, stashes and what was saved. */
function everything(world: World): string {
  const objects = world.run('git', 'rev-list', '--objects', '--all', '--reflog').split('\n')
  const input = objects.map((line) => line.split(' ')[0]).join('\n')
  const options = { cwd: world.repo, env: world.env, input, maxBuffer: 2 ** 28 }
  const kept = execFileSync('git', ['cat-file', '--batch'], options)
  const files = readdirSync(world.repo, { withFileTypes: true }).filter((each) => each.isFile())
  return [String(kept), ...files.map(({ name }) => readFileSync(join(world.repo, name)))].join('\n')
}

const signal = ({ child }: Running, name: NodeJS.Signals) => process.kill(-child.pid!, name)

/**
 * Twelve tasks over files that overlap, by all clients at once in one checkout: claimed by MCP,
 * edited, written by the shell, formatted, committed, put aside and thrown away. In each of three
 * rounds one is killed, or stopped past the end of its reservations. What an agent was told that it
 * has written has to be somewhere in the end.
 */
export async function tellStory(
  { folder, bin }: Bench,
  clients: Client[],
  seed: number,
): Promise<Told> {
  const began = performance.now()
  const files = Object.fromEntries(FILES.map((file) => [file, 'first\nlast\n']))
  const world = await World.make(join(folder, `story-${seed}`), bin, clients, files)
  const story = new Story(world, seed)
  const random = new Random(seed + 1000)
  const sessions = new Map<string, string>()
  try {
    const config = { hooks: { ttl_seconds: TTL_SECONDS } }
    world.write('.leasehold/config.json', JSON.stringify(config))
    for (let i = 1; i <= TASKS; i += 1) {
      world.run('leasehold', 'task', 'add', `Task ${i}`, '--id', `task-${i}`)
    }
    let free_seconds = 0
    for (let round = 0, left = TASKS; left > 0; round += 1, left -= clients.length) {
      // Who has a task in the last round, and who not, is another one each time.
      const some = clients.map((_, i) => clients[(i + seed) % clients.length]!).slice(0, left)
      const unlucky = random.below(some.length)
      const trouble = (['kill', 'pause'] as const)[round] ?? random.pick(['kill', 'pause'])
      const runs = some.map((client, i) => {
        const name = `${client.kind}${round}`
        const how = (prompt: string) => goesOn(client, sessions, prompt)
        const begun = story.begin(client, name, how, i === unlucky ? 5 : undefined)
        return { client, name, running: begun.running, gate: begun.gate }
      })
      const { running, gate } = runs[unlucky]!
      await until('it comes to its gate', () => gate.isReached || running.isOver, TURN_MS)
      if (trouble === 'kill') running.kill()
      else {
        signal(running, 'SIGSTOP')
        await until('', () => false, (TTL_SECONDS + 5) * 1000).catch(() => undefined)
        signal(running, 'SIGCONT')
      }
      gate.open()
      await Promise.all(runs.map((each) => each.running.ended))
      for (const { client, running: over } of runs) {
        const id = client.named?.idIn(over.out)
        if (id !== undefined) sessions.set(client.kind, id)
      }
      const over = performance.now()
      await until('nobody has a file', () => world.leases().length === 0)
      free_seconds = Math.max(free_seconds, (performance.now() - over) / 1000)
    }
    const all = everything(world)
    const said = story.said()
    const isOwn = ({ name }: { name: string }, at: number) => {
      const later = said.slice(at).filter(({ discards, result }) => discards && isMade(result))
      return later.some((each) => story.idOf(each.name) === story.idOf(name))
    }
    const made = said.filter((each, at) => {
      return each.word !== undefined && isMade(each.result) && !isOwn(each, at)
    })
    const refused = said.filter(({ result }) => isRefused(result))
    const own = refused.filter(({ name, result }) => {
      const id = story.idOf(name)
      return id !== undefined && result.includes(`reserved by ${id} `)
    })
    const refs = world.run('git', 'for-each-ref', 'refs/leasehold/salvage').split('\n')
    const tasks = JSON.parse(world.run('leasehold', 'task', 'list', '--json')) as {
      items: { status: string }[]
    }
    const lost = made.flatMap(({ word, result }) => {
      return all.includes(word!) ? [] : [`${word}: ${result}`]
    })
    if (lost.length > 0) console.log(story.timeline())
    return {
      kept: made.length,
      lost,
      refused: refused.length,
      own: own.map(({ name, result }) => `${name}: ${result}`),
      saved: refs.filter(Boolean).length,
      done: tasks.items.filter(({ status }) => status === 'done' || status === 'review').length,
      free_seconds: Math.round(free_seconds * 10) / 10,
      seconds: Math.round((performance.now() - began) / 1000),
    }
  } finally {
    await world.end()
  }
}

/** Clients that can resume go on with their first conversation. */
function goesOn(client: Client, sessions: Map<string, string>, prompt: string): string[] {
  const { kind, named, once } = client
  if (!named) return once(prompt)
  const known = sessions.get(kind)
  if (known !== undefined) return named.resume(prompt, known)
  const id = randomUUID()
  // Codex chooses its own, and prints it.
  if (kind === 'claude') sessions.set(kind, id)
  return named.begin(prompt, id)
}
