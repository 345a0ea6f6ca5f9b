import { Client } from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import type { Commit } from '../../src/stores/port.ts'
import { checkPostgres } from '../../src/stores/postgres/care.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import type { Connection } from '../../src/stores/postgres/driver.ts'
import { callerOf, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { type PostgresServer, startPostgres } from '../support/postgres_server.ts'
import { ROUNDS } from '../support/processes.ts'
import { checkCounts } from '../simulation/counts.ts'
import { countsAt, openAt, Writers } from './postgres_writers.ts'

const KILLS = ROUNDS === 1 ? 2 : 20
const BACK_MS = 5_000
const PATIENT = { interval: 10, timeout: 30_000 }
const ada = callerOf('ada')

async function expectNothingLostOrDoubled(url: string, { acknowledged }: Writers): Promise<void> {
  const counts = await countsAt(url)
  expect(acknowledged.filter((title) => counts.get(title) !== 1)).toEqual([])
  const where = { url, folder: temporaryFolder(), busy_timeout_ms: 5_000 }
  expect((await checkPostgres(where)).problems).toEqual([])
  const store = openAt(url)
  await checkCounts(store).finally(() => store.close())
}

const until = (met: () => boolean) => vi.waitFor(() => expect(met()).toBe(true), PATIENT)

describe('a server that is killed', () => {
  let server: PostgresServer
  afterAll(() => server.stop())

  test(
    `${KILLS} times under 16 writers loses nothing, doubles nothing, and is found again`,
    async () => {
      server = await startPostgres({ fsync: true })
      const writers = new Writers(server.url, 16)
      const back_ms: number[] = []
      for (let i = 0; i < KILLS; i += 1) {
        const before = writers.acknowledged.length
        await until(() => writers.acknowledged.length > before + 100)
        await server.kill()
        await server.start()
        const ready_ms = performance.now()
        await until(() => writers.answered_ms > ready_ms)
        back_ms.push(writers.answered_ms - ready_ms)
      }
      await writers.stop()
      await expectNothingLostOrDoubled(server.url, writers)
      expect(Math.max(...back_ms)).toBeLessThan(BACK_MS)
      const said = JSON.stringify([...writers.said])
      const after = back_ms.map(Math.round).join()
      process.stderr.write(`${writers.acknowledged.length} written, back in ${after} ms, ${said}\n`)
    },
    60_000 + KILLS * 20_000,
  )
})

/** Other tests use the same server at the same time: their sessions are not ours to end. */
const OURS = 'leasehold_lost'

function ourUrl(dir: string): string {
  const url = new URL(postgresUrl(dir))
  url.searchParams.set('application_name', OURS)
  return url.href
}

/** Ends the sessions of these tests in the database, as an admin or a failover would. */
async function endSessions(): Promise<void> {
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  await client.connect()
  await client.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE application_name = '${OURS}'`)
  await client.end()
}

let aim: 'prefetch' | 'write' | 'commit' | undefined

/** Loses its connection at the step that is aimed at, once. */
class Unlucky extends PostgresBackend {
  override async begin() {
    const head = await super.begin()
    if (aim === 'prefetch') await this.lose()
    return head
  }

  override async commit(commit: Commit) {
    if (aim === 'write') await this.lose()
    if (aim === 'commit') {
      const self = this as unknown as { finish: (db: Connection) => Promise<void> }
      const { finish } = self
      self.finish = async (db) => {
        self.finish = finish
        await this.lose()
        await finish.call(this, db)
      }
    }
    return super.commit(commit)
  }

  private async lose(): Promise<void> {
    aim = undefined
    await endSessions()
  }
}

describe('a connection that ends', () => {
  const dir = temporaryFolder()

  test.each(['prefetch', 'write'] as const)('before the %s is made again', async (step) => {
    const store = openAt(ourUrl(`${dir}/${step}`), Unlucky)
    const verbs = new Verbs(store)
    await verbs.take('a', ada)
    aim = step
    const asks = Array.from({ length: 20 }, (_, i) => verbs.take(`b${i}`, ada))
    const fences = (await Promise.all(asks)).map((lease) => lease.fence)
    expect(fences).toEqual(fences.map((_, i) => i + 2))
    expect(await verbs.eventTypes()).toHaveLength(21)
    await store.close()
  })

  test('in the commit makes the outcome unknown, and the next ask goes on', async () => {
    const store = openAt(ourUrl(`${dir}/commit`), Unlucky)
    const verbs = new Verbs(store)
    await verbs.take('a', ada)
    aim = 'commit'
    await expect(verbs.take('b', ada)).rejects.toMatchObject({
      code: 'unavailable',
      details: { outcome: 'unknown' },
    })
    expect(await verbs.take('c', ada)).toMatchObject({ holder: 'ada' })
    await store.close()
  })

  test('at any moment, again and again, loses nothing and doubles nothing', async () => {
    const url = ourUrl(`${dir}/any`)
    const writers = new Writers(url, 8)
    for (let i = 0; i < 20; i += 1) {
      const before = writers.acknowledged.length
      await until(() => writers.acknowledged.length > before + 20)
      await endSessions()
    }
    await writers.stop()
    const counts = await countsAt(url)
    expect(writers.acknowledged.filter((title) => counts.get(title) !== 1)).toEqual([])
  })
})
