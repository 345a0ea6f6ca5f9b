import { type AnyRow, KEYS, type TableName, TABLES } from '../../src/core/schema/schema.ts'
import { Client } from 'pg'
import { join } from 'node:path'
import type { Event } from '../../src/core/event.ts'
import { call } from '../../src/operations/call.ts'
import { create } from '../../src/operations/tasks.ts'
import { create as createToken } from '../../src/operations/tokens.ts'
import { readNewest } from '../../src/stores/file/folder.ts'
import { openStore, type Place, placeOf } from '../../src/stores/open.ts'
import type { Head } from '../../src/stores/port.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { ownProcess } from '../../src/machine/process.ts'
import { CODECS } from '../../src/stores/sqlite/codec.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { callerOf, temporaryFolder } from '../support/helpers.ts'
import { postgresUrl, rowIn } from '../support/postgres.ts'
import { PathVerbs } from '../support/path_verbs.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'

export const ada = callerOf('ada')
export const bob = callerOf('bob')

export type Kind = Place['kind']

/** A place for a store that is not there yet. */
export function placeFor(kind: Kind): Place {
  const folder = temporaryFolder()
  const store = {
    sqlite: `sqlite:${join(folder, 'at', 'leasehold.db')}`,
    file: `file:${join(folder, 'files')}`,
    postgres: postgresUrl(folder),
  }[kind]
  return placeOf({ LEASEHOLD_DIR: join(folder, 'state'), LEASEHOLD_STORE: store }, folder)
}

export async function withVerbs<T>(place: Place, use: (verbs: QueueVerbs) => Promise<T>) {
  const store = openStore(place)
  return use(new QueueVerbs(store)).finally(() => store.close())
}

/** Asks for a task under a request id, as a door would. */
export function ask(verbs: QueueVerbs, title: string, request_id: string) {
  return call(verbs.store, create, { title, request_id }, ada)
}

/** Texts that databases have trouble with, where they may stand. */
const STRANGE = { a: [1, { b: 'ä"\\' }], nul: '\u0000', half: '\uD800', 7: null }

/** Something of everything that agents use; returns what the tests go on with. */
export function fill(place: Place) {
  return withVerbs(place, async (verbs) => {
    const first = await verbs.add('first', ada, { project: 'web', labels: ['x', 'ü€𝄞'] })
    await verbs.add('second', ada, { depends_on: [first.id], metadata: STRANGE })
    const more = Array.from({ length: 1_200 }, (_, i) => i)
    await Promise.all(more.map((i) => verbs.add(`more ${i}`, ada, { priority: i % 10 })))
    const { lease } = await verbs.claim(first.id, ada, { ttl_ms: 600_000 })
    await verbs.take('ﬀ-high', ada)
    await verbs.take('𝄞-higher', ada)
    const stale = await verbs.take('moved', ada)
    await verbs.release('moved', ada)
    const held = await verbs.take('moved', bob, { ttl_ms: 600_000, process: ownProcess() })
    await verbs.wait('moved', ada, 'ticket-1')
    await new PathVerbs(verbs.store).one('src/größe/**', ada, { ttl_ms: 600_000 })
    await verbs.heartbeat(ada)
    const reply = await ask(verbs, 'by request', 'r1')
    await call(verbs.store, createToken, TOKEN, callerOf('root', { admin: true }))
    return { claimed: lease, stale, held, reply }
  })
}

const TOKEN = {
  role: 'agent',
  for_agent: 'ada',
  secret_hash: 'ab'.repeat(32),
  ttl_seconds: 3600,
}

/** A queue with everything: shares, lanes, parked ones, limits, a dispatcher, runs and tokens. */
export function fillQueue(place: Place) {
  return withVerbs(place, async (verbs) => {
    await verbs.settings()
    await verbs.register('d', { process: ownProcess() })
    await verbs.limit({ project: 'web', max: 1 })
    for (const user of ['ann', 'ben', undefined]) {
      for (const project of ['web', 'api', 'unserved']) {
        for (const priority of [5, 8]) {
          await verbs.enqueue({ ...(user && { user }), project, priority, title: `${user}` })
        }
      }
    }
    const one = await verbs.dispatch('d', ownProcess())
    const two = await verbs.dispatch('d', ownProcess())
    await verbs.finishRun(one!.run)
    return { running: two!.run }
  })
}

export interface Whole {
  head: Head
  checkpoint: { position: number; hash: string }
  events: Event[]
  rows: Record<TableName, Map<string, AnyRow>>
}

/** All that a store keeps, read by other means than those that copy. */
export async function wholeOf(place: Place): Promise<Whole> {
  const store = openStore(place)
  const events = await store.events(0, 100_000)
  const { clock_ms: _, ...head } = await store.head()
  await store.close()
  const read = { sqlite: wholeSqlite, file: wholeFile, postgres: wholePostgres }[place.kind]
  const { rows, checkpoint } = await read(place)
  const maps = TABLES.map((table) => {
    const keyed = rows[table].map((row) => [row[KEYS[table] as keyof AnyRow], row] as const)
    return [table, new Map(keyed.toSorted(([a], [b]) => (a < b ? -1 : 1)))] as const
  })
  return { head, checkpoint, events, rows: Object.fromEntries(maps) as unknown as Whole['rows'] }
}

type Read = { rows: Record<TableName, AnyRow[]>; checkpoint: Whole['checkpoint'] }

async function wholeSqlite({ path }: Place): Promise<Read> {
  const db = openDatabase(path, { readOnly: true })
  const all = TABLES.map((table) => {
    const { names } = CODECS[table]
    const found = db.prepare(`SELECT * FROM "${table}"`).all()
    return [table, found.map((row) => CODECS[table].decode(names.map((name) => row[name])))]
  })
  const checkpoint = db.prepare('SELECT position, hash FROM checkpoint').get()
  db.close()
  return { rows: Object.fromEntries(all), checkpoint: { ...checkpoint } }
}

async function wholeFile({ path }: Place): Promise<Read> {
  const { checkpoint, tables } = (await readNewest(path)).state!
  const all = TABLES.map((table) => [table, [...tables.rows[table].values()]])
  return { rows: Object.fromEntries(all) as Read['rows'], checkpoint }
}

async function wholePostgres({ url }: Place): Promise<Read> {
  const { quoted } = addressOf(url!)
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  await client.connect()
  const rowsOf = async (table: string) => {
    const text = `SELECT coalesce(json_agg(t), '[]') AS rows FROM ${quoted}."${table}" AS t`
    return (await client.query<{ rows: AnyRow[] }>(text)).rows[0]!.rows
  }
  const rows = {} as Read['rows']
  for (const table of TABLES) {
    rows[table] = (await rowsOf(table)).map((row) => rowIn(table, row))
  }
  const [{ position, hash }] = (await rowsOf('checkpoint')) as unknown as [Whole['checkpoint']]
  await client.end()
  return { rows, checkpoint: { position, hash } }
}

/** Runs statements on a database, in the schema of the store. */
export async function runSql({ path, url }: Place, text: string): Promise<void> {
  if (url === undefined) {
    const db = openDatabase(path, { readOnly: false })
    db.exec(text)
    db.close()
    return
  }
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  await client.connect()
  await client.query(`SET search_path TO ${addressOf(url).quoted}; ${text}`)
  await client.end()
}
