import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/core/refusal.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, MachineSim, sqliteBackend, temporaryFolder, Verbs } from '../support/helpers.ts'
import { Random } from '../simulation/random.ts'
import { Mirror } from './mirror.ts'

const AGENTS = ['a', 'b', 'c', 'a/x'] as const
const LOCKS = ['l1', 'l2', 'task:1', 'task:3'] as const

function step(verbs: Verbs, random: Random): Promise<unknown> {
  const caller = callerOf(random.pick(AGENTS))
  const ttl_ms = 1_000 + random.below(9_000)
  const id = String(1 + random.below(12))
  switch (random.below(8)) {
    case 0:
    case 1:
      return verbs.add('t', caller, {
        project: random.chance(0.5) ? 'p' : null,
        labels: random.chance(0.5) ? ['x'] : [],
        depends_on: random.chance(0.2) ? [id] : [],
        assigned_to: random.chance(0.2) ? random.pick(AGENTS) : null,
      })
    case 2:
      return verbs.next(caller, random.pick([{}, { project: 'p' }, { label: 'x' }]), { ttl_ms })
    case 3:
      return verbs.claim(id, caller, { ttl_ms })
    case 4:
      return verbs.move(id, random.pick(['done', 'todo', 'review', 'in_progress']), caller)
    case 5:
      return verbs.wait(random.some(LOCKS, 1 + random.below(2)), caller, `w${random.below(8)}`, {
        ttl_ms,
      })
    case 6:
      return verbs.release(random.pick(LOCKS), caller)
    default:
      return verbs.heartbeat(caller)
  }
}

describe('two SQLite writers with a memory of their own', () => {
  it.each([1, 2, 3, 4])('never act on what the other has changed (seed %i)', async (seed) => {
    const random = new Random(seed)
    const machine = new MachineSim()
    const dir = temporaryFolder()
    const mirror = new Mirror()
    const backends = [sqliteBackend(dir), sqliteBackend(dir)]
    const looks = backends.map((backend) => mirror.watch(backend))
    const stores = backends.map((backend) => new Store(backend, machine))
    const verbs = stores.map((store) => new Verbs(store))
    let one = random.pick(verbs)
    for (let round = 0; round < 150; round += 1) {
      machine.advance(random.below(1_500))
      // One may write for a while before the other does: what it remembers gets old.
      if (random.chance(0.25)) one = random.pick(verbs)
      const asks = Array.from({ length: 1 + random.below(8) }, () => step(one, random))
      for (const { status, ...rest } of await Promise.allSettled(asks)) {
        if (status === 'rejected')
          expect((rest as PromiseRejectedResult).reason).instanceOf(Refusal)
      }
    }
    for (const store of stores) await store.close()
    expect(Math.min(...looks.map(({ count }) => count))).toBeGreaterThan(500)
  })
})
