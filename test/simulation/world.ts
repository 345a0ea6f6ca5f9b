import type { Run } from '../../src/core/schema/task.ts'
import type { Caller } from '../../src/core/caller.ts'
import { Refusal } from '../../src/core/refusal.ts'
import type { ProcessRef } from '../../src/core/rows.ts'
import { Store } from '../../src/stores/writer/store.ts'
import type { Backend } from '../../src/stores/port.ts'
import { MachineSim } from '../support/machine_sim.ts'
import { FaultyBackend } from '../support/memory_backend.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'
import { type Accepted, type AskedFor, History } from './history.ts'
import type { UsedBefore } from './queue_rows.ts'
import { Random } from './random.ts'
import type { Memory } from './rows.ts'

export const LOCKS = ['a', 'b', 'c', 'd']
export const TTLS_MS = [1_000, 3_000, 10_000, 30_000]

/** An agent as it sees itself: what it believes, which may be long out of date. */
export interface SimAgent {
  id: string
  given: boolean
  process: ProcessRef | null
  /** Locks it believes to hold. */
  held: Map<string, number>
  /** Fences it had once: a late write will use them. */
  past: { name: string; fence: number }[]
  read: { id: string; version: number; n: number } | undefined
  ticket: { id: string; names: string[]; priority: number } | undefined
  /** It does nothing for so many steps, however much time passes. */
  asleep: number
}

/** A run that a dispatcher was given, with the runner that came up for it last. */
export interface SimRun {
  run: Run
  process: ProcessRef | undefined
  group: ProcessRef | undefined
}

export type Outcome<T> =
  | { kind: 'ok'; value: T }
  | { kind: 'refused'; refusal: Refusal }
  /** The reply was lost: it may have happened. */
  | { kind: 'unknown' }
  /** It certainly did not happen. */
  | { kind: 'failed' }

interface Reports {
  accepted: Accepted[]
  askedFor: AskedFor[]
  renewed: { lock: string; fence: number; ttl_ms: number; known: boolean }[]
  finished: { task: string; fence: number; agent: string }[]
}

const noReports = (): Reports => ({ accepted: [], askedFor: [], renewed: [], finished: [] })

/** Everything of one run: the machine, two writers on one store, agents, and who watches them. */
export class World {
  readonly random: Random
  /** Beside it, for what is done to paths: what else happens stays as it was. */
  readonly chance: Random
  readonly machine = new MachineSim()
  readonly backends: FaultyBackend[]
  readonly stores: Store[]
  readonly history = new History()
  readonly memory: Memory = {
    tasks: new Map(),
    runs: new Map(),
    created: new Set(),
    edits: new Map(),
  }
  readonly agents: SimAgent[]
  readonly groups: ProcessRef[] = []
  readonly runners: ProcessRef[] = []
  readonly runs: SimRun[] = []
  readonly dispatchers: { name: string; process: ProcessRef }[]
  /** How much of every limit was taken at the last look. */
  readonly used: UsedBefore = new Map()
  /** How often each action had which outcome: shows that a run was not idle. */
  readonly counts = new Map<string, number>()
  reports = noReports()
  tasks = 0
  /** How many of them were enqueued. */
  queued = 0
  tickets = 0
  uptime_ms = 0
  /** The writer that this step's asks go through. */
  writer = 0

  constructor(seed: number, open: () => Backend) {
    this.random = new Random(seed)
    this.chance = new Random(seed + 0x5eed)
    this.backends = [new FaultyBackend(open()), new FaultyBackend(open())]
    this.stores = this.backends.map((backend) => new Store(backend, this.machine))
    const ids = ['ada', 'ada/sub', 'bob', 'cyd', 'dan', 'eve']
    this.agents = ids.map((id, i) => {
      const process = i % 3 === 2 ? null : this.machine.spawn()
      return Object.assign(emptyMind(), { id, given: true, process })
    })
    this.dispatchers = ['d', 'e'].map((name) => ({ name, process: this.machine.spawn() }))
    this.agents.push(Object.assign(emptyMind(), { id: 'cli:x@y', given: false, process: null }))
  }

  get verbs(): QueueVerbs {
    return new QueueVerbs(this.stores[this.writer]!)
  }

  callerOf(agent: SimAgent, admin = false): Caller {
    const { id, given, process } = agent
    const [lock, fence] = [...agent.held][0] ?? []
    const under = lock === undefined || !id.includes('/') ? null : { lock, fence: fence! }
    return { agent: id, given, process, admin, under }
  }

  advance(ms: number): void {
    this.machine.advance(ms)
    this.uptime_ms += ms
  }

  takeReports(): Reports {
    const { reports } = this
    this.reports = noReports()
    return reports
  }

  /** Waits for the answer to an ask, and counts it. What nobody expects ends the run. */
  async outcomeOf<T>(action: string, asked: Promise<T>): Promise<Outcome<T>> {
    const outcome = await asked.then(
      (value): Outcome<T> => ({ kind: 'ok', value }),
      (error: unknown) => outcomeOfError(error),
    )
    const said = outcome.kind === 'refused' ? outcome.refusal.code : outcome.kind
    const key = `${action} ${said}`
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1)
    return outcome
  }

  /** The agent learns that a lease of its own is over, and keeps the fence for a late write. */
  lose(agent: SimAgent, name: string): void {
    const fence = agent.held.get(name)
    if (fence === undefined) return
    agent.held.delete(name)
    agent.past.push({ name, fence })
    if (agent.past.length > 8) agent.past.shift()
  }
}

function outcomeOfError(error: unknown): Exclude<Outcome<never>, { kind: 'ok' }> {
  if (error instanceof Refusal) {
    return error.code === 'unavailable' ? { kind: 'unknown' } : { kind: 'refused', refusal: error }
  }
  if (error instanceof Error && error.message.startsWith('the disk said no')) {
    return { kind: 'failed' }
  }
  throw error
}

export const emptyMind = () => ({
  held: new Map<string, number>(),
  past: [],
  read: undefined,
  ticket: undefined,
  asleep: 0,
})
