import { existsSync } from 'node:fs'
import type { Client, connect as Connect, ConnectOptions } from '../../src/index.ts'
import { Random } from '../../test/simulation/random.ts'
import { after, type Asked, Notes, type Told } from './history.ts'

/** What the rig tells a client about itself, as JSON in its first argument. */
export interface Orders {
  /** One life of one process; the agent id is shared by all lives. */
  who: string
  agent: string
  calls: string
  /** The built package, as users get it. */
  sdk: string
  connect: ConnectOptions
  door: 'sdk' | 'embedded'
  /** Whether leases name this process. */
  named: boolean
  seed: number
  /** Patient ones only wait and are never harmed; fallers fall when they have what they want. */
  mode: 'mixed' | 'patient' | 'faller'
  locks: number
  hasQueue: boolean
  /** How often it kills or stops itself at a point that was chosen for it, from 0 to 1. */
  falls: number
  /** When this file is there, it ends. */
  until: string
}

// oxlint-disable-next-line typescript/no-explicit-any -- answers of many operations pass here
type Answer = any
type Ask = Omit<Asked, 'agent' | 'door' | 'request'>

const TTL_MS = [1_000, 1_500, 2_000]
const SETTLE_TRIES = 4

/** A client that works, and writes down what it asked and what it was told. */
class RigAgent {
  private readonly notes: Notes
  private readonly random: Random
  private asked = 0

  constructor(
    private readonly orders: Orders,
    private readonly client: Client,
  ) {
    this.notes = new Notes(orders.calls)
    this.random = new Random(orders.seed)
  }

  async work(): Promise<void> {
    const { mode, until, hasQueue } = this.orders
    const deeds = [() => this.hold(), () => this.hold(), () => this.task(), () => this.pair()]
    if (hasQueue)
      deeds.push(
        () => this.note(),
        () => this.count(),
      )
    while (!existsSync(until)) {
      if (mode === 'mixed') await this.random.pick(deeds)()
      else await this.wait()
      await after(this.random.below(mode === 'mixed' ? 120 : 40))
    }
  }

  /** Asks, and asks again under the same id while nobody can say what came of it. */
  private async ask(
    ask: Ask,
    send: (request: string) => Promise<Answer>,
    read: (answer: Answer) => Partial<Told>,
  ): Promise<Told> {
    const { agent, door, named, who } = this.orders
    const request = `${who}-${(this.asked += 1)}`
    let told: Told = { outcome: 'unknown' }
    for (let tries = 0; tries < SETTLE_TRIES && told.outcome === 'unknown'; tries += 1) {
      const end = this.notes.ask({ ...ask, request, agent, door, named })
      const sent = send(request)
      setImmediate(() => this.fall(0.1))
      told = await sent.then(
        (answer): Told => ({ outcome: 'ok', ...read(answer) }),
        (error: unknown) => refused(error),
      )
      if (told.outcome === 'ok') this.fall(0.3)
      end(told)
      if (told.outcome === 'unknown') await after(50 + this.random.below(200))
    }
    this.fall(0.6)
    return told
  }

  /** Ends, or stops until the rig lets it go on, at a moment that hurts most. */
  private fall(share: number): void {
    if (this.orders.mode === 'mixed' && this.random.chance(this.orders.falls * share)) this.die()
  }

  private die(): void {
    process.kill(process.pid, this.random.chance(0.35) ? 'SIGSTOP' : 'SIGKILL')
  }

  private acquire(locks: string[], ttl_ms: number, wait_ms: number): Promise<Told> {
    return this.ask(
      { op: 'lock.acquire', locks, ttl_ms, wait_ms },
      (request_id) =>
        this.client.lock.acquire({
          names: locks,
          ttl_seconds: ttl_ms / 1000,
          ...(wait_ms > 0 && { wait_seconds: wait_ms / 1000 }),
          request_id,
        }),
      (answer) => ({ fences: (answer.items ?? [answer]).map((one: Answer) => one.fence) }),
    )
  }

  private write(what: 'renew' | 'release', lock: string, fence: number, ttl_ms: number) {
    return this.ask(
      { op: `lock.${what}`, locks: [lock], fence, ttl_ms },
      (request_id) => this.client.lock[what]({ name: lock, fence, request_id }),
      () => ({}),
    )
  }

  /** Takes a lock, works under it, and gives it back, or goes on although it is over. */
  private async hold(): Promise<void> {
    const lock = `lock${this.random.below(this.orders.locks)}`
    const ttl_ms = this.random.pick(TTL_MS)
    const { fences } = await this.acquire([lock], ttl_ms, this.random.pick([0, 500, 3_000]))
    const fence = fences?.[0]
    if (fence === undefined) return
    for (let i = this.random.below(4); i > 0; i -= 1) {
      await after(this.random.below(ttl_ms / 3))
      const { outcome } = await this.write('renew', lock, fence, ttl_ms)
      if (outcome !== 'ok') return
    }
    if (this.random.chance(0.9)) await this.write('release', lock, fence, ttl_ms)
    // Whoever released, expired or was overtaken must not get through with the old fence.
    if (this.random.chance(0.7)) return
    await after(this.random.below(600))
    await this.write('renew', lock, fence, ttl_ms)
  }

  /** Waits in line for a lock that others hold when they fall. */
  private async wait(): Promise<void> {
    const lock = `line${this.random.below(2)}`
    const { fences } = await this.acquire([lock], 1_000, 20_000)
    const fence = fences?.[0]
    if (fence === undefined) return
    await after(this.random.below(60))
    if (this.orders.mode === 'faller' && this.random.chance(0.5)) this.die()
    if (this.random.chance(0.5)) await this.write('renew', lock, fence, 1_000)
    await this.write('release', lock, fence, 1_000)
  }

  private async pair(): Promise<void> {
    const pair = `pair${this.random.below(2)}`
    const locks = [`${pair}:a`, `${pair}:b`]
    const { fences } = await this.acquire(locks, 1_500, this.random.pick([0, 1_000]))
    if (!fences) return
    await after(this.random.below(100))
    for (const [i, fence] of fences.entries()) await this.write('release', locks[i]!, fence, 1_500)
  }

  /** Makes a task, claims some task, and finishes it. */
  private async task(): Promise<void> {
    const mark = `task ${this.orders.who} ${this.asked}`
    await this.ask(
      { op: 'task.create', mark },
      (request_id) => this.client.task.create({ title: mark, request_id }),
      ({ id }) => ({ task: id }),
    )
    const ttl_ms = this.random.pick(TTL_MS)
    const claimed = { id: '', fence: 0 }
    const ask: Ask = { op: 'task.claim', ttl_ms, locks: [] }
    const told = await this.ask(
      ask,
      (request_id) => this.client.task.claim({ ttl_seconds: ttl_ms / 1000, request_id }),
      ({ task, lease }) => {
        if (!lease) return {}
        claimed.id = task.id
        claimed.fence = lease.fence
        return { task: task.id, fences: [lease.fence], locks: [lease.name] }
      },
    )
    if (told.outcome !== 'ok' || claimed.id === '') return
    const lock = `task:${claimed.id}`
    await after(this.random.below(150))
    if (this.random.chance(0.3)) await this.write('renew', lock, claimed.fence, ttl_ms)
    const { id, fence } = claimed
    await this.ask(
      { op: 'task.status', locks: [lock], fence, task: id },
      (request_id) => this.client.task.status({ id, status: 'done', fence, request_id }),
      () => ({}),
    )
  }

  private async note(): Promise<void> {
    const mark = `note-${this.orders.who}-${this.asked}`
    await this.ask(
      { op: 'memory.put', mark },
      (request_id) =>
        this.client.memory.put({ scope: 'project:rig', key: mark, content: mark, request_id }),
      () => ({}),
    )
  }

  /** Adds one to a number that everybody adds to. */
  private async count(): Promise<void> {
    const found: Answer = await this.client.task.get({ id: 'counter' }).catch(() => undefined)
    if (!found) return
    const value = Number(found.body) + 1
    await this.ask(
      { op: 'task.update', task: 'counter' },
      (request_id) => {
        const { version } = found
        return this.client.task.update({ id: 'counter', version, body: String(value), request_id })
      },
      () => ({ value }),
    )
  }
}

/** A refusal is an answer, unless it says that nobody knows what came of the ask. */
function refused(error: unknown): Told {
  const { name, code = 'thrown', message } = error as Error & { code?: string }
  if (name !== 'Refusal') return { outcome: 'unknown', code: `${name}: ${message}`.slice(0, 200) }
  return { outcome: code === 'unavailable' ? 'unknown' : 'refused', code }
}

const orders = JSON.parse(process.argv[2]!) as Orders
const { connect } = (await import(orders.sdk)) as { connect: typeof Connect }
await new RigAgent(orders, await connect(orders.connect)).work()
process.exit(0)
