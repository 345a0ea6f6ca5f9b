import { Client } from 'pg'
import { expect, test } from 'vitest'
import { moveTask } from '../../src/core/tasks/move.ts'
import { claimQueued, enqueueTask } from '../../src/core/queue/queue.ts'
import { acquireLocks, releaseLock } from '../../src/core/locks/lock.ts'
import type { View } from '../../src/core/view.ts'
import type { Connection } from '../../src/stores/postgres/driver.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, MachineSim, temporaryFolder } from '../support/helpers.ts'
import { postgresBackend, postgresUrl } from '../support/postgres.ts'

const CALLERS = 8
const GRANT = { ttl_ms: 60_000, process: null, takeover: false }
const QUEUED = { agent_command: null, time_limit_ms: null, retries: 0, failed: 0, lost: 0 }
const REST = { labels: [], depends_on: [], assigned_to: null, metadata: {}, title: 't', body: '' }
const fieldsOf = (user: string | null) => ({
  user,
  project: 'web',
  priority: 5,
  group: null,
  ...REST,
})

/** What a caller does again and again: a first step, and a second one in another commit. */
type Work = (store: Store, i: number) => Promise<unknown>

const fromQueue: Work = async (store, i) => {
  const caller = callerOf(`a${i}`)
  const claim = await store.write((view) => claimQueued(view, { ...GRANT, as: () => caller }))
  const { task, lease } = claim!
  await store.write((view) => {
    moveTask(view, { id: task.id, to: 'done', fence: lease.fence, ...GRANT }, caller)
    enqueueTask(view, { ...fieldsOf(task.user), queue: QUEUED }, caller)
  })
}

const sameLock: Work = async (store, i) => {
  const caller = callerOf(`a${i}`)
  const ask = { names: [`lock-${i}`], priority: 5, ...GRANT }
  await store.write((view) => acquireLocks(view, ask, caller))
  await store.write((view) => releaseLock(view, { name: `lock-${i}` }, caller))
}

const fill = (view: View, n: number) =>
  enqueueTask(view, { ...fieldsOf(`user-${n % CALLERS}`), queue: QUEUED }, callerOf('ada'))

test.each(Object.entries({ fromQueue, sameLock }))(
  'a transaction that is left open does not make work dearer: %s',
  async (_, work) => {
    const dir = temporaryFolder()
    const backend = postgresBackend(dir, { clock: 'database' })
    const store = new Store(backend, new MachineSim())
    const numbers = Array.from({ length: 4 * CALLERS }, (__, n) => n)
    await Promise.all(numbers.map((n) => store.write((view) => fill(view, n))))
    const left = new Client(process.env['DATABASE_URL'])
    await left.connect()
    await left.query('BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT 1 FROM pg_class LIMIT 1')
    const schema = new URL(postgresUrl(dir)).searchParams.get('schema')!
    const rounds = async (n: number) => {
      for (let round = 0; round < n; round += 1) {
        await Promise.all(Array.from({ length: CALLERS }, (__, i) => work(store, i)))
      }
      return touched(backend, schema)
    }
    const first = await rounds(10)
    const early = (await rounds(10)) - first
    const between = await rounds(60)
    const late = (await rounds(10)) - between
    await left.end()
    await store.close()
    // Indexes get a level deeper: 1.3. Where every version of a row was passed again, it was 3.
    expect(late / early).toBeLessThan(2)
  },
)

/** Pages of tables and indexes that were looked at so far. */
async function touched(backend: object, schema: string): Promise<number> {
  const { writer } = backend as { writer: Connection }
  await writer.run('SELECT pg_stat_force_next_flush()')
  const [row] = await writer.run(`SELECT sum(heap_blks_hit + heap_blks_read
    + coalesce(idx_blks_hit + idx_blks_read, 0))::text
    FROM pg_statio_user_tables WHERE schemaname = '${schema}'`)
  return Number(row![0])
}
