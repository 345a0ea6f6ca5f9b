import { spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { Client } from 'pg'
import { expect, onTestFinished, test } from 'vitest'
import { enqueueTask } from '../../src/core/queue/queue.ts'
import { setLimit } from '../../src/core/queue/settings.ts'
import { checkPostgres } from '../../src/stores/postgres/care.ts'
import { addressOf } from '../../src/stores/postgres/address.ts'
import { callerOf, temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { ROUNDS, Running } from '../support/processes.ts'
import { openAt } from './postgres_writers.ts'

const TASKS = ROUNDS === 1 ? 1_500 : 250_000
/** More than there are callers: each has one run at a time. */
const USERS = TASKS / (ROUNDS === 1 ? 10 : 25)
const PROCESSES = 8
const CALLERS = ROUNDS === 1 ? 16 : 64
/** Fewer than there are callers, so that it is always full. */
const WEB_MAX = ROUNDS === 1 ? 40 : 128
const FILLED_AT_ONCE = Math.min(TASKS, 5_000)
const QUEUED = { agent_command: null, time_limit_ms: null, retries: 0, failed: 0, lost: 0 }
const REST = { labels: [], depends_on: [], assigned_to: null, metadata: {}, group: null }
const ada = callerOf('ada')

const PROGRAM = fileURLToPath(new URL('../../dist/test/postgres_claimer.mjs', import.meta.url))

/** A fifth of all tasks is in a project with a limit; every user has some in both. */
async function fill(url: string): Promise<void> {
  const store = openAt(url)
  await store.write((view) => setLimit(view, { project: 'web', max: WEB_MAX }, ada))
  const add = (n: number) => {
    const user = `user-${n % USERS}`
    const project = Math.floor(n / USERS) % 5 === 0 ? 'web' : 'api'
    const task = {
      title: `Task ${n}`,
      body: '',
      project,
      user,
      priority: 5,
      queue: QUEUED,
      ...REST,
    }
    return store.write((view) => void enqueueTask(view, task, ada))
  }
  for (let made = 0; made < TASKS; made += FILLED_AT_ONCE) {
    await Promise.all(Array.from({ length: FILLED_AT_ONCE }, (_, i) => add(made + i)))
  }
  await store.close()
}

interface Ran {
  id: string
  user: string
  project: string
  from: number
  to: number
}

async function claimBy(url: string): Promise<Ran[]> {
  const running = Array.from({ length: PROCESSES }, () => {
    const child = spawn(process.execPath, [PROGRAM, url, String(CALLERS)])
    onTestFinished(() => void child.kill('SIGKILL'))
    return new Running(child, undefined)
  })
  for (const each of running) await each.said(/ready/)
  for (const each of running) each.child.stdin!.end('go\n')
  const ended = await Promise.all(running.map((each) => each.ended))
  expect(ended.map(({ code, err }) => `${code}${err}`)).toEqual(ended.map(() => '0'))
  const lines = ended.flatMap(({ out }) => out.trim().split('\n').slice(1))
  return lines.map((line) => {
    const [id, user, project, from, to] = line.split(' ') as [
      string,
      string,
      string,
      string,
      string,
    ]
    return { id, user, project, from: Number(from), to: Number(to) }
  })
}

/** The most that ever ran at once, by what `of` calls them. */
function mostAtOnce(ran: Ran[], of: (each: Ran) => string): Map<string, number> {
  const steps = ran.flatMap((each) => [
    { at: each.from, step: 1, key: of(each) },
    { at: each.to, step: -1, key: of(each) },
  ])
  const now = new Map<string, number>()
  const most = new Map<string, number>()
  for (const { step, key } of steps.toSorted((a, b) => a.at - b.at)) {
    const count = (now.get(key) ?? 0) + step
    now.set(key, count)
    most.set(key, Math.max(count, most.get(key) ?? 0))
  }
  return most
}

/** What the store's rows say of all that: each is a count of what must not be. */
async function wrongRows(url: string): Promise<Record<string, number>> {
  const { url: plain, quoted } = addressOf(url)
  const client = new Client({ connectionString: plain })
  await client.connect()
  const questions = {
    'tasks that are not done': `SELECT count(*) FROM ${quoted}.task WHERE status <> 'done'`,
    'tasks tried more than once': `SELECT count(*) FROM ${quoted}.task WHERE attempts <> 1`,
    'runs too many': `SELECT count(*) - count(DISTINCT task_id) FROM ${quoted}.run`,
    'fences given twice': `SELECT count(*) - count(DISTINCT fence) FROM ${quoted}.run`,
    'runs missing': `SELECT ${TASKS} - count(*) FROM ${quoted}.run`,
    'leases in force': `SELECT count(*) FROM ${quoted}.lease WHERE ended_at IS NULL`,
    'limits in use': `SELECT count(*) FROM ${quoted}."limit" WHERE used <> 0`,
    'busy users': `SELECT count(*) FROM ${quoted}.share WHERE running::text <> '[]'`,
  }
  const found: Record<string, number> = {}
  for (const [name, text] of Object.entries(questions)) {
    const { rows } = await client.query<{ count: string }>({ text, rowMode: 'array' } as never)
    found[name] = Number((rows[0] as unknown as string[])[0])
  }
  await client.end()
  return found
}

test(
  `${PROCESSES} processes claim ${TASKS} tasks: none twice, no limit passed`,
  async () => {
    const url = postgresUrl(temporaryFolder())
    await fill(url)
    const began_ms = performance.now()
    const ran = await claimBy(url)
    const took_s = (performance.now() - began_ms) / 1000
    expect(ran).toHaveLength(TASKS)
    expect(new Set(ran.map(({ id }) => id)).size).toBe(TASKS)
    expect(new Set(ran.map(({ from }) => from)).size).toBe(TASKS)
    const users = mostAtOnce(ran, ({ user }) => user)
    expect([...users].filter(([, most]) => most > 1)).toEqual([])
    const projects = mostAtOnce(ran, ({ project }) => project)
    expect(projects.get('web')).toBe(WEB_MAX)
    const wrong = await wrongRows(url)
    expect(wrong).toEqual(Object.fromEntries(Object.keys(wrong).map((name) => [name, 0])))
    const where = { url, folder: temporaryFolder(), busy_timeout_ms: 5_000 }
    const { problems } = await checkPostgres(where)
    expect(problems.filter((each) => !each.includes('fsync = off'))).toEqual([])
    const most = JSON.stringify([...projects])
    process.stderr.write(`${TASKS} claims in ${took_s.toFixed(0)} s, at once at most ${most}\n`)
  },
  120_000 + TASKS * 20,
)
