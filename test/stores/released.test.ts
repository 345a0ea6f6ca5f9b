import { createHash } from 'node:crypto'
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join, resolve } from 'node:path'
import { gunzipSync } from 'node:zlib'
import { describe, expect, test } from 'vitest'
import { checkStore } from '../../src/stores/care.ts'
import { type Place, placeOf } from '../../src/stores/open.ts'
import { ada, askAgain, bob, folderOf, OPEN, type StoreKind } from '../fixtures/scene.ts'
import { load } from '../fixtures/postgres_rows.ts'
import { callerOf, expectRefusal, MachineSim, temporaryFolder } from '../support/helpers.ts'
import { MemoryVerbs } from '../support/memory_verbs.ts'
import { PathVerbs } from '../support/path_verbs.ts'
import { postgresUrl } from '../support/postgres.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'

const ROOT = resolve(import.meta.dirname, '../..')
const RELEASES = readdirSync(folderOf('')).filter((name) => /^\d/.test(name))
const scriptsOf = (release: string) =>
  JSON.parse(readFileSync(join(folderOf(release), 'scripts.json'), 'utf8')) as Record<
    string,
    string
  >

/** Puts a store of that release into a folder, as an upgrade finds it. */
const PUT: Record<StoreKind, (release: string, dir: string) => Promise<void> | void> = {
  sqlite: (release, dir) => {
    const packed = readFileSync(join(folderOf(release), 'leasehold.db.gz'))
    writeFileSync(join(dir, 'leasehold.db'), gunzipSync(packed), { mode: 0o600 })
  },
  file: (release, dir) => {
    const state = readdirSync(folderOf(release)).find((name) => name.startsWith('state.'))
    copyFileSync(join(folderOf(release), state!), join(dir, state!))
  },
  postgres: (release, dir) => {
    const rows = JSON.parse(readFileSync(join(folderOf(release), 'postgres.json'), 'utf8'))
    const scripts = Object.keys(scriptsOf(release)).filter((path) => path.endsWith('.pg.sql'))
    return load(dir, rows, scripts)
  },
}

function placeIn(kind: StoreKind, dir: string): Place {
  const store = {
    sqlite: `sqlite:${join(dir, 'leasehold.db')}`,
    file: `file:${dir}`,
    postgres: postgresUrl(dir),
  }[kind]
  return placeOf({ LEASEHOLD_DIR: join(dir, 'state'), LEASEHOLD_STORE: store }, dir)
}

const CASES = RELEASES.flatMap((release) =>
  (['sqlite', 'file', 'postgres'] as const).map((kind) => [kind, release] as const),
)

describe.each(CASES)('a %s store that %s wrote', (kind, release) => {
  async function old() {
    const dir = temporaryFolder()
    mkdirSync(join(dir, 'state'), { mode: 0o700 })
    await PUT[kind](release, dir)
    const machine = new MachineSim()
    machine.reboot(3_600_000)
    return { dir, place: placeIn(kind, dir), store: OPEN[kind](dir, machine) }
  }

  test('is opened, brought up to date and found in order', async () => {
    const { place, store } = await old()
    const { fence } = await new QueueVerbs(store).take('new', callerOf('eve'))
    // The highest that was granted in the scene, on any kind of store.
    expect(fence).toBeGreaterThan(5)
    await store.close()
    const { problems } = await checkStore(place)
    // Servers of tests are quick rather than safe.
    expect(problems.filter((each) => !each.includes('fsync = off'))).toEqual([])
  })

  test('has the tasks, leases, requests and reservations of then, under their fences', async () => {
    const { store } = await old()
    const verbs = new QueueVerbs(store)
    expect(await verbs.task('1')).toMatchObject({ labels: ['rust', 'ü€𝄞'], status: 'in_progress' })
    expect(await verbs.task('2')).toMatchObject({ depends_on: ['1'], metadata: { ra_score: 7 } })
    expect(await verbs.task('3')).toMatchObject({ status: 'done', priority: 9 })
    expect((await askAgain(store)) as object).toMatchObject({ id: '4' })
    await expectRefusal(verbs.take('moved', callerOf('eve')), 'held')
    await expectRefusal(verbs.renew('moved', ada, 3), 'fence_stale')
    await verbs.renew('moved', bob, 4)
    await expectRefusal(new PathVerbs(store).one('**/größe/x', bob), 'held')
    await verbs.move('1', 'done', ada, 1)
    expect((await verbs.next(bob))?.task.id).toBe('2')
    await store.close()
  })

  test('goes on with the conflict and the queue of then', async ({ skip }) => {
    // reason: a file store has neither memory nor a queue
    if (kind === 'file') skip()
    const { store } = await old()
    const verbs = new QueueVerbs(store)
    const memory = new MemoryVerbs(store)
    const [conflict] = await memory.open('build')
    await memory.resolve(conflict!.id, { choose: 'theirs' }, ada)
    expect(await memory.texts('build')).toEqual(['Run npm ci first'])
    // The run of then is lost with its boot: its task waits beside the other two.
    expect((await verbs.status()).pending.total).toBe(3)
    await store.close()
  })
})

describe('migration scripts are frozen once they are released', () => {
  test.each(RELEASES)('%s ran the scripts that are here now', (release) => {
    const now = Object.keys(scriptsOf(release)).map((path) => {
      const text = readFileSync(join(ROOT, path))
      return [path, createHash('sha256').update(text).digest('hex')]
    })
    // Never write new digests here: databases have run the script. Add the next one instead.
    expect(Object.fromEntries(now)).toEqual(scriptsOf(release))
  })
})
