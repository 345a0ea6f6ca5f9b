import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { Refusal } from '../../../core/refusal.ts'
import { linesIn } from './repository.ts'
import type { AgentOrders, FromAgent, ToAgent } from './words.ts'

/** What became of one half. */
export interface Tally {
  edits_made: number
  edits_lost: number
  tasks_done: number
  tasks_done_twice: number
  conflicts_prevented: number
}

/** What is going on right now. */
export interface Scene {
  elapsed_ms: number
  agents: { name: string; doing: string; edits: number }[]
  tally: () => Tally
}

interface Half {
  orders: AgentOrders[]
  duration_ms: number
  show: (scene: Scene) => void
  signal: AbortSignal
}

const SHOW_MS = 100
/** An agent that was told to stop finishes its edit first. */
const GRACE_MS = 10_000

/** Runs all agents side by side for a while, and counts what they say against what is there. */
export async function runHalf({ orders, duration_ms, show, signal }: Half): Promise<Tally> {
  const count = new Count(orders[0]!.repository)
  const agents = orders.map((each) => new Agent(each, count))
  try {
    await Promise.all(agents.map((agent) => agent.ready))
    const began_ms = performance.now()
    for (const agent of agents) agent.tell({ say: 'go' })
    const elapsed = () => performance.now() - began_ms
    while (elapsed() < duration_ms) {
      await pause(Math.min(SHOW_MS, duration_ms - elapsed()), signal)
      const failed = agents.find((agent) => agent.isGone)
      if (failed) throw broken(failed)
      show({ elapsed_ms: elapsed(), agents, tally: () => count.tally() })
    }
    for (const agent of agents) agent.tell({ say: 'stop' })
    const timeout = AbortSignal.any([signal, AbortSignal.timeout(GRACE_MS)])
    await Promise.race([Promise.all(agents.map((agent) => agent.gone)), aborted(timeout)])
    return count.tally()
  } finally {
    for (const agent of agents) agent.kill()
    await Promise.all(agents.map((agent) => agent.gone))
  }
}

function broken({ name, err }: Agent): Refusal {
  return new Refusal('internal', `${name} ended by itself: ${err.trim() || 'without a word'}`, {
    next: 'Please report it, with what you ran.',
  })
}

class Agent {
  readonly name: string
  doing = 'starts'
  edits = 0
  err = ''
  isGone = false
  readonly ready: Promise<void>
  readonly gone: Promise<void>
  private readonly child: ChildProcess

  constructor(orders: AgentOrders, count: Count) {
    this.name = orders.agent
    const program = fileURLToPath(new URL('demo_agent.cjs', import.meta.url))
    this.child = fork(program, [JSON.stringify(orders)], {
      env: plainEnvironment(),
      execArgv: [],
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    this.child.stderr!.setEncoding('utf8').on('data', (text: string) => (this.err += text))
    this.gone = once(this.child, 'close').then(() => void (this.isGone = true))
    this.ready = new Promise((resolve, reject) => {
      this.child.on('message', (words: FromAgent) => {
        if (words.say === 'ready') resolve()
        this.hear(words)
        count.hear(words)
      })
      void this.gone.then(() => reject(broken(this)))
    })
  }

  private hear(words: FromAgent): void {
    if (words.say === 'began') this.doing = `edits ${words.file}`
    if (words.say === 'refused') this.doing = `${words.file} is ${words.holder}'s: takes other work`
    if (words.say === 'edited') this.edits++
  }

  tell(words: ToAgent): void {
    // One that has just died is found out by its end.
    this.child.send(words, () => undefined)
  }

  kill(): void {
    if (!this.isGone) this.child.kill('SIGKILL')
  }
}

/** The demo has a store and a name for each agent; what this shell says about that is left out. */
export function plainEnvironment(): NodeJS.ProcessEnv {
  const entries = Object.entries(process.env)
  return Object.fromEntries(entries.filter(([name]) => !/^LEASEHOLD_(?!TEST$)/.test(name)))
}

class Count {
  private readonly acknowledged: string[] = []
  private readonly finished: string[] = []
  private refused = 0

  constructor(private readonly folder: string) {}

  hear(words: FromAgent): void {
    if (words.say === 'edited') this.acknowledged.push(words.line)
    if (words.say === 'finished') this.finished.push(words.task)
    if (words.say === 'refused') this.refused++
  }

  /** An edit is lost when its line was acknowledged and is in no file. */
  tally(): Tally {
    const lines = linesIn(this.folder)
    const done = new Set(this.finished)
    const twice = new Set(this.finished.filter((task, i) => this.finished.indexOf(task) !== i))
    return {
      edits_made: this.acknowledged.length,
      edits_lost: this.acknowledged.filter((line) => !lines.has(line)).length,
      tasks_done: done.size,
      tasks_done_twice: twice.size,
      conflicts_prevented: this.refused,
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  signal.throwIfAborted()
  return new Promise((resolve, reject) => {
    const stop = () => reject(signal.reason as Error)
    signal.addEventListener('abort', stop, { once: true })
    setTimeout(() => {
      signal.removeEventListener('abort', stop)
      resolve()
    }, ms)
  })
}

async function aborted(signal: AbortSignal): Promise<void> {
  if (!signal.aborted) await once(signal, 'abort')
}
