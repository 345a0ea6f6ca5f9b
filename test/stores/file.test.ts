import {
  appendFileSync,
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { createHash } from 'node:crypto'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { FENCES_PER_EPOCH } from '../../src/stores/writer/layer.ts'
import { FileBackend } from '../../src/stores/file/backend.ts'
import { checkFileStore } from '../../src/stores/file/check.ts'
import { backupFileStore } from '../../src/stores/file/backup.ts'
import { LockFile } from '../../src/stores/file/lockfile.ts'
import { restoreFileStore, restoreLastGood } from '../../src/stores/file/restore.ts'
import { machine } from '../../src/machine/machine.ts'
import { Store } from '../../src/stores/writer/store.ts'
import { callerOf, expectRefusal, MachineSim, temporaryFolder, Verbs } from '../support/helpers.ts'

const me = callerOf('me')
const other = callerOf('other')

function open(dir: string): Verbs {
  return new Verbs(new Store(new FileBackend({ dir, busy_timeout_ms: 5_000 }), machine))
}

const stateNames = (dir: string) => readdirSync(dir).filter((name) => name.startsWith('state.'))
const epochOf = (fence: number) => Math.floor(fence / FENCES_PER_EPOCH)

/** A store with locks `lock-1` … `lock-<states>`, one state each. */
async function filled(states = 3): Promise<{ dir: string; verbs: Verbs; newest: string }> {
  const dir = temporaryFolder()
  const verbs = open(dir)
  for (let i = 1; i <= states; i += 1) await verbs.take(`lock-${i}`, me)
  return { dir, verbs, newest: join(dir, `state.${states}.json`) }
}

describe('what is in the folder', () => {
  test('a missing folder reads as empty and stays missing; the first write makes it', async () => {
    const dir = join(temporaryFolder(), 'deep', 'store')
    const verbs = open(dir)
    expect(await verbs.lease('a')).toBeUndefined()
    expect(await verbs.store.events(0, 10)).toEqual([])
    await expectRefusal(verbs.release('a', me), 'lease_expired')
    expect(await checkFileStore(dir)).toMatchObject({ ok: true, events: 0 })
    expect(existsSync(dir)).toBe(false)
    await verbs.take('a', me)
    expect(statSync(dir).mode & 0o777).toBe(0o700)
    expect(readdirSync(dir)).toEqual(['state.1.json', 'witness.state'])
    expect(statSync(join(dir, 'state.1.json')).mode & 0o777).toBe(0o600)
  })

  test('the document has the layout that other languages rely on', async () => {
    const { newest } = await filled()
    const text = readFileSync(newest, 'utf8')
    const [, sha256, state] = /^\{"sha256":"([0-9a-f]{64})","state":(\{.*\})\}\n$/s.exec(text)!
    expect(createHash('sha256').update(state!).digest('hex')).toBe(sha256)
    const { format, number, id, lineage, head, tables } = JSON.parse(state!)
    expect({ format, number, fences: head.fences }).toEqual({ format: 1, number: 3, fences: 3 })
    expect(lineage).toHaveLength(3)
    expect(lineage.at(-1)).toBe(id)
    expect(tables.lease.map((row: { name: string }) => row.name)).toContain('lock-3')
  })

  test('old states are pruned, and the chain goes on behind a checkpoint', async () => {
    const { dir, verbs } = await filled(20)
    expect(stateNames(dir)).toHaveLength(16)
    await Promise.all(Array.from({ length: 1_100 }, (_, i) => verbs.take(`more-${i}`, me)))
    const { ok, events, head } = await checkFileStore(dir)
    expect({ ok, events, position: head.position }).toEqual({
      ok: true,
      events: 1_000,
      position: 1_120,
    })
    const [first] = await verbs.store.events(0, 1)
    expect(first!.position).toBe(121)
  })

  test('two stores on one folder see what the other wrote', async () => {
    const { dir, verbs } = await filled()
    const second = open(dir)
    await expectRefusal(second.take('lock-1', other), 'held')
    await second.take('theirs', other)
    await expectRefusal(verbs.take('theirs', me), 'held')
  })

  test('after a new boot leases that had not expired get one full TTL', async () => {
    const dir = temporaryFolder()
    const sim = new MachineSim()
    const verbs = new Verbs(new Store(new FileBackend({ dir, busy_timeout_ms: 5_000 }), sim))
    const lease = await verbs.take('a', me, { ttl_ms: 10_000 })
    sim.advance(9_000)
    sim.reboot()
    await verbs.take('b', me)
    const after = (await verbs.lease('a'))!
    expect(after.fence).toBe(lease.fence)
    expect(after.expires_ms - (await verbs.lease('b'))!.acquired_ms).toBe(10_000)
  })
})

describe('leftovers and the lock file', () => {
  const dead = { host: machine.host, seat: machine.seat, pid: 2 ** 22 + 1, start: 1 }

  test.each([
    ['corrupt', '\u0000\u0001 nonsense'],
    ['empty', ''],
    ['of a dead process', JSON.stringify({ ...dead, id: 'x' })],
    ['of a living process that does nothing', JSON.stringify({ ...dead, pid: 1, seat: 'far' })],
  ])('a lock file heals itself: %s', async (_, text) => {
    const { dir, verbs } = await filled()
    writeFileSync(join(dir, 'write.lock'), text)
    await verbs.take('a', me)
    expect(existsSync(join(dir, 'write.lock'))).toBe(false)
  })

  test('a lock file that cannot be had is gone without', async () => {
    const { dir, verbs } = await filled()
    mkdirSync(join(dir, 'write.lock'))
    await verbs.take('a', me)
    expect((await verbs.lease('a'))!.holder).toBe('me')
  })

  test('a lock file that cannot be removed is waited for once', async () => {
    const { dir, verbs } = await filled()
    const lock = new LockFile(dir)
    mkdirSync(join(dir, 'write.lock'))
    await verbs.take('a', me)
    await lock.take()
    const begun = performance.now()
    for (let i = 0; i < 100; i += 1) await lock.take()
    // As long as one that is corrupt is waited for, a hundred times, would be ten seconds.
    expect(performance.now() - begun).toBeLessThan(5_000)
  })

  test('temporary files of dead processes are removed, those of the living stay', async () => {
    const { dir, verbs, newest } = await filled()
    const mark = createHash('sha256').update(machine.seat).digest('hex').slice(0, 8)
    const gone = `tmp.${mark}.${dead.pid}.1.abcdef`
    const foreign = 'tmp.00000000.1.1.abcdef'
    for (const name of [gone, foreign]) writeFileSync(join(dir, name), readFileSync(newest))
    await verbs.take('a', me)
    expect(readdirSync(dir)).not.toContain(gone)
    expect(readdirSync(dir)).toContain(foreign)
  })
})

describe('damage', () => {
  const ways: [string, (path: string) => void][] = [
    ['cut off', (path) => truncateSync(path, 200)],
    ['emptied', (path) => truncateSync(path, 0)],
    ['longer', (path) => appendFileSync(path, 'x')],
    ['changed', (path) => change(path, '"lock-1"', '"lock-9"')],
    [
      'another state',
      (path) => writeFileSync(path, readFileSync(path.replace('3.json', '2.json'))),
    ],
    ['a link', (path) => swapForLink(path)],
  ]

  function change(path: string, from: string, to: string): void {
    writeFileSync(path, readFileSync(path, 'utf8').replace(from, to))
  }

  function swapForLink(path: string): void {
    rmSync(path)
    symlinkSync('state.2.json', path)
  }

  test.each(ways)(
    'newest state %s: reads go on, writes are refused, restore mends',
    async (_, harm) => {
      const { dir, verbs, newest } = await filled()
      const highest = (await verbs.lease('lock-3'))!.fence
      harm(newest)
      expect((await checkFileStore(dir)).problems.join()).toMatch(/state\.3\.json/)
      for (const store of [verbs, open(dir)]) {
        expect((await store.lease('lock-2'))!.holder).toBe('me')
        expect(await store.lease('lock-3')).toBeUndefined()
        expect(await store.eventTypes()).toHaveLength(2)
        const refusal = await expectRefusal(store.take('a', me), 'damaged')
        expect(refusal.next).toMatch(/leasehold db restore --last-good/)
      }
      expect(stateNames(dir)).toHaveLength(3)
      const { epoch, kept } = await restoreLastGood(dir)
      expect(epoch).toBe(1)
      expect(readdirSync(dir)).toContain(basename(kept[0]!))
      expect((await verbs.take('a', me)).fence).toBeGreaterThan(highest)
      expect((await open(dir).take('lock-3', other)).fence).toBeGreaterThan(highest)
      expect(await checkFileStore(dir)).toMatchObject({ ok: true, problems: [] })
    },
  )

  test('a newest state that somebody deleted is missed by those who saw it', async () => {
    const { dir, verbs, newest } = await filled()
    const lost = (await verbs.lease('lock-3'))!
    rmSync(newest)
    const refusal = await expectRefusal(verbs.take('a', me), 'damaged')
    expect(refusal.message).toMatch(/state\.3\.json was published, and is gone/)
    expect((await verbs.lease('lock-2'))!.holder).toBe('me')
    await restoreLastGood(dir)
    expect((await verbs.take('lock-3', me)).fence).toBeGreaterThan(lost.fence)
  })

  test('--last-good beside a writer at work takes nothing from it', async () => {
    const { dir, verbs } = await filled()
    const mending = Array.from({ length: 5 }, () => restoreLastGood(dir))
    for (let i = 0; i < 20; i += 1) await verbs.take(`more-${i}`, me)
    await Promise.all(mending)
    for (let i = 0; i < 20; i += 1) expect((await verbs.lease(`more-${i}`))!.holder).toBe('me')
    expect(await checkFileStore(dir)).toMatchObject({ ok: true, problems: [] })
  })

  test('no good state is left: even reads say so, and a backup brings it back', async () => {
    const { dir, verbs } = await filled()
    const backup = join(temporaryFolder(), 'backup.json')
    await backupFileStore(dir, backup)
    for (const name of stateNames(dir)) truncateSync(join(dir, name), 10)
    await expectRefusal(verbs.lease('lock-1'), 'damaged')
    await expectRefusal(restoreLastGood(dir), 'damaged')
    const { kept } = await restoreFileStore(dir, backup)
    expect(kept).toHaveLength(3)
    expect((await verbs.lease('lock-3'))!.holder).toBe('me')
  })

  test('a state of a newer program is left alone', async () => {
    const { dir, newest } = await filled()
    const state = /"state":(.*)\}\n$/s.exec(readFileSync(newest, 'utf8'))![1]!
    const newer = state.replace('"format":1', '"format":2')
    const sha256 = createHash('sha256').update(newer).digest('hex')
    writeFileSync(newest, `{"sha256":"${sha256}","state":${newer}}\n`)
    const refusal = await expectRefusal(open(dir).take('a', me), 'unavailable')
    expect(refusal.next).toMatch(/Upgrade/)
  })
})

describe('backup and restore', () => {
  test('a restore raises the epoch above backup, store and any restore before', async () => {
    const { dir, verbs } = await filled()
    const backup = join(temporaryFolder(), 'backups', 'backup.json')
    expect(await backupFileStore(dir, backup)).toMatchObject({ number: 3, position: 3 })
    await expectRefusal(backupFileStore(dir, backup), 'invalid')
    const later = await verbs.take('later', me)

    expect((await restoreFileStore(dir, backup)).epoch).toBe(1)
    expect(await verbs.lease('later')).toBeUndefined()
    const second = await verbs.take('later', me)
    expect(second.fence).toBeGreaterThan(later.fence)
    expect(epochOf(second.fence)).toBe(1)
    expect((await restoreFileStore(dir, backup)).epoch).toBe(2)

    for (const name of stateNames(dir)) rmSync(join(dir, name))
    expect((await restoreFileStore(dir, backup)).epoch).toBe(3)
    expect(epochOf((await open(dir).take('again', me)).fence)).toBe(3)
    expect((await checkFileStore(dir)).problems).toEqual([])
  })

  test('what cannot be restored changes nothing', async () => {
    const { dir, newest } = await filled()
    await expectRefusal(restoreFileStore(dir, join(dir, 'missing')), 'not_found')
    const bad = join(temporaryFolder(), 'bad.json')
    writeFileSync(bad, readFileSync(newest, 'utf8').slice(0, -9))
    await expectRefusal(restoreFileStore(dir, bad), 'damaged')
    await expectRefusal(backupFileStore(join(dir, 'none'), bad), 'not_found')
    expect(stateNames(dir)).toHaveLength(3)
  })
})

describe('bounds', () => {
  test('the 5,001st task is refused, and the others go on', async () => {
    const dir = temporaryFolder()
    const verbs = open(dir)
    await Promise.all(Array.from({ length: 4_999 }, (_, i) => verbs.add(`task ${i}`, me)))
    const [last, over] = [verbs.add('the last', me), verbs.add('one too many', me)]
    expect((await last).id).toBe('5000')
    const refusal = await expectRefusal(over, 'unavailable')
    expect(refusal.next).toMatch(/leasehold db copy/)
    const { lease } = await verbs.claim('5000', me)
    await verbs.move('5000', 'done', me, lease.fence)
    expect((await verbs.task('5000')).status).toBe('done')
    await expectRefusal(open(dir).add('still too many', me), 'unavailable')
  })

  test('a folder that cannot be written is a typed refusal, and reads go on', async () => {
    const { dir, verbs } = await filled()
    chmodSync(dir, 0o555)
    // The superuser may write anywhere, so it steps down for a moment.
    const root = process.geteuid!() === 0
    for (const name of ['state.3.json', 'witness.state']) chmodSync(join(dir, name), 0o444)
    if (root) process.seteuid!(65_534)
    try {
      await expectRefusal(verbs.take('a', me), 'unavailable')
      expect((await verbs.lease('lock-3'))!.holder).toBe('me')
    } finally {
      if (root) process.seteuid!(0)
      chmodSync(dir, 0o700)
    }
    expect((await verbs.take('a', me)).name).toBe('a')
    await expectRefusal(open(join(dir, 'state.3.json')).take('a', me), 'unavailable')
  })
})
