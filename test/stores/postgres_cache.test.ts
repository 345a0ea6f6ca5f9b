import { describe, expect, test } from 'vitest'
import { claimQueued, enqueueTask } from '../../src/core/queue/queue.ts'
import { moveTask } from '../../src/core/tasks/move.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { setLimit } from '../../src/core/queue/settings.ts'
import type { View } from '../../src/core/view.ts'
import type { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, MachineSim, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresBackend } from '../support/postgres.ts'
import { Random } from '../simulation/random.ts'
import { Mirror } from './mirror.ts'

/** Counts how often a writer went on from what it knew, though the other had committed since. */
function countsOf(backend: PostgresBackend): { followed: number; forgot: number } {
  const counts = { followed: 0, forgot: 0 }
  const { known } = backend as unknown as { known: { forget: () => void; follow: () => void } }
  const { forget, follow } = known
  known.forget = () => {
    counts.forgot += 1
    forget.call(known)
  }
  known.follow = (...args) => {
    counts.followed += 1
    follow.apply(known, args)
  }
  return counts
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
    const mirror = new Mirror()
    const backends = [postgresBackend(dir), postgresBackend(dir)]
    const looks = backends.map((backend) => mirror.watch(backend))
    const counts = backends.map(countsOf)
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
    for (const { count } of looks) expect(count).toBeGreaterThan(1_000)
    for (const { followed, forgot } of counts) {
      expect(followed).toBeGreaterThan(20)
      expect(forgot).toBeLessThan(5)
    }
  })
})
