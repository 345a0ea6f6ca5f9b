import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { Refusal } from '../../src/core/refusal.ts'
import { placeOf } from '../../src/stores/open.ts'
import type { Commit } from '../../src/stores/port.ts'
import { type Address, addressOf, channelOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { raisePostgresEpoch, checkPostgres } from '../../src/stores/postgres/care.ts'
import type { Connection } from '../../src/stores/postgres/driver.ts'
import { FENCES_PER_EPOCH } from '../../src/stores/writer/layer.ts'
import { raiseEpoch } from '../../src/stores/care.ts'
import { forgetOld } from '../../src/stores/writer/prune.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { KEEP_ALL } from './retention_scene.ts'
import { callerOf, expectRefusal, MachineSim, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresBackend, postgresUrl } from '../support/postgres.ts'
import { until } from '../support/processes.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')

function openAt(url: string, busy_timeout_ms = 5_000): Verbs {
  const backend = new PostgresBackend({ address: addressOf(url), busy_timeout_ms })
  return new Verbs(new Store(backend, new MachineSim()))
}

async function ask(text: string): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  await client.connect()
  const { rows } = await client.query<Record<string, unknown>>(text)
  await client.end()
  return rows
}

const schemaOf = (url: string) => new URL(url).searchParams.get('schema')!

describe('the clock of a PostgreSQL store', () => {
  test('is the database’s, whatever the clocks of machines say', async () => {
    const machine = new MachineSim()
    const backend = postgresBackend(temporaryFolder(), { clock: 'database' })
    const verbs = new Verbs(new Store(backend, machine))
    await verbs.take('long', ada, { ttl_ms: 60_000 })
    await verbs.take('short', ada, { ttl_ms: 1_000 })
    machine.advance(365 * 24 * 3600_000)
    machine.reboot()
    await expectRefusal(verbs.take('long', bob), 'held')
    const free = () => verbs.take('short', bob).catch(() => undefined)
    expect(await until('the lease is over', free, 10_000)).toMatchObject({ holder: 'bob' })
    await verbs.store.close()
  })
})

describe('a PostgreSQL store', () => {
  test('reads as empty before its first write, and reading makes nothing', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    expect(await verbs.lease('a')).toBeUndefined()
    expect(await verbs.eventTypes()).toEqual([])
    const found = `SELECT 1 FROM pg_namespace WHERE nspname = '${schemaOf(url)}'`
    expect(await ask(found)).toEqual([])
    await verbs.store.close()
  })

  test('is damaged after its schema was dropped, until somebody raises its epoch', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    const { fence } = await verbs.take('a', ada)
    await ask(`DROP SCHEMA ${schemaOf(url)} CASCADE`)
    await expectRefusal(verbs.take('b', ada), 'unavailable')
    // Made anew, it would give the same fences again to those who know the old ones.
    const told = await expectRefusal(verbs.take('b', ada), 'damaged')
    expect(told.next).toMatch(/db restore --raise-epoch/)
    await expectRefusal(verbs.lease('a'), 'damaged')
    const folder = temporaryFolder()
    const place = { kind: 'postgres', folder, path: url, url, busy_timeout_ms: 5_000 } as const
    await raiseEpoch(place)
    expect((await verbs.take('a', ada)).fence).toBeGreaterThan(fence)
    await verbs.store.close()
  })

  test('is not damaged for reads that cross with writes of the same process', async () => {
    const verbs = openAt(postgresUrl(temporaryFolder()))
    const times = async (act: (name: string) => Promise<unknown>) => {
      for (let i = 0; i < 100; i++) await act(`lock-${i}`)
    }
    const write = times((name) => verbs.take(name, ada))
    const reads = Array.from({ length: 6 }, () => times((name) => verbs.lease(name)))
    expect(await Promise.all([write, ...reads])).toHaveLength(7)
    await verbs.store.close()
  })

  test('that was put back by other means is damaged for all who saw more of it', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    for (const name of ['a', 'b']) await verbs.take(name, ada)
    await ask(`UPDATE ${schemaOf(url)}.head SET fences = 1, commits = commits + 1`)
    await expectRefusal(verbs.take('c', ada), 'damaged')
    await expectRefusal(verbs.lease('a'), 'damaged')
    await verbs.store.close()
  })

  test('that a newer program migrated is refused by those who have it open', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    await verbs.take('a', ada)
    await verbs.lease('a')
    await ask(`INSERT INTO ${schemaOf(url)}.migration VALUES (99, now())`)
    for (const asking of [() => verbs.take('b', ada), () => verbs.lease('a')]) {
      const told = await expectRefusal(asking(), 'unavailable')
      expect(told.message).toMatch(/newer leasehold/)
      expect(told.details).toMatchObject({ stopping: true })
    }
    await verbs.store.close()
  })

  test('of a newer program is refused', async () => {
    const url = postgresUrl(temporaryFolder())
    const first = openAt(url)
    await first.sweep()
    await first.store.close()
    await ask(`INSERT INTO ${schemaOf(url)}.migration VALUES (99, now())`)
    const verbs = openAt(url)
    expect((await expectRefusal(verbs.take('a', ada), 'unavailable')).message).toMatch(/newer/)
    await expectRefusal(verbs.lease('a'), 'unavailable')
    await verbs.store.close()
  })

  test('commits durably though the session was told otherwise', async () => {
    const url = new URL(postgresUrl(temporaryFolder()))
    url.searchParams.set('options', '-c synchronous_commit=off')
    const verbs = openAt(url.href)
    expect(await verbs.take('a', ada)).toMatchObject({ holder: 'ada' })
    await verbs.store.close()
  })

  test('tells followers of commits by others before they would look', async () => {
    const url = postgresUrl(temporaryFolder())
    const [mine, other] = [openAt(url), openAt(url)]
    await mine.sweep()
    await mine.store.follow(100)
    const heard: string[] = []
    mine.store.onCommit((events) => heard.push(...events.map(({ lock }) => lock!)))
    for (const name of ['a', 'b', 'c']) await other.take(name, ada)
    await until('all were heard', () => heard.length === 3)
    expect(heard).toEqual(['a', 'b', 'c'])
    // Others listen on this server too: to channels of their own.
    const ended = await ask(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE query = 'LISTEN ${channelOf(schemaOf(url))}'`)
    expect(ended).toHaveLength(1)
    await other.take('d', ada)
    await until('polling has found it', () => heard.length === 4)
    await Promise.all([mine.store.close(), other.store.close()])
  })
})

interface Begins {
  beginWriting: string
  beginWritingAfter: (seen: number) => string
}

/** Begins its transactions otherwise than it should. */
function openWrongly(url: string, begin: (right: string) => string, make = PostgresBackend): Verbs {
  const backend = new make({ address: addressOf(url), busy_timeout_ms: 5_000 })
  const { statements } = backend as unknown as { statements: Begins }
  const { beginWriting, beginWritingAfter } = statements
  statements.beginWriting = begin(beginWriting)
  statements.beginWritingAfter = (seen) => begin(beginWritingAfter(seen))
  return new Verbs(new Store(backend, new MachineSim()))
}

const MISTAKES = {
  'is not taken': (text: string) => text.replace(/SELECT pg_advisory_xact_lock[^;]*;/, ''),
  'is taken after the head was read': (text: string) => {
    const [begin, lock, head] = text.split(';') as [string, string, string]
    const seen = head.includes('.recent') ? 'seen_after' : 'seen'
    const reads = `CREATE TEMP TABLE IF NOT EXISTS ${seen} AS ${head} WITH NO DATA`
    return `${begin}; ${reads}; TRUNCATE ${seen}; INSERT INTO ${seen} ${head}; ${lock};
      SELECT * FROM ${seen}`
  },
}

/** Four writers ask for the same locks, and for their own: the fences they were given. */
async function fencesOf(writers: Verbs[]): Promise<number[]> {
  const told = writers.map(async (verbs, w) => {
    const fences: number[] = []
    for (let i = 0; i < 40; i += 1) {
      const all = [`lock-${i}`, `own-${w}-${i}`].map((name) => verbs.take(name, callerOf(`w${w}`)))
      for (const each of await Promise.allSettled(all)) {
        // Events would not fit in twice either, but that is an accident, not an answer.
        if (each.status === 'rejected') expect(each.reason).toBeInstanceOf(Refusal)
        else fences.push(each.value.fence)
      }
    }
    return fences
  })
  return (await Promise.all(told)).flat()
}

/** Writes whatever was committed since it has read the head. */
class Blind extends PostgresBackend {
  override async commit(commit: Commit) {
    const self = this as unknown as { commits: number; writer: Connection }
    const { quoted } = this.place
    const [row] = await self.writer.run(`SELECT commits::text FROM ${quoted}.head`)
    self.commits = Number(row![0])
    return super.commit(commit)
  }

  private get place() {
    return (this as unknown as { options: { address: Address } }).options.address
  }
}

describe('when the lock of the writers', () => {
  test.each(Object.entries(MISTAKES))(
    '%s, nothing is granted twice all the same',
    async (_, how) => {
      const url = postgresUrl(temporaryFolder())
      const right = openAt(url)
      await right.sweep()
      const writers = Array.from({ length: 4 }, () => openWrongly(url, how))
      const fences = await fencesOf(writers)
      expect(fences.length).toBeGreaterThan(40)
      expect(new Set(fences).size).toBe(fences.length)
      const positions = (await right.store.events(0, 10_000)).map(({ position }) => position)
      expect(positions).toEqual(positions.map((__, i) => i + 1))
      await Promise.all([right, ...writers].map((verbs) => verbs.store.close()))
    },
  )

  test('is taken after the head was read, and nothing else guards, that is seen', async () => {
    const url = postgresUrl(temporaryFolder())
    await openAt(url).sweep()
    await ask(`ALTER TABLE ${schemaOf(url)}.event DROP CONSTRAINT event_pkey`)
    const how = MISTAKES['is taken after the head was read']
    const writers = Array.from({ length: 4 }, () => openWrongly(url, how, Blind))
    const fences = await fencesOf(writers)
    expect(new Set(fences).size).toBeLessThan(fences.length)
    await Promise.all(writers.map((verbs) => verbs.store.close()))
  })
})

describe('care for a PostgreSQL store', () => {
  const where = (url: string) => ({ url, folder: temporaryFolder(), busy_timeout_ms: 5_000 })

  test('finds an event that was changed', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    for (const name of ['a', 'b', 'c']) await verbs.take(name, ada)
    await verbs.store.close()
    const fsync = /fsync/
    const sound = await checkPostgres(where(url))
    expect(sound.problems.filter((each) => !fsync.test(each))).toEqual([])
    await ask(`UPDATE ${schemaOf(url)}.event SET agent = 'eve' WHERE position = 2`)
    expect((await checkPostgres(where(url))).problems[0]).toBe(
      'event 2 was changed after it was recorded',
    )
  })

  test('leaves it to the database that a lock has one row', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    await verbs.take('a', ada)
    await verbs.store.close()
    const lease = `${schemaOf(url)}.lease`
    const twice = ask(`INSERT INTO ${lease} SELECT * FROM ${lease}`)
    await expect(twice).rejects.toMatchObject({ code: '23505' })
  })

  test('prunes events behind a checkpoint', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    for (const name of ['a', 'b', 'c']) await verbs.take(name, ada)
    const retention = { ...KEEP_ALL, events: { days: null, max: 1 } }
    expect(await forgetOld(verbs.store, { retention })).toEqual({ events: 2 })
    expect(await verbs.eventTypes()).toHaveLength(1)
    await verbs.store.close()
    const { problems, events } = await checkPostgres(where(url))
    expect(problems.filter((each) => !/fsync/.test(each))).toEqual([])
    expect(events).toBe(1)
  })

  test('raises the epoch after a restore: leases end, and no fence comes again', async () => {
    const url = postgresUrl(temporaryFolder())
    const verbs = openAt(url)
    const { fence } = await verbs.take('a', ada)
    const here = where(url)
    await raisePostgresEpoch(here)
    await expectRefusal(verbs.renew('a', ada, fence), 'lease_expired')
    expect((await verbs.take('a', ada)).fence).toBe(FENCES_PER_EPOCH + 1)
    await ask(`UPDATE ${schemaOf(url)}.head SET epoch = 0, fences = 1, commits = commits + 1`)
    await raisePostgresEpoch(here)
    expect((await verbs.take('b', ada)).fence).toBe(2 * FENCES_PER_EPOCH + 1)
    await verbs.store.close()
  })
})

describe('the address of a PostgreSQL store', () => {
  test('is shown without its password', () => {
    const env = {
      LEASEHOLD_STORE: 'postgres://u:s3cret@h:5/d?schema=x_1',
      LEASEHOLD_DIR: '/nowhere',
    }
    const place = placeOf(env, '/')
    expect(place).toMatchObject({ kind: 'postgres', path: 'postgres://u@h:5/d?schema=x_1' })
  })

  test.each(['a b', 'x;y', 'X', '1a', '"', 'a'.repeat(64)])('may not name a schema %s', (name) => {
    const url = `postgres://h/d?schema=${encodeURIComponent(name)}`
    expect(() => addressOf(url)).toThrow(/schema/)
  })

  test('of nobody gives unavailable in good time, and says no secrets', async () => {
    const verbs = openAt('postgres://u:s3cret@127.0.0.1:1/d', 300)
    const asks = Array.from({ length: 20 }, () => verbs.take('a', ada))
    const began = performance.now()
    for (const each of asks) {
      const { message, next, details } = await expectRefusal(each, 'unavailable')
      expect(JSON.stringify({ message, next, details })).not.toContain('s3cret')
    }
    expect(performance.now() - began).toBeLessThan(3_000)
    await expectRefusal(verbs.lease('a'), 'unavailable')
    await verbs.store.close()
  })

  test('with a wrong password is refused at once', async () => {
    const url = new URL(process.env['DATABASE_URL']!)
    url.password = 'wr0ng'
    const verbs = openAt(url.href)
    const { message } = await expectRefusal(verbs.take('a', ada), 'unavailable')
    expect(message).toMatch(/does not let us in/)
    expect(message).not.toContain('wr0ng')
    await verbs.store.close()
  })
})
