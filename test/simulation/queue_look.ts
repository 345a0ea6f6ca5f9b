import type { Lane, Limit, Queue, Share } from '../../src/core/schema/queue.ts'
import type { Task } from '../../src/core/schema/task.ts'
import type { IndexName, TableName, Tables } from '../../src/core/schema/schema.ts'
import type { Lease } from '../../src/core/schema/lock.ts'
import { keyOf } from '../../src/core/rows.ts'
import type { View } from '../../src/core/view.ts'
import type { Base } from '../../src/stores/port.ts'

/** Rows as a checker sees them, whether committed or in a view. */
export interface Look {
  get<T extends TableName>(table: T, key: string): Tables[T] | undefined
  rows<Row>(index: IndexName, group: string): Row[]
}

export function lookAt(base: Base): Look {
  return {
    get: (table, key) => base.get(table, key),
    rows: <Row>(index: IndexName, group: string) =>
      base.scan(index, group, undefined, 100_000) as Row[],
  }
}

export function lookInto(view: View): Look {
  return {
    get: (table, key) => view.get(table, key),
    rows: <Row>(index: IndexName, group: string) => [...view.scan(index, group)] as Row[],
  }
}

const QUEUE: Pick<Queue, 'paused' | 'user_max'> = { paused: false, user_max: 1 }

/** All that the queue keeps, found from tasks and leases and from every index that leads there. */
export class QueueRows {
  readonly tasks: Task[]
  readonly leases: Lease[]
  readonly queue: Pick<Queue, 'paused' | 'user_max'>
  readonly users: Set<string>
  readonly shares = new Map<string, Share>()
  readonly limits: Map<string, Limit>
  readonly lanes = new Map<string, Lane>()

  constructor(readonly look: Look) {
    this.tasks = look.rows<Task>('tasks', '')
    this.leases = look.rows<Lease>('leases_by_expiry', '')
    this.queue = look.get('queue', 'queue') ?? QUEUE
    this.limits = new Map(look.rows<Limit>('limits', '').map((row) => [row.key, row]))
    this.users = this.findUsers()
    for (const user of this.users) {
      const share = look.get('share', user)
      if (share) this.shares.set(user, share)
    }
    this.findLanes()
  }

  private findUsers(): Set<string> {
    const users = new Set(this.tasks.map((task) => task.user ?? ''))
    for (const { name, terms } of this.leases) {
      for (const key of [name, ...(terms?.limits ?? [])]) {
        if (key.startsWith('user:')) users.add(key.slice(5))
      }
    }
    const indexes = [
      ['shares_waiting', ''],
      ['shares_special', ''],
      ['shares_in_turn', 'high'],
      ['shares_in_turn', 'normal'],
    ] as const
    for (const [index, group] of indexes) {
      for (const { user } of this.look.rows<Share>(index, group)) users.add(user)
    }
    return users
  }

  private findLanes(): void {
    const keep = (lane: Lane | undefined) => lane && this.lanes.set(lane.key, lane)
    for (const task of this.tasks) keep(this.look.get('lane', laneKey(task)))
    for (const user of this.users) this.look.rows<Lane>('lanes_of', user).forEach(keep)
    for (const limit of this.limits.keys()) {
      for (const user of this.shares.keys()) {
        this.look.rows<Lane>('lanes_parked_at', keyOf(limit, user)).forEach(keep)
      }
    }
  }

  maxOf(user: string): number | null {
    if (user === '') return null
    return this.shares.get(user)?.max ?? this.queue.user_max
  }

  /** Locks that count against the limit of a user, from the leases themselves. */
  runningOf(user: string): string[] {
    const key = `user:${user}`
    const counts = ({ name, terms }: Lease) => name === key || terms?.limits.includes(key)
    return user === '' ? [] : this.leases.filter(counts).map(({ name }) => name)
  }

  usedOf(key: string): number {
    return this.leases.filter(({ terms }) => terms?.limits.includes(key)).length
  }

  hasRoom(key: string): boolean {
    const limit = this.limits.get(key)
    if (limit?.paused) return false
    return !limit || limit.max === null || this.usedOf(key) < limit.max
  }

  /** What the rules keep as ready in a lane: nothing in the way but limits, pauses and turns. */
  inLanes(): Task[] {
    return this.tasks.filter((task) => {
      const waits = task.queue && task.status === 'todo' && task.assigned_to === null
      return waits && task.unmet === 0 && task.lock_fence === null
    })
  }
}

export const laneKey = (task: Task) =>
  [task.user ?? '', task.project ?? '', task.group ?? ''].join('\n')

export const byRank = (a: { rank: number; id: string }, b: { rank: number; id: string }) =>
  a.rank - b.rank || (a.id < b.id ? -1 : 1)

/** The counters that a claim of `task` must count against, its user's first. */
export function countersOf(task: Task): string[] {
  return [
    ...(task.user === null ? [] : [`user:${task.user}`]),
    ...(task.project === null ? [] : [`project:${task.project}`]),
    ...(task.group === null ? [] : [`group:${task.group}`]),
    ...(task.queue ? ['pool'] : []),
  ]
}
