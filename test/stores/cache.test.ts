import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { Refusal } from '../../src/core/refusal.ts'
import type { TableName, Tables } from '../../src/core/rows.ts'
import type { Cursor, IndexName } from '../../src/core/view.ts'
import { MemoryTables } from '../../src/stores/memory.ts'
import { cursorOf } from '../../src/stores/page.ts'
import type { Commit } from '../../src/stores/port.ts'
import { SqliteBackend } from '../../src/stores/sqlite/backend.ts'
import { Store } from '../../src/stores/store.ts'
import { callerOf, MachineSim, temporaryFolder, Verbs } from '../helpers.ts'
import { Random } from '../simulation/random.ts'

/** What a writer remembers between batches must be what is committed: compared at every look. */
class Checked extends SqliteBackend {
  private readonly mirror: MemoryTables
  looks = 0

  constructor(path: string, mirror: MemoryTables) {
    super({ path, busy_timeout_ms: 5_000 })
    this.mirror = mirror
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

  override isDue(index: IndexName, group: string, until: number): boolean {
    const due = super.isDue(index, group, until)
    this.looks += 1
    const [first] = this.mirror.scan(index, group, undefined, 1)
    const isReally = first !== undefined && Number(cursorOf(index, first).order) <= until
    expect(due, `${index} until ${until}`).toBe(isReally)
    return due
  }

  override commit(commit: Commit): 'done' {
    const done = super.commit(commit)
    this.mirror.apply(commit.changes)
    return done
  }
}

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
    const path = join(temporaryFolder(), 'leasehold.db')
    const mirror = new MemoryTables()
    const backends = [new Checked(path, mirror), new Checked(path, mirror)]
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
    expect(Math.min(...backends.map((backend) => backend.looks))).toBeGreaterThan(500)
  })
})
