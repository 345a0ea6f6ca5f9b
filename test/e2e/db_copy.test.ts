import { existsSync, readdirSync, statSync } from 'node:fs'
import { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import { openStore, placeOf } from '../../src/stores/open.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { daemonOn } from '../support/daemons.ts'
import { callerOf, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { type Sandbox, sandbox, until } from '../support/processes.ts'

const ada = callerOf('ada')
/** Enough that a copy takes a moment. */
const TASKS = 8_000

function storeAt(place: Sandbox, store: string): Store {
  return openStore(placeOf({ LEASEHOLD_DIR: place.state, LEASEHOLD_STORE: store }, place.folder))
}

async function fill(place: Sandbox, store: string, tasks: number): Promise<void> {
  const opened = storeAt(place, store)
  const verbs = new Verbs(opened)
  const body = 'x'.repeat(2_000)
  await Promise.all(Array.from({ length: tasks }, (_, i) => verbs.add(`Task ${i}`, ada, { body })))
  await opened.close()
}

async function headOf(place: Sandbox, store: string) {
  const opened = storeAt(place, store)
  const tasks = await opened.read((view) => [...view.scan('tasks', '')].length)
  const head = await opened.head()
  await opened.close()
  return { tasks, position: head.position, fences: head.fences, hash: head.hash }
}

const EMPTY = { tasks: 0, position: 0, fences: 0 }

/** Whether a copy has begun to write into the schema of `url`, and has not ended. */
async function isWriting(url: string): Promise<boolean> {
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  await client.connect()
  const schema = new URL(url).searchParams.get('schema')!
  const text = `SELECT 1 FROM pg_stat_activity WHERE backend_xid IS NOT NULL AND query LIKE $1`
  const { rows } = await client.query(text, [`%${schema}%`])
  await client.end()
  return rows.length > 0
}

describe('leasehold db copy', () => {
  test('moves a store to PostgreSQL and back, and holders go on', async () => {
    const place = sandbox()
    const from = `sqlite:${place.path('state/leasehold.db')}`
    const url = postgresUrl(temporaryFolder())
    const there = { env: { LEASEHOLD_STORE: url } }
    const { fence } = await place.ok(['lock', 'acquire', 'db', '--agent', 'a1', '--ttl', '10m'])
    await place.ok(['task', 'add', 'one', '--request-id', 'r1'])
    const copied = await place.ok(['db', 'copy', '--from', from, '--to', url])
    expect(copied).toMatchObject({ rows: { task: 1, lease: 1 }, events: copied.position, epoch: 0 })
    const renewed = ['lock', 'renew', 'db', '--fence', String(fence), '--agent', 'a1']
    expect(await place.ok(renewed, there)).toMatchObject({ fence })
    await place.refused(['lock', 'acquire', 'db', '--agent', 'a2'], 'held', 5, there)
    await place.ok(['task', 'add', 'one', '--request-id', 'r1'], there)
    const second = await place.ok(['lock', 'acquire', 'other', '--agent', 'a2'], there)
    expect(second.fence).toBeGreaterThan(fence)
    const back = `sqlite:${place.path('back.db')}`
    await place.ok(['db', 'copy', '--from', url, '--to', back])
    const home = { env: { LEASEHOLD_STORE: back } }
    expect(await place.ok(renewed, home)).toMatchObject({ fence })
    expect(await place.ok(['db', 'check'], home)).toMatchObject({ ok: true })
    expect(statSync(place.path('back.db')).mode & 0o777).toBe(0o600)
    expect((await place.ok(['task', 'list'], home)).items).toHaveLength(1)
  })

  test('says to people what was copied and what is next, and never a password', async () => {
    const place = sandbox()
    await place.ok(['task', 'add', 'one'])
    const url = new URL(postgresUrl(temporaryFolder()))
    url.password ||= 's3cret'
    const args = ['db', 'copy', '--from', 'sqlite:', '--to', url.href]
    const { code, out, err } = await place.cli(args)
    expect({ code, err }).toEqual({ code: 0, err: '' })
    expect(out).toMatch(/copied and compared: .*task 1.*event 2/)
    expect(out).toContain(`set  LEASEHOLD_STORE=postgres://`)
    expect(out).not.toContain(`:${url.password}@`)
    const refused = await place.refused(args, 'unavailable', 75)
    expect(JSON.stringify(refused)).not.toContain(`:${url.password}@`)
  })

  test('closes the source, which can be taken back into use', async () => {
    const place = sandbox()
    const { fence } = await place.ok(['lock', 'acquire', 'db', '--agent', 'a1', '--ttl', '10m'])
    const to = `sqlite:${place.path('to/leasehold.db')}`
    const args = ['db', 'copy', '--from', 'sqlite:', '--to', to]
    expect(await place.ok([...args, '--keep-source'])).toMatchObject({ source: 'kept' })
    await place.ok(['lock', 'acquire', 'x', '--agent', 'a1'])
    await place.refused(args, 'conflict', 5)
    const other = `sqlite:${place.path('other/leasehold.db')}`
    const copied = await place.ok(['db', 'copy', '--from', 'sqlite:', '--to', other])
    expect(copied).toMatchObject({ source: 'closed' })
    expect(await place.ok(['lock', 'status', 'db'])).toMatchObject({ lock_holder: 'a1' })
    const asks = ['lock acquire y', 'task add z', 'serve --port 0']
    for (const ask of asks) {
      const { message, next, details } = await place.refused(ask.split(' '), 'unavailable', 75)
      expect(message).toMatch(/copied to sqlite:.*other/)
      expect(next).toMatch(/--take-back/)
      expect(details).toMatchObject({ moved_to: other })
    }
    expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, moved_to: other })
    await place.ok(['db', 'restore', '--take-back', '--yes'])
    const again = await place.ok(['lock', 'acquire', 'db', '--agent', 'a2'])
    expect(again.fence).toBeGreaterThan(2 ** 40)
    await place.refused(['lock', 'renew', 'db', '--fence', String(fence)], 'fence_stale', 5)
    await place.refused(['db', 'restore', '--take-back'], 'invalid', 2)
  })

  test('takes the password from the environment', async () => {
    const place = sandbox()
    await place.ok(['task', 'add', 'one'])
    const url = new URL(postgresUrl(temporaryFolder()))
    const env = { PGPASSWORD: url.password }
    url.password = ''
    const args = ['db', 'copy', '--from', 'sqlite:', '--to', url.href]
    expect(await place.ok(args, { env })).toMatchObject({ rows: { task: 1 } })
  })

  test('refuses a store that a server runs on, until it was stopped', async () => {
    const place = sandbox()
    const daemon = await daemonOn(place)
    const to = `file:${place.path('files')}`
    const args = ['db', 'copy', '--from', 'sqlite:', '--to', to]
    const { details } = await place.refused(args, 'held', 5)
    expect(details).toMatchObject({ pid: daemon.running.pid })
    expect(existsSync(place.path('files'))).toBe(false)
    daemon.running.kill('SIGKILL')
    await daemon.running.ended
    expect(await place.ok(args)).toMatchObject({ to: place.path('files') })
  })

  test.each([
    ['mysql://u:s3cret@h/d', 'sqlite:x.db', 'invalid', 2],
    ['leasehold.db', 'sqlite:x.db', 'invalid', 2],
    ['postgres://u:s3cret@[h/d', 'sqlite:x.db', 'invalid', 2],
    ['sqlite:', 'postgres//u:s3cret@h', 'invalid', 2],
    ['sqlite:nowhere.db', 'sqlite:x.db', 'not_found', 3],
    ['file:nowhere', 'sqlite:x.db', 'not_found', 3],
    ['sqlite:', 'sqlite:', 'invalid', 2],
    ['sqlite:', 'file:state', 'invalid', 2],
    ['postgres://u:s3cret@127.0.0.1:1/d', 'sqlite:x.db', 'unavailable', 75],
  ])('refuses --from %s --to %s', async (from, to, code, exit) => {
    const place = sandbox()
    place.env['LEASEHOLD_BUSY_TIMEOUT_MS'] = '300'
    await place.ok(['task', 'add', 'one'])
    const refused = await place.refused(['db', 'copy', '--from', from, '--to', to], code, exit)
    expect(JSON.stringify(refused)).not.toContain('s3cret')
    expect(existsSync(place.path('x.db'))).toBe(false)
  })
})

describe('a copy that is killed with -9', () => {
  const started = (place: Sandbox, to: string) =>
    place.start(['--json', 'db', 'copy', '--from', 'sqlite:', '--to', to], { input: '' })

  test('leaves an SQLite target empty, and the next copy succeeds', async () => {
    const place = sandbox()
    await fill(place, 'sqlite:', TASKS)
    const to = `sqlite:${place.path('to/leasehold.db')}`
    const wal = place.path('to/leasehold.db-wal')
    const size = () => statSync(wal, { throwIfNoEntry: false })?.size ?? 0
    for (const bytes of [1, 2_000_000, 8_000_000]) {
      const copy = started(place, to)
      await until(`${bytes} bytes are written`, () => size() >= bytes)
      copy.kill('SIGKILL')
      expect((await copy.ended).signal).toBe('SIGKILL')
      expect(await headOf(place, to)).toMatchObject(EMPTY)
    }
    await place.ok(['db', 'copy', '--from', 'sqlite:', '--to', to, '--keep-source'])
    expect(await headOf(place, to)).toEqual(await headOf(place, 'sqlite:'))
  })

  test('leaves a PostgreSQL target empty, and the next copy succeeds', async () => {
    const place = sandbox()
    await fill(place, 'sqlite:', TASKS)
    const to = postgresUrl(temporaryFolder())
    for (let round = 0; round < 3; round += 1) {
      const copy = started(place, to)
      await until('rows are written', () => isWriting(to))
      copy.kill('SIGKILL')
      expect((await copy.ended).signal).toBe('SIGKILL')
      expect(await headOf(place, to)).toMatchObject(EMPTY)
    }
    await place.ok(['db', 'copy', '--from', 'sqlite:', '--to', to, '--keep-source'])
    expect(await headOf(place, to)).toEqual(await headOf(place, 'sqlite:'))
  })

  test('leaves a file target without a state, and the next copy succeeds', async () => {
    const place = sandbox()
    await fill(place, 'sqlite:', 4_000)
    const folder = place.path('files')
    const copy = started(place, `file:${folder}`)
    const names = () => (existsSync(folder) ? readdirSync(folder) : [])
    await until('the folder is there', () => existsSync(folder))
    copy.kill('SIGKILL')
    await copy.ended
    expect(names().filter((name) => name.startsWith('state.'))).toEqual([])
    await place.ok(['db', 'copy', '--from', 'sqlite:', '--to', `file:${folder}`, '--keep-source'])
    expect(await headOf(place, `file:${folder}`)).toEqual(await headOf(place, 'sqlite:'))
  })
})
