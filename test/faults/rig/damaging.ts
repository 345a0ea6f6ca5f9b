import * as fs from 'node:fs'
import { join } from 'node:path'
import { openDatabase } from '../../../src/stores/sqlite/driver.ts'
import { command } from './final.ts'
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

const sql =
  (...statements: string[]) =>
  (folder: string) => {
    const db = openDatabase(join(folder, DATABASE), { readOnly: false })
    for (const statement of statements) db.exec(statement)
    db.close()
  }

const edit = (name: string, how: (bytes: Buffer) => Buffer) => (folder: string) => {
  const path = join(folder, name)
  fs.writeFileSync(path, how(fs.readFileSync(path)))
}

const zeroed = (from: number, to: number) => (bytes: Buffer) =>
  Buffer.from(bytes).fill(0, Math.floor(bytes.length * from), Math.floor(bytes.length * to))
const cut = (share: number) => (bytes: Buffer) => bytes.subarray(0, bytes.length * share)
const noise = (bytes: Buffer) => Buffer.from(bytes).fill('noise', 0, Math.min(4_096, bytes.length))

const states = (folder: string) =>
  fs
    .readdirSync(folder)
    .filter((name) => /^state\.\d+\.json$/.test(name))
    .toSorted((a, b) => Number(a.split('.')[1]) - Number(b.split('.')[1]))

const newest = (how: (bytes: Buffer) => Buffer) => (folder: string) =>
  edit(states(folder).at(-1)!, how)(folder)

const swapped = (from: string, to: string) => (bytes: Buffer) =>
  Buffer.from(bytes.toString('utf8').replaceAll(from, to))

/** A few of the kind that others found; the long list stands in `../damage.ts`. */
const OWN: DamageCase[] = [
  { name: 'WAL gone', store: 'sqlite', damage: (f) => fs.rmSync(join(f, `${DATABASE}-wal`)) },
  { name: 'WAL cut in half', store: 'sqlite', damage: edit(`${DATABASE}-wal`, cut(0.5)) },
  { name: 'WAL cut by a tenth', store: 'sqlite', damage: edit(`${DATABASE}-wal`, cut(0.9)) },
  { name: 'WAL zeroed', store: 'sqlite', damage: edit(`${DATABASE}-wal`, zeroed(0, 1)) },
  { name: 'WAL end zeroed', store: 'sqlite', damage: edit(`${DATABASE}-wal`, zeroed(0.8, 1)) },
  { name: 'WAL is noise', store: 'sqlite', damage: edit(`${DATABASE}-wal`, noise) },
  { name: 'WAL empty', store: 'sqlite', damage: edit(`${DATABASE}-wal`, cut(0)) },
  { name: 'shm gone', store: 'sqlite', damage: (f) => fs.rmSync(join(f, `${DATABASE}-shm`)) },
  { name: 'database is noise', store: 'sqlite', damage: edit(DATABASE, noise) },
  { name: 'database cut', store: 'sqlite', damage: edit(DATABASE, cut(0.5)) },
  { name: 'database empty', store: 'sqlite', damage: edit(DATABASE, cut(0)) },
  { name: 'database middle zeroed', store: 'sqlite', damage: edit(DATABASE, zeroed(0.2, 0.9)) },
  {
    name: 'task renamed',
    store: 'sqlite',
    damage: sql(`UPDATE task SET title = 'another' WHERE id = 'kept-1'`),
  },
  { name: 'task deleted', store: 'sqlite', damage: sql(`DELETE FROM task WHERE id = 'kept-1'`) },
  {
    name: 'lease given to another',
    store: 'sqlite',
    damage: sql(`UPDATE lease SET holder = 'thief'`),
  },
  { name: 'leases deleted', store: 'sqlite', damage: sql('DELETE FROM lease') },
  { name: 'fences lowered', store: 'sqlite', damage: sql('UPDATE head SET fences = 1') },
  {
    name: 'event deleted',
    store: 'sqlite',
    damage: sql('DELETE FROM event WHERE position = 3'),
  },
  {
    name: 'last event deleted',
    store: 'sqlite',
    damage: sql('DELETE FROM event WHERE position = (SELECT max(position) FROM event)'),
  },
  { name: 'newest state cut', store: 'file', damage: newest(cut(0.7)) },
  { name: 'newest state empty', store: 'file', damage: newest(cut(0)) },
  { name: 'newest state is noise', store: 'file', damage: newest(noise) },
  { name: 'task renamed in place', store: 'file', damage: newest(swapped('Kept', 'Another')) },
  { name: 'holder changed', store: 'file', damage: newest(swapped('keeper', 'thief')) },
  {
    name: 'newest state gone',
    store: 'file',
    damage: (f) => fs.rmSync(join(f, states(f).at(-1)!)),
  },
  {
    name: 'all states gone',
    store: 'file',
    damage: (f) => states(f).forEach((name) => fs.rmSync(join(f, name))),
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
  const note = isFile ? {} : await command(env, 'memory', 'get', 'kept')
  const error = tasks.error ?? locks.error ?? note.error
  if (error) return error.code as string
  const pick = ({ id, title, status }: Json) => ({ id, title, status })
  const lease = ({ name, holder, fence }: Json) => ({ name, holder, fence })
  return { tasks: tasks.items.map(pick), locks: locks.items.map(lease), note: note.content }
}

/** A store with things in it that somebody was told of. */
async function furnish(env: Env): Promise<Known> {
  for (let i = 0; i < 4; i += 1) {
    await command(env, 'task', 'add', `Kept ${i}`, '--id', `kept-${i}`)
  }
  let fence = 0
  for (const name of ['one', 'two', 'three']) {
    const lease = await command(env, 'lock', 'acquire', name, '--ttl', '1h', '--agent', 'keeper')
    fence = lease.fence
  }
  await command(env, 'task', 'claim', 'kept-3', '--agent', 'keeper')
  const done = await command(env, 'task', 'status', 'kept-3', 'done', '--agent', 'keeper')
  if (done.task?.status !== 'done') throw new Error(JSON.stringify(done))
  if (env['LEASEHOLD_STORE'] !== 'file:') await command(env, 'memory', 'put', 'kept', 'a note')
  const known = await seen(env)
  if (typeof known === 'string') throw new Error(`a sound store said ${known}`)
  return { ...known, fence: fence + 1 }
}

/** `detected`, `harmless`, or what is wrong. */
async function verdictOf(env: Env, known: Known): Promise<string> {
  const shown = await seen(env)
  const wrote = await command(env, 'lock', 'acquire', 'probe', '--agent', 'prober', '--ttl', '1h')
  const robbed = await command(env, 'lock', 'acquire', 'one', '--agent', 'prober', '--ttl', '1h')
  const check = await command(env, 'db', 'check')
  const codes = [wrote.error?.code, robbed.error?.code, check.error?.code]
  const told = codes.find((code) => code === 'internal' || code === 'crash')
  if (told) return `somebody was told ${told}`
  if (wrote.error) {
    if (wrote.error.code !== 'damaged') return `a write was refused as ${wrote.error.code}`
    if (check.ok === true) return 'db check is content with a store that refuses writes as damaged'
    return robbed.error?.code === 'damaged' ? 'detected' : 'the second write went through'
  }
  if (check.ok !== true) return 'db check sees it, and writes go on'
  if (wrote.fence <= known.fence) return `fence ${wrote.fence} was given after ${known.fence}`
  if (robbed.error?.code !== 'held') return 'a lock that is held was given to another'
  const { fence: _, ...all } = known
  const differs = JSON.stringify(shown) !== JSON.stringify(all)
  return differs ? `content changed, and nobody is told: ${JSON.stringify(shown)}` : 'harmless'
}

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
    await command(base(store, origin), 'task', 'add', 'Kept last', '--id', 'kept-last')
    known.tasks.push({ id: 'kept-last', title: 'Kept last', status: 'todo' })
    for (const [i, { name, damage }] of wanted.entries()) {
      counts.now = `damage: ${name}`
      const dir = join(folder, `${store}-${i}`)
      fs.cpSync(origin, dir, { recursive: true })
      damage(dir)
      const verdict = await verdictOf(base(store, dir), known)
      counts.figure('damage cases', 1)
      if (verdict === 'detected' || verdict === 'harmless') counts.figure(`damage ${verdict}`, 1)
      else scene.violate('damage is detected', `${store}, ${name}: ${verdict}`)
      scene.note('damage', `${name}: ${verdict}`)
      fs.rmSync(dir, { recursive: true, force: true })
    }
    open?.close()
  }
  await scene.end()
}

export const damageCases: DamageCase[] = OWN
