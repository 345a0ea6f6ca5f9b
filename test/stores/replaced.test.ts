import {
  copyFileSync,
  readFileSync,
  renameSync,
  rmSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { afterEach, describe, expect, test } from 'vitest'
import { plant } from '../../src/core/planted.ts'
import { isUnused } from '../../src/stores/care.ts'
import { placeOf } from '../../src/stores/open.ts'
import { backupSqlite, restoreSqlite } from '../../src/stores/sqlite/care.ts'
import { checkSqlite } from '../../src/stores/sqlite/check.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { SCHEMA_VERSION } from '../../src/stores/sqlite/migrate.ts'
import {
  callerOf,
  expectRefusal,
  MachineSim,
  openFile,
  openSqlite,
  temporaryFolder,
  Verbs,
} from '../support/helpers.ts'

const ada = callerOf('ada')
const bob = callerOf('bob')
const SIDES = ['', '-wal', '-shm']

afterEach(() => plant(undefined))

function begin() {
  const dir = temporaryFolder()
  const path = join(dir, 'leasehold.db')
  const machine = new MachineSim()
  const open = () => new Verbs(openSqlite(dir, machine))
  return { dir, path, open, verbs: open() }
}

type Begun = ReturnType<typeof begin>

const remove = (path: string, sides = SIDES) => {
  for (const side of sides) rmSync(path + side, { force: true })
}

/** The only line that was synced, as another boot left it: at its place, and nothing before it. */
function lineOfWitness(fences: string, boot: string): Buffer {
  const said = `0 ${fences} 1 ${boot}`
  const sum = Buffer.from(said).reduce((each, code) => (each * 31 + code) % 1_000_003, 7)
  return Buffer.concat([Buffer.alloc(192), Buffer.from(`${`${said} ${sum}`.padEnd(95)}\n`)])
}

/** As after kill -9 of every process: what was committed is in the side file alone. */
async function crashed({ path, verbs }: Begun): Promise<void> {
  for (const side of SIDES) copyFileSync(path + side, `${path}.kept${side}`)
  await verbs.store.close()
  for (const side of SIDES) renameSync(`${path}.kept${side}`, path + side)
}

describe('a database that is not the one that was opened', () => {
  test('is not written any more when it was removed, and nobody makes a new one', async () => {
    const begun = begin()
    await begun.verbs.take('a', ada)
    remove(begun.path)
    const told = await expectRefusal(begun.verbs.take('b', ada), 'unavailable')
    expect(told.message).toMatch(/removed while this process had it open/)
    expect(told.details).toMatchObject({ stopping: true })
    await expectRefusal(begun.verbs.lease('a'), 'unavailable')
    await expectRefusal(begun.open().take('a', bob), 'damaged')
    await expectRefusal(begun.open().lease('a'), 'damaged')
  })

  test('is followed when it was restored, also over a damaged file', async () => {
    const begun = begin()
    const { path, verbs } = begun
    const { fence } = await verbs.take('a', ada)
    await backupSqlite(path, `${path}.copy`)
    await verbs.take('later', ada)
    remove(path, ['-wal', '-shm'])
    writeFileSync(`${path}.garbage`, 'garbage')
    renameSync(`${path}.garbage`, path)
    await restoreSqlite(path, `${path}.copy`)
    const taken = await verbs.take('a', bob)
    expect(taken.fence).toBeGreaterThan(fence)
    await expectRefusal(begun.open().take('a', ada), 'held')
    expect(await verbs.lease('later')).toBeUndefined()
  })

  test('is damaged when an older backup was put in its place by hand', async () => {
    const begun = begin()
    const { path, verbs } = begun
    await verbs.take('a', ada)
    await backupSqlite(path, `${path}.copy`)
    await verbs.take('later', ada)
    remove(path, ['-wal', '-shm'])
    renameSync(`${path}.copy`, path)
    for (const asked of [verbs, begun.open()]) {
      await expectRefusal(asked.take('b', bob), 'damaged')
      await expectRefusal(asked.lease('later'), 'damaged')
    }
    expect(checkSqlite(path).problems.join()).toMatch(/has lost what was committed/)
  })

  test('is refused when another store was begun in an emptied folder', async () => {
    const begun = begin()
    await begun.verbs.take('a', ada)
    remove(begun.path)
    rmSync(join(begun.dir, 'witness.leasehold.db'))
    const others = begun.open()
    for (const name of ['a', 'b', 'c']) await others.take(name, bob)
    const told = await expectRefusal(begun.verbs.take('d', ada), 'unavailable')
    expect(told.message).toMatch(/Another store stands at/)
    expect(told.details).toMatchObject({ stopping: true })
  })

  test('is used as before when it is a whole copy of what was there', async () => {
    const { path, verbs, open } = begin()
    await verbs.take('a', ada)
    await backupSqlite(path, `${path}.copy`)
    remove(path)
    renameSync(`${path}.copy`, path)
    await expectRefusal(verbs.take('a', bob), 'held')
    expect(await verbs.take('b', ada)).toMatchObject({ fence: 2 })
    await expectRefusal(open().take('b', bob), 'held')
    const db = openDatabase(path, { readOnly: true })
    expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
    db.close()
  })

  test('loses nothing when only its side files were removed under it', async () => {
    const { path, verbs } = begin()
    await verbs.take('a', ada)
    remove(path, ['-wal', '-shm'])
    const told = await expectRefusal(verbs.take('b', ada), 'unavailable')
    expect(told.message).toMatch(/-wal and -shm were removed/)
    expect(told.details).toMatchObject({ stopping: true })
    copyFileSync(path, `${path}.seen`)
    const db = openDatabase(`${path}.seen`, { readOnly: true })
    expect(db.prepare('SELECT name FROM lease').all()).toEqual([{ name: 'a' }])
    db.close()
  })

  test('is told of by a check when its file is gone', async () => {
    const { path, verbs } = begin()
    await verbs.take('a', ada)
    await verbs.store.close()
    remove(path)
    const { ok, problems } = checkSqlite(path)
    expect([ok, problems[0]]).toEqual([false, expect.stringContaining('has lost')])
    const folder = dirname(path)
    expect(isUnused(placeOf({ LEASEHOLD_DIR: folder }, folder))).toBe(false)
  })

  test('does not acknowledge what was committed into a file that is gone by then', async () => {
    const { path, verbs } = begin()
    await verbs.take('a', ada)
    const asked = verbs.store.write((view) => {
      view.record('store.pruned', { agent: 'x' }, {})
      remove(path)
    })
    const told = await expectRefusal(asked, 'unavailable')
    expect(told.details).toMatchObject({ outcome: 'unknown' })
  })
})

describe('a database that lost what was committed', () => {
  const LOSSES: [string, (wal: string) => void][] = [
    ['removed', (wal) => rmSync(wal)],
    ['cut to nothing', (wal) => truncateSync(wal, 0)],
    ['cut in half', (wal) => truncateSync(wal, 4_096 * 20)],
    ['zeroed', (wal) => writeFileSync(wal, Buffer.alloc(100_000))],
  ]

  async function loseSideFile(lose: (wal: string) => void): Promise<Begun & { last: number }> {
    const begun = begin()
    let last = 0
    for (let i = 0; i < 40; i += 1) last = (await begun.verbs.take(`lock-${i}`, ada)).fence
    await crashed(begun)
    lose(`${begun.path}-wal`)
    return { ...begun, last }
  }

  test.each(LOSSES)('because its WAL was %s is damaged, for readers too', async (_, lose) => {
    const { path, open, last } = await loseSideFile(lose)
    await expectRefusal(open().take('more', bob), 'damaged')
    await expectRefusal(open().lease('lock-39'), 'damaged')
    expect(checkSqlite(path).ok).toBe(false)
    expect(last).toBe(40)
  })

  test('is caught by a bug planted: without a witness fences come again', async () => {
    const { open, last } = await loseSideFile(LOSSES[2]![1])
    plant('S3 witness')
    expect((await open().take('more', bob)).fence).toBeLessThanOrEqual(last)
  })

  test('because it was the last one, and not told yet, gives its fence to nobody', async () => {
    const begun = begin()
    const { path, verbs, dir, open } = begun
    await verbs.take('a', ada)
    const before = readFileSync(join(dir, 'witness.leasehold.db'))
    await backupSqlite(path, `${path}.before`)
    const { fence } = await verbs.take('b', ada)
    await verbs.store.close()
    // The process died between its COMMIT and its note of that, and the commit was lost as well.
    const after = readFileSync(join(dir, 'witness.leasehold.db'))
    before.copy(after, 0, 0, 96)
    writeFileSync(join(dir, 'witness.leasehold.db'), after)
    remove(path)
    renameSync(`${path}.before`, path)
    expect((await open().take('c', bob)).fence).toBe(fence + 1)
  })

  test('by a power loss goes on behind all fences that were reserved', async () => {
    const { verbs, dir, open } = begin()
    const { fence } = await verbs.take('a', ada)
    await verbs.store.close()
    const file = join(dir, 'witness.leasehold.db')
    const reserved = /^(\d+) (\d+) (\d+) ([0-9a-f-]{36}) /m.exec(readFileSync(file, 'utf8'))!
    writeFileSync(file, lineOfWitness(reserved[2]!, '00000000-0000-0000-0000-000000000000'))
    expect((await open().take('b', ada)).fence).toBe(Number(reserved[2]) + 1)
    expect(Number(reserved[2])).toBeGreaterThan(fence)
  })

  test('is damaged when its counter of fences was set back', async () => {
    const { path, verbs, open } = begin()
    for (const name of ['a', 'b', 'c']) await verbs.take(name, ada)
    await verbs.store.close()
    const db = openDatabase(path, { readOnly: false })
    db.exec('UPDATE head SET fences = 1')
    db.close()
    await expectRefusal(open().take('d', bob), 'damaged')
  })
})

describe('a store that a newer program migrated', () => {
  test('is refused by those who have it open, for writing and for reading', async () => {
    const { path, verbs } = begin()
    await verbs.take('a', ada)
    await verbs.lease('a')
    const db = openDatabase(path, { readOnly: false })
    db.exec(`BEGIN; CREATE TABLE newer (x); PRAGMA user_version = ${SCHEMA_VERSION + 1}; COMMIT`)
    db.close()
    for (const ask of [() => verbs.take('b', ada), () => verbs.lease('a')]) {
      const told = await expectRefusal(ask(), 'unavailable')
      expect(told.message).toMatch(/newer leasehold/)
      expect(told.next).toMatch(/restart what still runs/)
      expect(told.details).toMatchObject({ stopping: true })
    }
  })
})

describe('a file store', () => {
  test('whose newest states were deleted is damaged, also for who starts afterwards', async () => {
    const dir = temporaryFolder()
    const machine = new MachineSim()
    const open = () => new Verbs(openFile(dir, machine))
    const verbs = open()
    for (const name of ['a', 'b', 'c']) await verbs.take(name, ada)
    rmSync(join(dir, 'state.3.json'))
    await expectRefusal(open().take('c', bob), 'damaged')
    rmSync(join(dir, 'state.2.json'))
    rmSync(join(dir, 'state.1.json'))
    await expectRefusal(open().take('c', bob), 'damaged')
    await expectRefusal(verbs.take('c', bob), 'damaged')
  })

  test('whose folder was removed and begun anew is refused by those who knew it', async () => {
    const dir = join(temporaryFolder(), 'files')
    const machine = new MachineSim()
    const verbs = new Verbs(openFile(dir, machine))
    for (const name of ['a', 'b', 'c']) await verbs.take(name, ada)
    rmSync(dir, { recursive: true })
    expect((await expectRefusal(verbs.take('d', ada), 'unavailable')).message).toMatch(/removed/)
    await new Verbs(openFile(dir, machine)).take('a', bob)
    const told = await expectRefusal(verbs.take('d', ada), 'unavailable')
    expect(told.details).toMatchObject({ stopping: true })
  })
})
