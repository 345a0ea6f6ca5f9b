import { describe, expect, test } from 'vitest'
import { claimQueued, enqueueTask } from '../../src/core/queue.ts'
import { moveTask } from '../../src/core/move.ts'
import { Refusal } from '../../src/core/refusal.ts'
import type { TableName, Tables } from '../../src/core/rows.ts'
import { setLimit } from '../../src/core/settings.ts'
import type { Cursor, IndexName, View } from '../../src/core/view.ts'
import { MemoryTables } from '../../src/stores/memory.ts'
import type { Commit } from '../../src/stores/port.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { Store } from '../../src/stores/store.ts'
import { callerOf, MachineSim, temporaryFolder, Verbs } from '../helpers.ts'
import { postgresUrl } from '../postgres.ts'
import { Random } from '../simulation/random.ts'

/** What a writer knows must be what is committed, by whomever: compared at every look. */
class Checked extends PostgresBackend {
  private readonly mirror: MemoryTables
  looks = 0
  /** Batches that went on from what they knew though the other had committed in between. */
  followed = 0
  forgot = 0

  constructor(dir: string, mirror: MemoryTables) {
    const address = addressOf(postgresUrl(dir))
    super({ address, busy_timeout_ms: 5_000, clock: 'machine' })
    this.mirror = mirror
    const { known } = this as unknown as { known: { forget: () => void; follow: () => void } }
    const { forget, follow } = known
    known.forget = () => {
      this.forgot += 1
      forget.call(known)
    }
    known.follow = (...args) => {
      this.followed += 1
      follow.apply(known, args)
    }
  }

  override async commit(commit: Commit) {
    const done = await super.commit(commit)
    this.mirror.apply(commit.changes)
    return done
  }

  override get<T extends TableName>(table: T, key: string): Tables[T] | undefined {
    const row = super.get(table, key)
    this.looks += 1
    expect(row, `${table} ${key}`).toEqual(this.mirror.get(table, key))
    return row
  }

  override scan(index: IndexName, group: string, after: Cursor | undefined, limit: number) {
    const rows = super.scan(index, group, after, limit)
    this.looks += 1
    expect(rows, `${index} ${group}`).toEqual(this.mirror.scan(index, group, after, limit))
    return rows
  }
}

const QUEUED = { agent_command: null, time_limit_ms: null, retries: 1, failed: 0, lost: 0 }
const REST = { labels: [], depends_on: [], assigned_to: null, metadata: {}, title: 't', body: '' }

/** Few users, projects and groups, and low limits: lanes are parked and woken all the time. */
function ask(random: Random): (view: View) => unknown {
  const caller = callerOf(`a${random.below(6)}`)
  const grant = { ttl_ms: 1_000 + random.below(20_000), process: null }
  const project = random.pick(['p', 'q', null])
  const max = random.below(3)
  const task = {
    user: random.pick(['u', 'v', 'w', 'x', null]),
    group: random.pick(['g', 'h', null]),
    priority: random.pick([2, 5, 9]),
    project,
  }
  const to = random.pick(['done', 'failed', 'todo'] as const)
  switch (random.below(8)) {
    case 0:
      return (view) => setLimit(view, { project: random.pick(['p', 'q']), max }, ADMIN)
    case 1:
    case 2:
    case 3:
      return (view) => enqueueTask(view, { ...task, ...REST, queue: QUEUED }, caller)
    case 4:
    case 5:
      return (view) => claimQueued(view, { ...grant, as: () => caller })
    default:
      return (view) => {
        for (const { name, fence, holder } of view.scan('leases_by_expiry', '')) {
          const id = name.replace('task:', '')
          return moveTask(view, { id, to, fence, ...grant }, callerOf(holder))
        }
        return undefined
      }
  }
}

const ADMIN = { ...callerOf('admin'), admin: true }

describe('two PostgreSQL writers that follow each other', () => {
  test.each([1, 2])('know what is committed (seed %i)', async (seed) => {
    const random = new Random(seed)
    const machine = new MachineSim()
    const dir = temporaryFolder()
    const mirror = new MemoryTables()
    const backends = [new Checked(dir, mirror), new Checked(dir, mirror)]
    const stores = backends.map((backend) => new Store(backend, machine))
    await new Verbs(stores[0]!).sweep()
    for (let round = 0; round < 120; round += 1) {
      machine.advance(random.below(1_500))
      const store = random.pick(stores)
      const asks = Array.from({ length: 1 + random.below(12) }, () => store.write(ask(random)))
      for (const settled of await Promise.allSettled(asks)) {
        if (settled.status === 'rejected') expect(settled.reason).toBeInstanceOf(Refusal)
      }
    }
    for (const store of stores) await store.close()
    for (const { looks, followed, forgot } of backends) {
      expect(looks).toBeGreaterThan(1_000)
      expect(followed).toBeGreaterThan(20)
      expect(forgot).toBeLessThan(5)
    }
  })
})
