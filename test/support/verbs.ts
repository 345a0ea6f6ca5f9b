import type { Ready, Task, TaskFields } from '../../src/core/schema/task.ts'
import type { Lease } from '../../src/core/schema/lock.ts'
import { heartbeat, seeAgent } from '../../src/core/locks/agent.ts'
import type { Caller } from '../../src/core/caller.ts'
import { type Claim, claimNext, claimTask, type ClaimFilter } from '../../src/core/tasks/claim.ts'
import { claimAny } from '../../src/core/queue/queue.ts'
import { explainTask } from '../../src/core/reasons/explain.ts'
import { handOff } from '../../src/core/locks/handoff.ts'
import {
  acquireLocks,
  forceRelease,
  giveUp,
  nameGroup,
  releaseLock,
  renewLock,
  placeInLine,
  turnOf,
  type Waiting,
} from '../../src/core/locks/lock.ts'
import { moveTask } from '../../src/core/tasks/move.ts'
import { type ProcessRef, readyKey, type Status } from '../../src/core/rows.ts'
import { behind } from '../../src/core/tasks/ready.ts'
import { createTask, editTask } from '../../src/core/tasks/task.ts'
import type { Store } from '../../src/stores/writer/store.ts'

export interface LeaseOptions {
  ttl_ms?: number
  /** The process that the lease shall name. */
  process?: ProcessRef | null
  takeover?: boolean
  /** Whether enqueued tasks may be taken too. */
  queued?: boolean
}

export interface WaitOptions extends LeaseOptions {
  ticket?: string
  priority?: number
}

/** Where a waiter stands. */
export interface Placed extends Waiting {
  position: number
}

const TTL_MS = 60_000

/**
 * What can be asked of a store, by name and with defaults, straight on the rules: doors, schemas
 * and request ids are not in the way.
 */
export class Verbs {
  constructor(readonly store: Store) {}

  /** One lock, no waiting. */
  async take(name: string, caller: Caller, options: LeaseOptions = {}): Promise<Lease> {
    const [lease] = await this.takeAll([name], caller, options)
    return lease!
  }

  takeAll(names: string[], caller: Caller, options: LeaseOptions = {}): Promise<Lease[]> {
    return this.acquire(names, caller, options) as Promise<Lease[]>
  }

  wait(names: string | string[], caller: Caller, ticket: string, options: WaitOptions = {}) {
    return this.acquire([names].flat(), caller, { ...options, ticket })
  }

  async acquire(names: string[], caller: Caller, options: WaitOptions): Promise<Lease[] | Placed> {
    const { ticket: ticket_id, priority = 0 } = options
    const ask = { names, ticket_id, priority, ...grantOf(options, caller) }
    const got = await this.store.write((view) => acquireLocks(view, ask, caller))
    if (!('waiting' in got)) return got
    const position = await this.store.read((view) => placeInLine(view, got.waiting))
    return { ...got, position }
  }

  renew(name: string, caller: Caller, fence?: number, ttl_ms?: number): Promise<Lease> {
    return this.store.write((view) => renewLock(view, { name, fence, ttl_ms }, caller))
  }

  release(name: string, caller: Caller, fence?: number): Promise<Lease> {
    return this.store.write((view) => releaseLock(view, { name, fence }, caller))
  }

  forceRelease(name: string, caller: Caller, reason?: string): Promise<Lease> {
    return this.store.write((view) => forceRelease(view, { name, reason }, caller))
  }

  handOff(name: string, caller: Caller, to: string, fence?: number): Promise<Lease> {
    return this.store.write((view) => handOff(view, { name, fence, to }, caller))
  }

  nameGroup(name: string, fence: number, group: ProcessRef, caller: Caller): Promise<Lease> {
    return this.store.write((view) => nameGroup(view, { name, fence, group }, caller))
  }

  turn(ticket: string) {
    return this.store.read((view) => {
      return { ...turnOf(view, ticket), position: placeInLine(view, ticket) }
    })
  }

  giveUp(ticket: string, caller: Caller) {
    return this.store.write((view) => giveUp(view, ticket, caller))
  }

  add(title: string, caller: Caller, more: Partial<TaskFields> & { id?: string } = {}) {
    const ask = { ...FIELDS, title, ...more }
    return this.store.write((view) => createTask(view, ask, caller))
  }

  claim(id: string, caller: Caller, options: LeaseOptions = {}): Promise<Claim> {
    return this.store.write((view) => claimTask(view, id, grantOf(options, caller), caller))
  }

  next(caller: Caller, filter: ClaimFilter = {}, options: LeaseOptions = {}) {
    return this.store.write((view) => claimNext(view, filter, grantOf(options, caller), caller)[0])
  }

  nextOf(max: number, caller: Caller, filter: ClaimFilter = {}, options: LeaseOptions = {}) {
    return this.store.write((view) => {
      return claimAny(view, filter, grantOf(options, caller), caller, max)
    })
  }

  move(id: string, to: Status, caller: Caller, fence?: number, options: LeaseOptions = {}) {
    const { ttl_ms, process } = grantOf(options, caller)
    return this.store.write((view) => moveTask(view, { id, to, fence, ttl_ms, process }, caller))
  }

  edit(
    id: string,
    version: number,
    fields: Partial<TaskFields>,
    caller: Caller,
    fence?: number,
  ): Promise<Task> {
    return this.store.write((view) => editTask(view, { id, version, fence, fields }, caller))
  }

  heartbeat(caller: Caller): Promise<Lease[]> {
    return this.store.write((view) => {
      seeAgent(view, caller)
      return heartbeat(view, caller)
    })
  }

  /** A write that asks for nothing: what is overdue is cleared away before it. */
  sweep(): Promise<void> {
    return this.store.write(() => undefined)
  }

  task(id: string): Promise<Task> {
    return this.store.read((view) => view.get('task', id)!)
  }

  lease(name: string): Promise<Lease | undefined> {
    return this.store.read((view) => view.get('lease', name))
  }

  /** The codes of the reasons why a task does not run. */
  explain(id: string, agent = 'anyone') {
    return this.store.read((view) => explainTask(view, id, agent).reasons.map(({ code }) => code))
  }

  runs(task_id: string) {
    return this.store.read((view) => [...view.scan('runs_of', task_id)])
  }

  /** The ids of the tasks that anybody could claim now, best first. */
  ready(scope = 'any'): Promise<string[]> {
    return this.store.read((view) => {
      const front = [...view.scan('ready_in', scope)]
      const users = new Set(front.flatMap(({ task_id }) => view.get('task', task_id)!.user ?? []))
      const rest = [...users].flatMap((user) =>
        Array.from(view.scan('ready_in', behind(scope, user))),
      )
      const all = new Map([...front, ...rest].map((row) => [row.task_id, row]))
      const order = ({ rank, task_id }: Ready) => readyKey({ scope, rank, task_id })
      const rows = [...all.values()].toSorted((a, b) => (order(a) < order(b) ? -1 : 1))
      return rows.map(({ task_id }) => task_id)
    })
  }

  /** Every event so far, as its type. */
  async eventTypes(after = 0): Promise<string[]> {
    return (await this.store.events(after, 10_000)).map((event) => event.type)
  }
}

export const FIELDS: TaskFields = {
  title: '',
  body: '',
  project: null,
  user: null,
  priority: 5,
  group: null,
  labels: [],
  depends_on: [],
  assigned_to: null,
  metadata: {},
}

/** A lease names the process that a caller speaks for, unless told otherwise. */
export function grantOf(options: LeaseOptions, caller: Caller) {
  const { ttl_ms = TTL_MS, process, takeover = false, queued = false } = options
  return { ttl_ms, process: process === undefined ? caller.process : process, takeover, queued }
}
