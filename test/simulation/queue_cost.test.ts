import type { IndexName } from '../../src/core/schema/schema.ts'
import type { Cursor } from '../../src/core/schema/indexes.ts'
import { afterEach, describe, expect, test } from 'vitest'
import { dispatchNext } from '../../src/core/queue/dispatch.ts'
import { claimNext } from '../../src/core/tasks/claim.ts'
import type { View } from '../../src/core/view.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { callerOf, MachineSim, openMemory, temporaryFolder } from '../support/helpers.ts'
import { type EnqueueOptions, QueueVerbs } from '../support/queue_verbs.ts'

const opened: Store[] = []

class Scene {
  readonly machine = new MachineSim()
  readonly process = this.machine.spawn()
  readonly verbs: QueueVerbs

  constructor() {
    const store = openMemory(temporaryFolder(), this.machine)
    opened.push(store)
    this.verbs = new QueueVerbs(store)
  }

  async enqueue(count: number, more: (i: number) => EnqueueOptions): Promise<void> {
    await Promise.all(Array.from({ length: count }, (_, i) => this.verbs.enqueue(more(i))))
  }

  /** How many rows a dispatcher looks at to find what is next, or that there is nothing. */
  async cost(dispatcher = 'd'): Promise<number> {
    const { process } = this
    return this.verbs.store.write((view) => {
      const counted = new Counted(view)
      dispatchNext(counted.view, {
        dispatcher: `dispatcher:${dispatcher}`,
        ttl_ms: 60_000,
        process,
        agentFor: () => 'run',
        token_hash: 'token',
      })
      return counted.rows
    })
  }
}

/** A view that counts the rows that are read from it. */
class Counted {
  rows = 0
  readonly view: View

  constructor(inner: View) {
    const counted = Object.create(inner) as View
    counted.get = (table, key) => {
      this.rows += 1
      return inner.get(table, key)
    }
    counted.scan = <I extends IndexName>(index: I, group: string, after?: Cursor) =>
      this.count(inner.scan(index, group, after))
    this.view = counted
  }

  private *count<Row>(rows: Iterable<Row>): Generator<Row> {
    for (const row of rows) {
      this.rows += 1
      yield row
    }
  }
}

type Prepare = (scene: Scene, count: number) => Promise<void>

const CASES: [what: string, prepare: Prepare][] = [
  [
    'tasks of a user who is busy',
    async (scene, count) => {
      await scene.enqueue(count, () => ({}))
      await scene.verbs.take('user:ann', callerOf('ada'))
      await scene.verbs.enqueue({ user: 'ben' })
    },
  ],
  [
    'users who are busy',
    async (scene, count) => {
      await scene.enqueue(count, (i) => ({ user: `u${i}` }))
      for (let i = 0; i < count; i += 1) await scene.verbs.take(`user:u${i}`, callerOf(`a${i}`))
    },
  ],
  [
    'users whose project was found full before',
    async (scene, count) => {
      await scene.verbs.limit({ project: 'web', max: 0 })
      await scene.enqueue(count, (i) => ({ user: `u${i}` }))
      // As often as it takes: how many are put aside at once is for the rules to say.
      for (let i = 0; i < count; i += 1) await scene.cost()
    },
  ],
  [
    'users who wait beside the one that is next',
    async (scene, count) => scene.enqueue(count, (i) => ({ user: `u${i}` })),
  ],
]

/** How much more a dispatch reads when there are four times as many. */
async function growthOf(prepare: Prepare): Promise<number> {
  const costs: number[] = []
  for (const count of [40, 160]) {
    const scene = new Scene()
    await scene.verbs.register('d')
    await prepare(scene, count)
    costs.push(await scene.cost())
  }
  return costs[1]! / costs[0]!
}

test('a claim costs the same however many tasks of a busy user are ready', async () => {
  const costs: number[] = []
  for (const count of [40, 160]) {
    const { verbs } = new Scene()
    const ada = callerOf('ada')
    for (let i = 0; i < count; i += 1) await verbs.add('x', ada, { id: `a${i}`, user: 'ann' })
    await verbs.add('x', ada, { id: 'b', user: 'ben', priority: 1 })
    await verbs.claim('a0', ada)
    const [rows, claimed] = await verbs.store.write((view) => {
      const counted = new Counted(view)
      const ask = { ttl_ms: 60_000, process: null, takeover: false }
      const claims = claimNext(counted.view, {}, ask, callerOf('bob'))
      return [counted.rows, claims.map(({ task }) => task.id)] as const
    })
    expect(claimed).toEqual(['b'])
    costs.push(rows)
  }
  expect(costs[1]! / costs[0]!).toBeLessThan(1.2)
  for (const store of opened.splice(0)) await store.close()
})

/** R21: eligibility lives in indexed state; nothing scans what is blocked. */
describe('what a dispatch of the queue costs', () => {
  afterEach(async () => {
    for (const store of opened.splice(0)) await store.close()
  })

  test.each(CASES)('does not grow with %s', async (_, prepare) => {
    expect(await growthOf(prepare)).toBeLessThan(2)
  })

  const PASSED: [what: string, prepare: Prepare][] = [
    [
      // Once: each is parked, and not looked at again.
      'users whose project is found full now',
      async (scene, count) => {
        await scene.verbs.limit({ project: 'web', max: 0 })
        await scene.enqueue(count, (i) => ({ user: `u${i}` }))
      },
    ],
    [
      'users whom another dispatcher serves',
      async (scene, count) => {
        await scene.verbs.register('mac', { projects: ['ios'] })
        await scene.enqueue(count, (i) => ({ user: `u${i}`, project: 'ios' }))
      },
    ],
  ]

  test.each(PASSED)('grows no faster than the number of %s', async (_, prepare) => {
    expect(await growthOf(prepare)).toBeLessThan(5)
  })
})
