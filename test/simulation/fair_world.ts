import type { Run, Task } from '../../src/core/schema/task.ts'
import { dispatchNext, finishRun, registerDispatcher } from '../../src/core/queue/dispatch.ts'
import { enqueueTask } from '../../src/core/queue/queue.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import type { View } from '../../src/core/view.ts'
import { callerOf, MachineSim, openSqlite, temporaryFolder } from '../support/helpers.ts'
import { ADMIN, enqueueAsk, type EnqueueOptions, QueueVerbs } from '../support/queue_verbs.ts'

interface Running {
  run: Run
  user: string
  began_ms: number
  ends_ms: number
}

interface Start {
  user: string
  task: string
  at_ms: number
  waited_ms: number
  high: boolean
  /** Whether high priority and others both could have started. */
  contested: boolean
}

interface FairOptions {
  slots: number
  /** How long a run of this task takes. */
  length: (task: Task) => number
  projects?: string[]
}

const DISPATCHER = 'dispatcher:fair'
const TTL_MS = 24 * 3600_000

/**
 * A queue on virtual time: whenever a run ends, its slot is filled again. The rules and the store
 * are those of production; only the commands are missing, which take as long as they are said to.
 */
export class FairWorld {
  readonly machine = new MachineSim()
  readonly store: Store
  readonly verbs: QueueVerbs
  readonly starts: Start[] = []
  /** Run time that each user has received. */
  readonly service = new Map<string, number>()
  private readonly running: Running[] = []
  private readonly arrivals: { at_ms: number; task: EnqueueOptions }[] = []
  private readonly enqueued = new Map<string, number>()
  private readonly process = this.machine.spawn()
  private tokens = 0

  constructor(private readonly options: FairOptions) {
    this.store = openSqlite(temporaryFolder(), this.machine)
    this.verbs = new QueueVerbs(this.store)
  }

  get now_ms(): number {
    return this.machine.monotonicMs()
  }

  async begin(): Promise<void> {
    const { slots, projects = ['web'] } = this.options
    await this.verbs.take(DISPATCHER, callerOf('fair'), { ttl_ms: TTL_MS })
    const row = { id: DISPATCHER, host: 'sim', pid: 1, slots_max: slots, projects, started_at: '' }
    await this.store.write((view) => registerDispatcher(view, row))
  }

  /** Enqueues many at once, a hundred per commit. */
  async enqueue(tasks: EnqueueOptions[]): Promise<void> {
    for (let i = 0; i < tasks.length; i += 100) {
      await this.store.write((view) => {
        for (const task of tasks.slice(i, i + 100)) this.add(view, task)
      })
    }
  }

  /** Comes later, at its time. */
  arrive(at_ms: number, task: EnqueueOptions): void {
    this.arrivals.push({ at_ms, task })
    this.arrivals.sort((a, b) => a.at_ms - b.at_ms)
  }

  private add(view: View, options: EnqueueOptions): void {
    const { task } = enqueueTask(view, enqueueAsk(options), ADMIN)
    this.enqueued.set(task.id, this.now_ms)
  }

  /** Goes on until `isOver`, or until nothing runs any more. */
  async run(isOver: () => boolean): Promise<void> {
    await this.refill([])
    while (!isOver() && (this.running.length > 0 || this.arrivals.length > 0)) {
      const next_ms = Math.min(
        this.running[0]?.ends_ms ?? Infinity,
        this.arrivals[0]?.at_ms ?? Infinity,
      )
      this.serveUntil(next_ms)
      const over = this.running.filter(({ ends_ms }) => ends_ms <= next_ms)
      this.running.splice(0, over.length)
      await this.refill(over)
    }
  }

  /** Time passes: every run that is under way is served. */
  private serveUntil(at_ms: number): void {
    const ms = at_ms - this.now_ms
    for (const { user } of this.running) this.service.set(user, (this.service.get(user) ?? 0) + ms)
    this.machine.advance(ms)
  }

  private refill(over: Running[]): Promise<void> {
    return this.store.write((view) => {
      for (const { run } of over) {
        const ask = { id: run.id, fence: run.fence, exit_code: 0, signal: null, reason: null }
        finishRun(view, ask, callerOf(run.agent))
      }
      while ((this.arrivals[0]?.at_ms ?? Infinity) <= this.now_ms) {
        this.add(view, this.arrivals.shift()!.task)
      }
      while (this.startOne(view));
      this.running.sort((a, b) => a.ends_ms - b.ends_ms)
    })
  }

  private startOne(view: View): boolean {
    const both = (['high', 'normal'] as const).every((turn) => {
      for (const _ of view.scan('shares_in_turn', turn)) return true
      return false
    })
    this.tokens += 1
    const claim = dispatchNext(view, {
      dispatcher: DISPATCHER,
      ttl_ms: TTL_MS,
      process: this.process,
      agentFor: () => 'run',
      token_hash: `token-${this.tokens}`,
    })
    if (!claim) return false
    const { task, run } = claim
    const at_ms = this.now_ms
    const user = task.user ?? ''
    const waited_ms = at_ms - this.enqueued.get(task.id)!
    const high = task.priority >= 7
    this.running.push({ run, user, began_ms: at_ms, ends_ms: at_ms + this.options.length(task) })
    this.starts.push({ user, task: task.id, at_ms, waited_ms, high, contested: both })
    return true
  }

  serviceOf(users: string[]): number[] {
    return users.map((user) => this.service.get(user) ?? 0)
  }

  startsOf(user: string): Start[] {
    return this.starts.filter((start) => start.user === user)
  }
}

/** Jain's index of fairness: 1 when all have the same, 1/n when one has all. */
export function jain(shares: number[]): number {
  const sum = shares.reduce((a, b) => a + b, 0)
  const squares = shares.reduce((a, b) => a + b * b, 0)
  return (sum * sum) / (shares.length * squares)
}

/** By how much the worst share is off what it should be, as a part of that. */
export function worstError(got: number[], wanted: number[]): number {
  const total = got.reduce((a, b) => a + b, 0)
  const parts = wanted.reduce((a, b) => a + b, 0)
  return Math.max(...got.map((ms, i) => Math.abs(ms / total / (wanted[i]! / parts) - 1)))
}

/** `count` tasks of one user; `more` says what else each of them has. */
export function tasksOf(
  user: string,
  count: number,
  more: (i: number) => EnqueueOptions = () => ({}),
): EnqueueOptions[] {
  return Array.from({ length: count }, (_, i) => ({ id: `${user}-${i}`, user, ...more(i) }))
}
