import * as fs from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { command } from './final.ts'
import { DAMAGES } from '../../test/faults/damage.ts'
import type { Counts } from './counts.ts'
import type { Env } from './processes.ts'
import { Scene } from './scene.ts'

/** One way to harm the files of a store that nobody has open. */
export interface DamageCase {
  name: string
  store: 'sqlite' | 'file'
  damage: (folder: string) => void
}

const DATABASE = 'leasehold.db'

const edit = (name: string, how: (bytes: Buffer) => Buffer) => (folder: string) => {
  const path = join(folder, name)
  fs.writeFileSync(path, how(fs.readFileSync(path)))
}

const zeroed = (from: number, to: number) => (bytes: Buffer) =>
  Buffer.from(bytes).fill(0, Math.floor(bytes.length * from), Math.floor(bytes.length * to))
const cut = (share: number) => (bytes: Buffer) => bytes.subarray(0, bytes.length * share)
const noise = (bytes: Buffer) => Buffer.from(bytes).fill('noise', 0, Math.min(4_096, bytes.length))

const gone = (name: string) => (folder: string) => fs.rmSync(join(folder, name))
const states = (folder: string) =>
  fs.readdirSync(folder).filter((name) => /^state\.\d+\.json$/.test(name))

/** A few more than the long list has: mostly of logs that are cut elsewhere. */
const OWN: DamageCase[] = [
  { name: 'log cut by a tenth', store: 'sqlite', damage: edit(`${DATABASE}-wal`, cut(0.9)) },
  {
    name: 'end of the log zeroed',
    store: 'sqlite',
    damage: edit(`${DATABASE}-wal`, zeroed(0.8, 1)),
  },
  { name: 'log is noise', store: 'sqlite', damage: edit(`${DATABASE}-wal`, noise) },
  { name: 'log empty', store: 'sqlite', damage: edit(`${DATABASE}-wal`, cut(0)) },
  { name: 'index of the log gone', store: 'sqlite', damage: gone(`${DATABASE}-shm`) },
  { name: 'database middle zeroed', store: 'sqlite', damage: edit(DATABASE, zeroed(0.2, 0.9)) },
  {
    name: 'all states gone',
    store: 'file',
    damage: (folder) => states(folder).forEach((name) => gone(name)(folder)),
  },
]

// oxlint-disable-next-line typescript/no-explicit-any -- what a program printed has any shape
type Json = any

/** What was acknowledged before the damage, as somebody outside remembers it. */
interface Known {
  tasks: { id: string; title: string; status: string }[]
  locks: { name: string; holder: string; fence: number }[]
  note: string | undefined
  fence: number
}

const seen = async (env: Env): Promise<Omit<Known, 'fence'> | string> => {
  const tasks = await command(env, 'task', 'list', '--limit', '1000')
  const locks = await command(env, 'lock', 'list')
  const isFile = env['LEASEHOLD_STORE'] === 'file:'
  const note = isFile ? {} : await command(env, 'memory', 'get', 'port')
  const error = tasks.error ?? locks.error ?? note.error
  if (error) return error.code as string
  const pick = ({ id, title, status }: Json) => ({ id, title, status })
  const lease = ({ name, holder, fence }: Json) => ({ name, holder, fence })
  return { tasks: tasks.items.map(pick), locks: locks.items.map(lease), note: note.content }
}

/** A store with things in it that somebody was told of, of every kind that is harmed. */
async function furnish(env: Env): Promise<Known> {
  const ask = async (...args: string[]): Promise<Json> => {
    const answer = await command(env, ...args, '--agent', 'ada')
    if (answer.error) throw new Error(`${args.join(' ')}: ${JSON.stringify(answer.error)}`)
    return answer
  }
  await ask('task', 'add', 'First', '--id', 'a', '--label', 'x')
  await ask('task', 'add', 'Second', '--id', 'b', '--depends-on', 'a')
  for (const id of ['done', 'again']) {
    await ask('task', 'add', `Task ${id}`, '--id', id)
    await ask('task', 'claim', id)
  }
  await ask('task', 'status', 'done', 'done')
  if (env['LEASEHOLD_STORE'] !== 'file:') {
    await ask('queue', 'add', 'Do it', '--project', 'web', '--user', 'bob')
    await ask('queue', 'limit', '--project', 'web', '--max', '2')
    await ask('queue', 'pause')
    await ask('queue', 'resume')
    await ask('memory', 'put', 'port', 'port 5432')
    await ask('memory', 'put', 'port', 'port 5433', '--based-on', '1')
    const { id } = await ask('token', 'create', '--role', 'agent')
    await ask('token', 'revoke', id)
  }
  const { fence } = await ask('lock', 'acquire', 'held', '--ttl', '1h')
  const known = await seen(env)
  if (typeof known === 'string') throw new Error(`a sound store said ${known}`)
  return { ...known, fence }
}

const take = (name: string) => ['lock', 'acquire', name, '--agent', 'prober', '--ttl', '1h']

/**
 * `detected`: a write was refused as damaged. `found by db check`: that told it, and writes stopped
 * then. `harmless`: all is as it was. Or what is wrong.
 */
async function verdictOf(env: Env, known: Known): Promise<string> {
  const shown = await seen(env)
  const wrote = await command(env, ...take('probe'))
  const robbed = await command(env, ...take('held'))
  const check = await command(env, 'db', 'check')
  const later = await command(env, ...take('later'))
  const codes = [wrote, robbed, check, later].map(({ error }) => error?.code as string | undefined)
  const told = codes.find((code) => code === 'internal' || code === 'crash')
  if (told) return `somebody was told ${told}`
  if (check.ok !== true && later.error?.code === 'damaged') {
    return codes[0] === 'damaged' ? 'detected' : 'found by db check'
  }
  // An older state of a file store is there for nothing but to go back to: all is in the newest.
  const isSpare = env['LEASEHOLD_STORE'] === 'file:'
  if (check.ok !== true && !isSpare) return 'db check sees it, and writes go on'
  if (wrote.error) return `a write was refused as ${codes[0]}, and db check is content`
  if (wrote.fence <= known.fence) return `fence ${wrote.fence} was given after ${known.fence}`
  if (codes[1] !== 'held') return 'a lock that is held was given to another'
  const { fence: _, ...all } = known
  const differs = JSON.stringify(shown) !== JSON.stringify(all)
  return differs ? `content changed, and nobody is told: ${JSON.stringify(shown)}` : 'harmless'
}

const FINE = new Set(['detected', 'found by db check', 'harmless'])

/** Harms a copy of a furnished store in each of these ways, and looks what comes of it. */
export async function tryDamage(cases: DamageCase[], folder: string, counts: Counts) {
  fs.mkdirSync(folder, { recursive: true })
  const scene = new Scene('damage', folder, 1, counts)
  const base = (store: DamageCase['store'], dir: string): Env => ({
    ...scene.env,
    LEASEHOLD_DIR: dir,
    ...(store === 'file' && { LEASEHOLD_STORE: 'file:' }),
  })
  for (const store of ['sqlite', 'file'] as const) {
    const origin = join(folder, store)
    const wanted = cases.filter((each) => each.store === store)
    if (wanted.length === 0) continue
    // What was written last stays in the log of SQLite only while somebody has it open.
    const known = await furnish(base(store, origin))
    const open =
      store === 'sqlite' ? openDatabase(join(origin, DATABASE), { readOnly: false }) : null
    open?.exec('PRAGMA wal_autocheckpoint = 0; SELECT * FROM head')
    await command(base(store, origin), 'task', 'add', 'Last', '--id', 'last')
    known.tasks.push({ id: 'last', title: 'Last', status: 'todo' })
    for (const [i, { name, damage }] of wanted.entries()) {
      counts.now = `damage: ${name}`
      const dir = join(folder, `${store}-${i}`)
      fs.cpSync(origin, dir, { recursive: true })
      damage(dir)
      const verdict = await verdictOf(base(store, dir), known)
      counts.figure('damage cases', 1)
      if (FINE.has(verdict)) counts.figure(`damage ${verdict}`, 1)
      else scene.violate('damage is detected', `${store}, ${name}: ${verdict}`)
      scene.note('damage', `${name}: ${verdict}`)
      fs.rmSync(dir, { recursive: true, force: true })
    }
    open?.close()
  }
  await scene.end()
}

export const damageCases: DamageCase[] = [...DAMAGES, ...OWN]
