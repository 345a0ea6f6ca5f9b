import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { View } from '../../src/core/view.ts'
import type { Commit } from '../../src/stores/port.ts'
import { type Address, addressOf } from '../../src/stores/postgres/address.ts'
import { PostgresBackend } from '../../src/stores/postgres/backend.ts'
import type { Connection } from '../../src/stores/postgres/driver.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { machine } from '../../src/machine/machine.ts'
import { clientOf } from '../support/daemons.ts'
import { type Served, servingPlace, startDaemon } from '../doors/serving.ts'
import { callerOf, temporaryFolder, Verbs } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { ROUNDS, type Running } from '../support/processes.ts'
import { openAt } from './postgres_writers.ts'

const ROOT = fileURLToPath(new URL('../..', import.meta.url))
const AGENTS_PROGRAM = `${ROOT}dist/test/postgres_crowd_agents.mjs`
const PROCESSES = ROUNDS === 1 ? 8 : 20
const AGENTS = 50
/** Of each process: all agents together have 16, or 40. */
const CONNECTIONS = 2
const CONNECTIONS_MAX = PROCESSES * CONNECTIONS + 10
const SESSIONS_MAX = 50
const EVENTS = ROUNDS === 1 ? 2_000 : 100_000
const ada = callerOf('ada')

/** Daemons on one database, each with a state folder of its own. */
async function daemons(url: string, count: number): Promise<Served[]> {
  const places = Array.from({ length: count }, () => servingPlace())
  for (const place of places) place.env['LEASEHOLD_STORE'] = url
  return Promise.all(places.map((place) => startDaemon(place)))
}

function crowdAt({ place, url, secret }: Served, name: string): Running {
  const env = { URL: url, TOKEN: secret, NAME: name, AGENTS: `${AGENTS}` }
  return place.start([AGENTS_PROGRAM], {
    program: [process.execPath],
    env: { ...env, CONNECTIONS: `${CONNECTIONS}` },
  })
}

/** How many connections these daemons have, as the kernel counts them. */
function connectionsOf(servers: Served[]): number {
  const ports = new Set(servers.map(({ port }) => port.toString(16).toUpperCase().padStart(4, '0')))
  const lines = readFileSync('/proc/net/tcp', 'utf8').split('\n').slice(1)
  const [local, state] = [1, 3]
  return lines
    .map((line) => line.trim().split(/\s+/))
    .filter((line) => line[state] === '01' && ports.has(line[local]!.split(':')[1]!)).length
}

async function query<Row extends object>(text: string): Promise<Row[]> {
  const client = new Client({ connectionString: process.env['DATABASE_URL']! })
  await client.connect()
  const { rows } = await client.query<Row>(text)
  await client.end()
  return rows
}

/** A database in which nobody else has sessions, though other tests run beside this one. */
async function ownDatabase(): Promise<{ url: string; sessions: () => Promise<number> }> {
  const url = new URL(postgresUrl(temporaryFolder()))
  const name = url.searchParams.get('schema')!
  await query(`CREATE DATABASE ${name}`)
  onTestFinished(() => query(`DROP DATABASE ${name} WITH (FORCE)`).then(() => undefined))
  url.pathname = name
  const count = `SELECT count(*)::int AS count FROM pg_stat_activity WHERE datname = '${name}'`
  const sessions = async () => (await query<{ count: number }>(count))[0]!.count
  return { url: url.href, sessions }
}

function add(verbs: Verbs, from: number, to: number): Promise<unknown> {
  const numbers = Array.from({ length: to - from }, (_, i) => from + i)
  return Promise.all(numbers.map((i) => verbs.add(`Task ${i}`, ada)))
}

const ninetyNine = (sorted: number[]) => sorted[Math.floor(sorted.length * 0.99)]!

describe(`${PROCESSES * AGENTS} agents on three daemons`, () => {
  test('claim as many tasks once each, and nobody goes without', async () => {
    const { url, sessions } = await ownDatabase()
    const verbs = new Verbs(openAt(url))
    onTestFinished(() => verbs.store.close())
    const all = PROCESSES * AGENTS
    // The other half comes while they wait for it.
    await add(verbs, 0, all / 2)
    const servers = await daemons(url, 3)
    const crowd = Array.from({ length: PROCESSES }, (_, i) => crowdAt(servers[i % 3]!, `p${i}`))
    for (const each of crowd) await each.said(/ready/)
    const began_ms = performance.now()
    for (const each of crowd) each.child.stdin!.end('go\n')
    let [open, used] = [0, 0]
    for (let i = all / 2; i < all; i += 100) {
      await add(verbs, i, i + 100)
      open = Math.max(open, connectionsOf(servers))
      used = Math.max(used, await sessions())
    }
    const told = await Promise.all(crowd.map((each) => each.ended))
    const took_s = (performance.now() - began_ms) / 1000
    expect(told.map(({ code, err }) => `${code}${err}`)).toEqual(told.map(() => '0'))
    const claims = told.flatMap(({ out }) => out.split('\n').filter((line) => /^p\d/.test(line)))
    const columns = (i: number) => claims.map((line) => line.split(' ')[i]!)
    const [agents, tasks, fences] = [0, 1, 2].map(columns) as [string[], string[], string[]]
    expect(claims).toHaveLength(all)
    expect(tasks.filter((id) => id === 'none')).toEqual([])
    for (const each of [agents, tasks, fences]) expect(new Set(each).size).toBe(all)
    expect(open).toBeLessThanOrEqual(CONNECTIONS_MAX)
    expect(used).toBeLessThanOrEqual(SESSIONS_MAX)
    const isDone = (view: View) => [...view.scan('tasks_with_status', 'done')].length
    expect(await verbs.store.read(isDone)).toBe(all)
    const took_ms = columns(3)
      .map(Number)
      .toSorted((a, b) => a - b)
    const rate = Math.round(all / took_s)
    const p99 = `p50 ${took_ms[all / 2]} ms, p99 ${ninetyNine(took_ms)} ms`
    const over = `${open} connections, ${used} to the database`
    process.stderr.write(`${all} claimed and done over ${over}: ${rate}/s, ${p99}\n`)
  }, 120_000)
})

/** Its transactions take a while before they commit. */
class Slow extends PostgresBackend {
  override async commit(commit: Commit) {
    // reason: events of a long transaction must not become visible behind those of a short one.
    await new Promise((resolve) => void setTimeout(resolve, Math.random() * 40))
    return super.commit(commit)
  }
}

/** Adds tasks in short and long batches until it has added so many. */
async function write(url: string, events: number, i: number): Promise<void> {
  const store = openAt(url, i % 2 === 0 ? Slow : PostgresBackend)
  const verbs = new Verbs(store)
  for (let left = events; left > 0;) {
    const batch = Math.min(left, Math.random() < 0.7 ? 1 + Math.floor(Math.random() * 5) : 300)
    await add(verbs, left - batch, left)
    left -= batch
  }
  await store.close()
}

describe('a reader of events over SSE', () => {
  test(
    `that leaves and resumes at random, at one daemon or another, misses none of ${EVENTS}`,
    async () => {
      const url = postgresUrl(temporaryFolder())
      const servers = await daemons(url, 2)
      const readers = await Promise.all(
        servers.map((each) => clientOf({ url: each.url, token: each.secret })),
      )
      const first = readers[0]!.events()
      let after = await first.opened
      first.close()
      const begin = Number(after.split('-')[1])
      const store = openAt(url)
      onTestFinished(() => store.close())
      const began_ms = performance.now()
      const writing = Promise.all(Array.from({ length: 8 }, (_, i) => write(url, EVENTS / 8, i)))
      const seen: number[] = []
      let resumed = 0
      while (seen.length < EVENTS) {
        const leave = 1 + Math.floor(Math.random() ** 3 * 200)
        const stream = readers[resumed % 2]!.events({ after })
        let read = 0
        for await (const { id, reset } of stream) {
          expect(reset).toBe(false)
          after = id
          seen.push(Number(id.split('-')[1]))
          read += 1
          if (read >= leave || seen.length >= EVENTS) break
        }
        resumed += 1
      }
      await writing
      const took_s = (performance.now() - began_ms) / 1000
      expect(seen).toEqual(Array.from({ length: EVENTS }, (_, i) => begin + 1 + i))
      const { position } = await store.head()
      expect(position).toBe(seen.at(-1))
      const rate = Math.round(EVENTS / took_s)
      process.stderr.write(`${EVENTS} events at ${rate}/s, resumed ${resumed} times\n`)
    },
    120_000 * ROUNDS,
  )
})

/** Begins without the lock of the writers. */
class Lockless extends PostgresBackend {
  /** What made it decide anew: the head was another (`head`), or what the database said. */
  static readonly causes = new Map<string, number>()
  /** Whether it also takes the head for what it has become. */
  static isBlind = false

  constructor(options: ConstructorParameters<typeof PostgresBackend>[0]) {
    super(options)
    const { statements } = this as unknown as { statements: { beginWriting: string } }
    const right = statements.beginWriting
    statements.beginWriting = right.replace(/SELECT pg_advisory_xact_lock[^;]*;/, '')
    expect(statements.beginWriting).not.toBe(right)
  }

  override async commit(commit: Commit) {
    if (Lockless.isBlind) await this.look()
    return super.commit(commit).catch((error: Error) => {
      const { code = 'head' } = (error.cause ?? {}) as { code?: string }
      Lockless.causes.set(code, (Lockless.causes.get(code) ?? 0) + 1)
      throw error
    })
  }

  private async look(): Promise<void> {
    const self = this as unknown as { commits: number; writer: Connection; options: Options }
    const from = `SELECT commits FROM ${self.options.address.quoted}.head`
    self.commits = Number((await self.writer.run(from))[0]![0])
  }
}

interface Options {
  address: Address
}

/** Eight writers claim until nothing is ready, or `stops`; the ids of what each was given. */
async function claimsOf(url: string, stops = 'nobody'): Promise<string[]> {
  const address = addressOf(url)
  const writers = Array.from({ length: 8 }, () => {
    return new Verbs(new Store(new Lockless({ address, busy_timeout_ms: 20_000 }), machine))
  })
  const claimed = await Promise.all(
    writers.map(async (verbs, w) => {
      const ids: string[] = []
      for (let none = false; !none;) {
        const claim = await verbs.next(callerOf(`w${w}`)).catch((error: Error) => error)
        const { code } = (claim ?? {}) as { code?: string }
        if (claim instanceof Error && code !== stops) expect(code).toBe('unavailable')
        else if (claim && !(claim instanceof Error)) ids.push(claim.task.id)
        else none = true
      }
      return ids
    }),
  )
  for (const { store } of writers) await store.close()
  return claimed.flat()
}

async function filled(tasks: number): Promise<string> {
  const url = postgresUrl(temporaryFolder())
  const verbs = new Verbs(openAt(url))
  await add(verbs, 0, tasks)
  await verbs.store.close()
  Lockless.causes.clear()
  return url
}

describe('claims by eight writers, of whom none takes the lock', () => {
  test.each([
    ['the head that has changed', false, 'head'],
    ['the position that an event has already', true, '23505'],
  ])('are caught by %s: each task is claimed once all the same', async (_, isBlind, cause) => {
    const url = await filled(100)
    Lockless.isBlind = isBlind
    const ids = await claimsOf(url)
    expect(ids).toHaveLength(100)
    expect(new Set(ids).size).toBe(100)
    expect(Lockless.causes.get(cause)).toBeGreaterThan(0)
    process.stderr.write(`decided anew: ${JSON.stringify([...Lockless.causes])}\n`)
  })

  test('are doubled when both of these are missing: this is a test that can fail', async () => {
    const url = await filled(50)
    Lockless.isBlind = true
    const { quoted } = addressOf(url)
    await query(`ALTER TABLE ${quoted}.event DROP CONSTRAINT event_pkey`)
    // A writer that sees the head go back stops: too late for what was given twice.
    const ids = await claimsOf(url, 'damaged')
    expect(new Set(ids).size).toBeLessThan(ids.length)
  })
})
