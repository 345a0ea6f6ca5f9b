import type { RefusalCode } from '../../src/core/refusal.ts'
import type { Status } from '../../src/core/rows.ts'

export type Verdict = 'ok' | RefusalCode

interface Held {
  holder: string
  /** Which grant of the whole run this was: stands for the fence. */
  grant: number
  until: number
  live: boolean
  ttl: number
}

/**
 * Locks and tasks as the contract tells them, in as few lines as will do, and without the rules'
 * code: what may happen, not how. Agents are given ids without processes; nobody waits.
 */
export class Model {
  readonly locks = new Map<string, Held>()
  readonly tasks = new Map<string, { status: Status; version: number; runs: number }>()
  now = 0
  grants = 0

  private held(name: string): Held | undefined {
    const held = this.locks.get(name)
    return held?.live ? held : undefined
  }

  /** Time passes; what is over goes back to where it came from. */
  advance(ms: number): void {
    this.now += ms
    for (const [name, held] of this.locks) {
      if (held.live && held.until <= this.now) this.end(name)
    }
  }

  private end(name: string): void {
    this.locks.get(name)!.live = false
    const task = this.tasks.get(name.slice('task:'.length))
    if (task?.status !== 'in_progress') return
    task.status = 'todo'
    task.version += 1
  }

  private grant(name: string, holder: string, ttl: number): void {
    this.grants += 1
    const held = { holder, grant: this.grants, until: this.now + ttl, live: true, ttl }
    this.locks.set(name, held)
  }

  acquire(names: string[], agent: string, ttl: number): Verdict {
    const taken = names.some((name) => {
      const held = this.held(name)
      return held && held.holder !== agent
    })
    if (taken) return 'held'
    for (const name of names.toSorted()) this.grant(name, agent, ttl)
    return 'ok'
  }

  /** `grant` 0 states no fence. */
  private under(name: string, agent: string, grant: number): Verdict {
    const last = this.locks.get(name)
    if (grant !== 0 && grant !== last?.grant) return 'fence_stale'
    if (!this.held(name)) return 'lease_expired'
    return last!.holder === agent ? 'ok' : 'held'
  }

  renew(name: string, agent: string, grant: number): Verdict {
    const verdict = this.under(name, agent, grant)
    const held = this.locks.get(name)
    if (verdict === 'ok') held!.until = this.now + held!.ttl
    return verdict
  }

  release(name: string, agent: string, grant: number): Verdict {
    const verdict = this.under(name, agent, grant)
    if (verdict === 'ok') this.end(name)
    return verdict
  }

  handOff(name: string, agent: string, grant: number, to: string): Verdict {
    const verdict = this.under(name, agent, grant)
    if (verdict !== 'ok') return verdict
    this.grant(name, to, this.locks.get(name)!.ttl)
    const task = this.tasks.get(name.slice('task:'.length))
    if (task?.status === 'in_progress') {
      task.version += 1
      task.runs += 1
    }
    return 'ok'
  }

  create(id: string): Verdict {
    if (this.tasks.has(id)) return 'conflict'
    this.tasks.set(id, { status: 'todo', version: 1, runs: 0 })
    return 'ok'
  }

  claim(id: string, agent: string, ttl: number): Verdict {
    const task = this.tasks.get(id)
    if (!task) return 'not_found'
    const held = this.held(`task:${id}`)
    if (held && held.holder !== agent) return 'held'
    if (task.status !== 'todo' && task.status !== 'in_progress') return 'illegal_move'
    this.start(id, agent, ttl)
    return 'ok'
  }

  private start(id: string, agent: string, ttl: number): void {
    const task = this.tasks.get(id)!
    if (task.status !== 'in_progress') task.runs += 1
    this.grant(`task:${id}`, agent, ttl)
    task.status = 'in_progress'
    task.version += 1
  }

  move(id: string, to: Status, agent: string, grant: number, ttl: number): Verdict {
    const task = this.tasks.get(id)
    if (!task) return 'not_found'
    const name = `task:${id}`
    const held = this.held(name)
    if (grant !== 0 || held) {
      const verdict = this.under(name, agent, grant)
      if (verdict !== 'ok') return verdict
    }
    if (task.status === 'done' && to !== 'done') return 'illegal_move'
    const back = task.status === 'failed' || task.status === 'cancelled'
    if (back && to !== 'todo' && to !== task.status) return 'illegal_move'
    if (!held && !OPEN.has(`${task.status} ${to}`)) return 'lease_expired'
    if (to === 'in_progress') {
      if (!held) this.start(id, agent, ttl)
      else if (task.status !== 'in_progress') Object.assign(task, begun(task))
      return 'ok'
    }
    // Done is read-only: to say it again only gives back the lock.
    if (task.status !== 'done') Object.assign(task, { status: to, version: task.version + 1 })
    if (held) held.live = false
    return 'ok'
  }

  edit(id: string, agent: string, version: number): Verdict {
    const task = this.tasks.get(id)
    if (!task) return 'not_found'
    const held = this.held(`task:${id}`)
    if (held && held.holder !== agent) return 'held'
    if (task.version !== version) return 'conflict'
    if (task.status === 'done') return 'illegal_move'
    task.version += 1
    return 'ok'
  }
}

const begun = ({ version, runs }: { version: number; runs: number }) => ({
  status: 'in_progress',
  version: version + 1,
  runs: runs + 1,
})

/** What anybody may do to a task that nobody holds. */
const OPEN = new Set([
  'todo in_progress',
  'review in_progress',
  'review done',
  'review todo',
  'todo cancelled',
  'failed todo',
  'cancelled todo',
])
