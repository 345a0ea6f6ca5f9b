import { cpSync, existsSync, mkdirSync, readdirSync, utimesSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeAll, describe, expect, test } from 'vitest'
import { plant } from '../../src/core/planted.ts'
import { Refusal } from '../../src/core/refusal.ts'
import { call } from '../../src/operations/call.ts'
import { operationNamed } from '../../src/operations/registry.ts'
import { backupStore, checkStore, restoreStore } from '../../src/stores/care.ts'
import { openStore, type Place } from '../../src/stores/open.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { applyScripts } from '../../src/stores/sqlite/migrate.ts'
import type { Store } from '../../src/stores/writer/store.ts'
import { send, servingPlace, startDaemon } from '../doors/serving.ts'
import { callerOf, expectRefusal, temporaryFolder } from '../support/helpers.ts'
import { type Damage, DAMAGES } from './damage.ts'

const IS_LONG = process.env['FAULTS'] === 'long'
const ada = callerOf('ada', { admin: true })

const placeIn = (kind: Damage['store'], folder: string): Place => {
  const path = kind === 'sqlite' ? join(folder, 'leasehold.db') : folder
  return { kind, folder, path, busy_timeout_ms: 1_000 }
}

const ask = (store: Store, name: string, input: Record<string, unknown>) =>
  call(store, operationNamed.get(name)!, input, ada)

/** A store in which every kind of row is found. */
async function fill(place: Place): Promise<void> {
  const store = openStore(place)
  await ask(store, 'task.create', { id: 'a', title: 'First', labels: ['x'], request_id: 'r1' })
  await ask(store, 'task.create', { id: 'b', title: 'Second', depends_on: ['a'] })
  await ask(store, 'task.create', { id: 'done', title: 'Third' })
  await ask(store, 'task.claim', { id: 'done' })
  await ask(store, 'task.status', { id: 'done', status: 'done' })
  await ask(store, 'task.create', { id: 'again', title: 'Fourth' })
  await ask(store, 'task.claim', { id: 'again' })
  await ask(store, 'lock.acquire', { names: ['held'], ttl_seconds: 3600 })
  if (place.kind === 'sqlite') {
    await ask(store, 'queue.add', { prompt: 'Do it', project: 'web', user: 'bob' })
    await ask(store, 'queue.limit', { project: 'web', max: 2 })
    await ask(store, 'queue.pause', {})
    await ask(store, 'queue.resume', {})
    await ask(store, 'memory.put', { key: 'port', content: 'port 5432' })
    await ask(store, 'memory.put', { key: 'port', content: 'port 5433', based_on: 1 })
    const token = { id: 't1', role: 'agent', agent: 'bob', hash: 'f'.repeat(64) }
    await store.write((view) => {
      const made = { created_by: 'ada', created_at: view.at, expires_at: null, expires_ms: null }
      view.put('token', { ...token, ...made, revoked_at: view.at } as never)
    })
  }
  await store.close()
}

const templates = { sqlite: '', file: '' }

beforeAll(async () => {
  for (const kind of ['sqlite', 'file'] as const) {
    templates[kind] = temporaryFolder()
    await fill(placeIn(kind, templates[kind]))
  }
})

function copyOf(kind: Damage['store']): Place {
  const folder = temporaryFolder()
  cpSync(templates[kind], folder, { recursive: true })
  return placeIn(kind, folder)
}

/** What becomes of one ask: an answer, or the code of its refusal; a bug is thrown. */
async function outcomeOf(place: Place, name: string, input: Record<string, unknown>) {
  const store = openStore(place)
  try {
    await ask(store, name, input)
    return 'answered'
  } catch (error) {
    if (error instanceof Refusal) return error.code
    throw error
  } finally {
    await store.close()
  }
}

const WRITES: [string, Record<string, unknown>][] = [
  ['lock.acquire', { names: ['held'] }],
  ['task.claim', {}],
  ['task.create', { title: 'More', depends_on: ['a'] }],
]
const READS: [string, Record<string, unknown>][] = [
  ['task.list', {}],
  ['lock.list', {}],
  ['event.list', {}],
  ['memory.search', { query: 'port' }],
  ['alert.list', {}],
]

/** Every path on a damaged store: what is not answered is `damaged`, and never a bug. */
async function askAll(place: Place, asks: typeof WRITES): Promise<string[]> {
  const outcomes: string[] = []
  for (const [name, input] of asks) {
    if (place.kind === 'file' && name.startsWith('memory')) continue
    outcomes.push(await outcomeOf(place, name, input))
  }
  return outcomes
}

const NOBODYS = new Set(['answered', 'held', 'not_found', 'illegal_move', 'damaged'])

async function expectFound({ name: how, store: kind, damage, found }: Damage): Promise<void> {
  const met = copyOf(kind)
  damage(met.folder)
  for (const outcome of await askAll(met, [...READS, ...WRITES])) expect(NOBODYS).toContain(outcome)

  const place = copyOf(kind)
  damage(place.folder)
  if (found === 'mark') return
  const { ok, problems } = await checkStore(place)
  if (found === 'harmless') {
    expect(problems).toEqual([])
    expect(await outcomeOf(place, 'task.create', { title: 'More' })).toBe('answered')
    return
  }
  expect(ok, 'db check says that it is sound').toBe(false)
  // Those are there to fall back on only.
  if (how.startsWith('file: an older state')) return
  await expectRefusal(backupStore(place, join(place.folder, 'backup'), new Date()), 'damaged')
  expect(readdirSync(place.folder).filter((name) => /partial|^backup/.test(name))).toEqual([])
  expect(new Set(await askAll(place, WRITES))).toEqual(new Set(['damaged']))
}

const CHOSEN = DAMAGES.filter((_, i) => IS_LONG || i % 2 === 0)

describe('every kind of damage is found, and stops all writers', () => {
  test('there are enough kinds', () => expect(DAMAGES.length).toBeGreaterThan(50))
  test.for(CHOSEN)('$name', (each) => expectFound(each))

  test('a bug planted in S11, which does not add rows up, is caught', async () => {
    const edit = DAMAGES.find(({ name }) => name === 'the title of a task was edited')!
    plant('S11')
    try {
      await expect(expectFound(edit)).rejects.toThrow('db check says that it is sound')
    } finally {
      plant(undefined)
    }
  })
})

describe('a store that is whole', () => {
  for (const kind of ['sqlite', 'file'] as const) {
    test(`${kind}: nothing is found, and a check lets a marked store go on`, async () => {
      const place = copyOf(kind)
      expect((await checkStore(place)).problems).toEqual([])
      if (kind === 'file') return
      writeFileSync(`${place.path}.damage`, 'somebody saw something')
      expect(await outcomeOf(place, 'task.create', { title: 'No' })).toBe('damaged')
      expect((await checkStore(place)).ok).toBe(true)
      expect(await outcomeOf(place, 'task.create', { title: 'Yes' })).toBe('answered')
      expect((await checkStore(place)).problems).toEqual([])
    })
  }

  test('a check takes time in proportion to the ready tasks', async () => {
    const took = async (tasks: number) => {
      const place = placeIn('sqlite', temporaryFolder())
      const store = openStore(place)
      const titles = Array.from({ length: tasks }, (_, i) => `Task ${i}`)
      await Promise.all(titles.map((title) => ask(store, 'task.create', { title })))
      await store.close()
      const begun_ms = performance.now()
      expect((await checkStore(place)).ok).toBe(true)
      return performance.now() - begun_ms
    }
    await took(100)
    const [few_ms, many_ms] = [await took(1_000), await took(8_000)]
    // Eight times as many: a quadratic check takes 64 times as long.
    expect(many_ms).toBeLessThan(few_ms * 30)
  })
})

describe('backups', () => {
  test('what a killed backup has left is swept, what is being made is not', async () => {
    const place = copyOf('sqlite')
    const backups = join(place.folder, 'backups')
    mkdirSync(backups)
    for (const name of ['old.db.partial', 'new.db.partial']) writeFileSync(join(backups, name), 'x')
    const long_ago = new Date(Date.now() - 2 * 3600_000)
    utimesSync(join(backups, 'old.db.partial'), long_ago, long_ago)
    await backupStore(place, join(backups, 'made.db'), new Date())
    expect(readdirSync(backups).toSorted()).toEqual(['made.db', 'new.db.partial'])
  })

  for (const version of [1, 4, 7]) {
    test(`a backup of schema ${version} is brought up to date and restored`, async () => {
      const place = copyOf('sqlite')
      const old = join(place.folder, 'old.db')
      const db = openDatabase(old, { readOnly: false })
      applyScripts(db, 0, version)
      const hash = '0'.repeat(64)
      db.exec(`INSERT INTO head VALUES (1, 3, 7, 0, 0, '${hash}', '', 0, 0);
        INSERT INTO checkpoint VALUES (1, 0, '${hash}')`)
      db.close()
      const { head, problems } = await restoreStore(place, old)
      expect(problems).toEqual([])
      expect(head!.epoch).toBe(4)
      expect(await outcomeOf(place, 'task.create', { title: 'On' })).toBe('answered')
    })
  }
})

describe('a daemon whose store is damaged under it', () => {
  test('refuses writes, answers reads with a warning, and tells everybody who looks', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('task.create', { id: 'a', title: 'First' })
    await place.ok(['db', 'backup', place.path('good.db')])
    const db = openDatabase(join(place.state, 'leasehold.db'), { readOnly: false })
    db.exec(`UPDATE task SET title = 'Other'`)
    db.close()
    await place.refused(['db', 'check'], 'damaged', 76)
    const refused = await daemon.post('task.create', { title: 'More' })
    expect(refused.status).toBe(503)
    expect(refused.json).toMatchObject({ error: { code: 'damaged' } })
    const listed = await daemon.post('task.list', {})
    expect(listed.status).toBe(200)
    expect(decodeURIComponent(String(listed.headers['leasehold-damaged']))).toContain('damaged')
    expect((await send(daemon.url, '/healthz')).status).toBe(503)
    const alerts = await daemon.ok('alert.list', {})
    expect(alerts.items[0]).toMatchObject({ rule: 'store_damaged' })
    expect((await place.cli(['task', 'list'])).code).toBe(76)
    expect((await place.cli(['doctor'])).code).toBe(76)
    expect(existsSync(join(place.state, 'leasehold.db.damage'))).toBe(true)
    await place.ok(['db', 'restore', place.path('good.db'), '--yes'])
    expect((await daemon.post('task.create', { title: 'More' })).status).toBe(200)
    expect((await send(daemon.url, '/healthz')).status).toBe(200)
  })

  test('looks again when it starts: what a check does not find is no damage', async () => {
    const place = servingPlace()
    await place.ok(['task', 'add', 'First'])
    const mark = join(place.state, 'leasehold.db.damage')
    writeFileSync(mark, 'The store is damaged: database disk image is malformed', { mode: 0o600 })
    await place.refused(['task', 'add', 'Second'], 'damaged', 76)
    const daemon = await startDaemon(place)
    await daemon.ok('task.create', { title: 'Second' })
    expect(existsSync(mark)).toBe(false)
  })
})
