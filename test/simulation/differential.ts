import type { Task } from '../../src/core/schema/task.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { STATUSES } from '../../src/core/rows.ts'
import { callerOf, MachineSim, type Open, temporaryFolder } from '../support/helpers.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'
import { Random } from './random.ts'

const LOCKS = ['a', 'b', 'c', 'ä\u{1F512}']
const USERS = ['ann', 'ben', 'cyd']
const PROJECTS = ['web', 'api']

/** What one history on one store came to: every answer, and the hash over all events. */
export interface Played {
  answers: string[]
  end: string
}

/** Who plays, and what they remember: fences and versions that may be long out of date. */
class Player {
  readonly answers: string[] = []
  readonly machine = new MachineSim()
  readonly verbs: QueueVerbs[]
  private readonly random: Random
  private readonly callers = ['ada', 'ada/sub', 'bob', 'cyd', 'dan']
  private readonly processes = new Map(this.callers.map((id) => [id, this.machine.spawn()]))
  private readonly dispatcher = this.machine.spawn()
  private readonly fences = new Map<string, number>()
  private readonly tasks: Task[] = []
  private made = 0

  constructor(open: Open, seed: number) {
    this.random = new Random(seed)
    const dir = temporaryFolder()
    this.verbs = [open(dir, this.machine), open(dir, this.machine)].map((s) => new QueueVerbs(s))
  }

  private caller() {
    const agent = this.random.pick(this.callers)
    return callerOf(agent, this.random.chance(0.5) ? { process: this.processes.get(agent)! } : {})
  }

  /** One step: some who act at once, on one of two writers; then time passes. */
  async step(): Promise<void> {
    const verbs = this.random.pick(this.verbs)
    const acting = Array.from({ length: 1 + this.random.below(6) }, () => this.act(verbs))
    const told = await Promise.allSettled(acting)
    for (const each of told) this.hear(each)
    const [seen] = await Promise.allSettled([this.look(this.random.pick(this.verbs))])
    this.hear(seen)
    this.machine.advance(this.random.chance(0.05) ? 70_000 : this.random.below(900))
    if (this.random.chance(0.05)) {
      const agent = this.random.pick(this.callers)
      this.machine.kill(this.processes.get(agent)!)
      this.processes.set(agent, this.machine.spawn())
    }
  }

  private hear(told: PromiseSettledResult<unknown>): void {
    if (told.status === 'rejected' && !(told.reason instanceof Refusal)) throw told.reason
    const said = told.status === 'fulfilled' ? told.value : (told.reason as Refusal).toJSON()
    this.answers.push(plain(said))
    for (const part of partsOf(said)) {
      if (typeof part['fence'] === 'number' && typeof part['name'] === 'string') {
        this.fences.set(part['name'], part['fence'])
      }
      if (typeof part['version'] === 'number') this.tasks.push(part as unknown as Task)
    }
    while (this.tasks.length > 30) this.tasks.shift()
  }

  private act(verbs: QueueVerbs): Promise<unknown> {
    const { random } = this
    const caller = this.caller()
    const name = random.pick(LOCKS)
    const task = random.pick(this.tasks)
    const id = task?.id ?? 'none'
    const fence = (of: string) => (random.chance(0.7) ? this.fences.get(of) : undefined)
    const ttl_ms = random.pick([1_000, 5_000, 60_000])
    const acts: (() => Promise<unknown>)[] = [
      () => verbs.take(name, caller, { ttl_ms }),
      () => verbs.takeAll(random.some(LOCKS, 2), caller, { ttl_ms }),
      () => verbs.wait(random.some(LOCKS, 1 + random.below(2)), caller, `w${random.below(6)}`),
      () => verbs.renew(name, caller, fence(name)),
      () => verbs.release(name, caller, fence(name)),
      () => verbs.handOff(name, caller, random.pick(this.callers), fence(name)),
      () => verbs.add(`Task "${this.made}" \\ {x}`, caller, this.fields()),
      () => verbs.enqueue({ ...this.fields(), user: random.pick(USERS) }),
      () => verbs.claim(id, caller, { ttl_ms, queued: random.chance(0.5) }),
      () => verbs.next(caller, random.chance(0.3) ? { project: 'web' } : {}, { ttl_ms }),
      () => verbs.nextQueued(caller, { ttl_ms }),
      () => verbs.move(id, random.pick(STATUSES), caller, fence(`task:${id}`)),
      () => verbs.edit(id, task?.version ?? 1, { metadata: { n: this.made, é: [1.5] } }, caller),
      () => verbs.register('d', { process: this.dispatcher }),
      () => verbs.dispatch('d', this.dispatcher, ttl_ms),
      () => verbs.heartbeat(caller),
    ]
    return random.pick(acts)()
  }

  /** Alone: a read beside writes may see them or not. */
  private look(verbs: QueueVerbs): Promise<unknown> {
    const { random } = this
    const id = random.pick(this.tasks)?.id ?? 'none'
    const looks: (() => Promise<unknown>)[] = [
      () => verbs.explain(id),
      () => verbs.ready(random.pick(['any', 'project\nweb'])),
      () => verbs.status(),
      () => verbs.lease(random.pick(LOCKS)),
    ]
    return random.pick(looks)()
  }

  private fields() {
    const { random } = this
    this.made += 1
    return {
      id: `t${this.made}`,
      project: random.pick(PROJECTS),
      priority: random.below(10),
      depends_on:
        this.made > 3 && random.chance(0.3) ? [`t${1 + random.below(this.made - 1)}`] : [],
      group: random.chance(0.2) ? 'g' : null,
    }
  }
}

/** Plays the history of a seed. Two stores that keep the same rules come to the same. */
export async function play(open: Open, seed: number, steps: number): Promise<Played> {
  const player = new Player(open, seed)
  for (let i = 0; i < steps; i += 1) await player.step()
  const { epoch, fences, task_number, position, hash } = await player.verbs[0]!.store.head()
  for (const { store } of player.verbs) await store.close()
  return { answers: player.answers, end: plain({ epoch, fences, task_number, position, hash }) }
}

/** Tokens of runs are drawn at random. */
function plain(value: unknown): string {
  return JSON.stringify(value, (key, each: unknown) => (key === 'token_hash' ? '' : each)) ?? ''
}

function* partsOf(value: unknown): Generator<Record<string, unknown>> {
  if (typeof value !== 'object' || value === null) return
  yield value as Record<string, unknown>
  for (const each of Object.values(value)) yield* partsOf(each)
}
