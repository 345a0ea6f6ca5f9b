import { Client } from 'pg'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { machine } from '../../src/machine/machine.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import { isAway } from '../../src/stores/postgres/errors.ts'
import { statementsFor } from '../../src/stores/postgres/statements.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'

const BUSY_MS = 400
const WRITERS = 8
const HELD_MS = 200

async function scene() {
  const url = postgresUrl(temporaryFolder())
  const address = addressOf(url)
  const store = new Store(new PostgresBackend({ address, busy_timeout_ms: BUSY_MS }), machine)
  onTestFinished(() => store.close())
  await store.write(() => undefined)
  return { store, statements: statementsFor(address) }
}

async function connected(): Promise<Client> {
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end().catch(() => undefined))
  return client
}

const PATIENT = { interval: 5, timeout: 10_000 }

describe('a writer in line', () => {
  test('waits for any number of slow ones in turn, though none of them commits', async () => {
    const { store, statements } = await scene()
    const others = await Promise.all(Array.from({ length: WRITERS }, connected))
    const look = await connected()
    const held = others.map((client) =>
      client.query(`${statements.lock}; SELECT pg_sleep(${HELD_MS / 1000}); ROLLBACK`),
    )
    const inLine = async () => (await look.query(statements.line)).rows.length
    await vi.waitFor(async () => expect(await inLine()).toBe(WRITERS), PATIENT)
    const began_ms = performance.now()
    await store.write(() => undefined)
    // Far longer than its patience with any one of them.
    expect(performance.now() - began_ms).toBeGreaterThan(BUSY_MS * 2)
    await Promise.all(held)
  })

  test('gives up behind one that keeps the lock, and goes on when that has ended', async () => {
    const { store, statements } = await scene()
    const other = await connected()
    await other.query(statements.lock)
    const began_ms = performance.now()
    await expect(store.write(() => undefined)).rejects.toMatchObject({
      code: 'unavailable',
      message: expect.stringMatching(/no progress for 0\.\d s/),
    })
    const took_ms = performance.now() - began_ms
    expect(took_ms).toBeGreaterThanOrEqual(BUSY_MS)
    expect(took_ms).toBeLessThan(BUSY_MS * 10)
    await other.query('ROLLBACK')
    await store.write(() => undefined)
  })

  test('whose session is ended there gets another', async () => {
    const { store, statements } = await scene()
    const other = await connected()
    await other.query(statements.lock)
    const written = store.write(() => undefined)
    const look = await connected()
    const waiting = async () => {
      const { rows } = await look.query(statements.line)
      return rows.filter(({ granted }: { granted: string }) => granted === 'false')
    }
    await vi.waitFor(async () => expect(await waiting()).toHaveLength(1), PATIENT)
    const [{ pid }] = (await waiting()) as [{ pid: string }]
    await look.query('SELECT pg_terminate_backend($1::int)', [pid])
    await vi.waitFor(async () => expect((await waiting())[0]?.pid).not.toBe(pid), PATIENT)
    await other.query('ROLLBACK')
    await written
  })
})

test('a broken pipe is the network’s error, though its name looks like one of PostgreSQL’s', () => {
  expect(isAway(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' }))).toBe(true)
  expect(isAway(Object.assign(new Error('no such table'), { code: '42P01' }))).toBe(false)
})
