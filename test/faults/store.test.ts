import {
  chmodSync,
  chownSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isNetworkType, mountType, networkName } from '../../src/machine/file_system.ts'
import { refuseUnsafeFolder } from '../../src/machine/place.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import {
  because,
  type Options,
  PARTICIPANT,
  sandbox,
  type Sandbox,
  TEST_CLI,
} from '../support/processes.ts'

const NOBODY = 65_534
const isRoot = process.getuid?.() === 0

async function withStore(): Promise<{ place: Sandbox; database: string }> {
  const place = sandbox()
  const program = [process.execPath, PARTICIPANT]
  expect((await place.start(['add', '30'], { program, input: 'go' }).ended).code).toBe(0)
  return { place, database: join(place.state, 'leasehold.db') }
}

describe('a store that is damaged', () => {
  const WAYS: [string, (path: string) => void][] = [
    [
      'garbage',
      (path) => writeFileSync(path, 'this is not a database, and never was\n'.repeat(99)),
    ],
    ['cut off', (path) => truncateSync(path, 4096 * 3)],
    ['flipped pages', (path) => writeFileSync(path, flipped(readFileSync(path)))],
  ]

  for (const [how, damage] of WAYS) {
    test(`${how}: every command is refused as damaged, and a backup brings it back`, async () => {
      const { place, database } = await withStore()
      await place.ok(['db', 'backup', place.path('good.db')])
      damage(database)
      const check = await place.refused(['db', 'check'], 'damaged', 76)
      expect(check.next).toContain('leasehold db restore')
      await place.refused(['task', 'list'], 'damaged', 76)
      await place.refused(['task', 'add', 'More'], 'damaged', 76)
      const doctor = await place.cli(['doctor'])
      expect(doctor.code).toBe(76)
      expect(doctor.out).toContain('FAIL store')
      await place.ok(['db', 'restore', place.path('good.db'), '--yes'])
      expect((await place.ok(['task', 'list'])).items).toHaveLength(30)
      expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, problems: [] })
    })
  }

  test('a damaged backup is refused, and the store is left as it is', async () => {
    const { place } = await withStore()
    await place.ok(['db', 'backup', place.path('bad.db')])
    writeFileSync(place.path('bad.db'), flipped(readFileSync(place.path('bad.db'))))
    await place.refused(['db', 'restore', place.path('bad.db'), '--yes'], 'damaged', 76)
    expect(await place.ok(['db', 'check'])).toMatchObject({ ok: true, epoch: 0 })
    expect((await place.ok(['task', 'list'])).items).toHaveLength(30)
  })

  /** A newest state that cannot be read; `how` says by which program that is found. */
  async function expectStopped(how: Options = {}): Promise<void> {
    const place = sandbox()
    place.env['LEASEHOLD_STORE'] = 'file:files'
    const lease = await place.ok(['lock', 'acquire', 'x', '--agent', 'a'])
    await place.ok(['task', 'add', 'Later'])
    writeFileSync(place.path('files/state.2.json'), '{"half":')
    // Reads go on from the last good state, and say that they may lack something.
    const listed = await place.cli(['--json', 'lock', 'list'], how)
    expect(listed.json.items).toHaveLength(1)
    expect({ code: listed.code, said: listed.err }).toEqual({
      code: 76,
      said: expect.stringContaining('damaged'),
    })
    await place.refused(['task', 'add', 'More'], 'damaged', 76, how)
    await place.refused(['db', 'check'], 'damaged', 76, how)
    await place.ok(['db', 'restore', '--last-good', '--yes'], how)
    const next = await place.ok(['lock', 'acquire', 'y'], how)
    expect(next.fence).toBeGreaterThan(lease.fence + 2 ** 39)
    expect(await place.ok(['db', 'check'], how)).toMatchObject({ ok: true })
    // What the lease covered after the damaged state is not known: it may speak no more.
    const renew = ['lock', 'renew', 'x', '--agent', 'a', '--fence', `${lease.fence}`]
    expect((await place.cli(renew, how)).code).toBe(5)
  }

  test('file: a corrupt newest state stops writes, reads go on, --last-good mends it', async () => {
    await expectStopped()
  })

  test('a bug planted in S11, which writes on from the last good state, is caught', async () => {
    const program = [process.execPath, TEST_CLI]
    const stopped = expectStopped({ program, env: { LEASEHOLD_PLANT: 'S11' } })
    await expect(stopped).rejects.toThrow('task add More')
  })

  function flipped(bytes: Buffer): Buffer {
    for (let at = 4096; at < bytes.length; at += 64) bytes[at]! ^= 0xff
    return bytes
  }
})

describe('a store that this program or login must not use', () => {
  test('one that a newer leasehold wrote is refused for reading and writing', async () => {
    const { place, database } = await withStore()
    const db = openDatabase(database, { readOnly: false })
    db.exec('PRAGMA user_version = 99')
    db.close()
    for (const args of [
      ['task', 'list'],
      ['task', 'add', 'x'],
      ['db', 'migrate'],
    ]) {
      const { message } = await place.refused(args, 'unavailable', 75)
      expect(message).toContain('newer leasehold')
    }
  })

  test('the folder of another login is refused', async (context) => {
    // reason: only root can give a folder to another login, or become one
    if (!isRoot) context.skip(because('not root: cannot make a folder of another login'))
    const { place } = await withStore()
    chmodSync(place.folder, 0o755)
    const args = ['lock', 'acquire', 'x']
    const refused = await place.refused(args, 'forbidden', 4, { uid: NOBODY })
    expect(refused.message).toContain('belongs to another login')
    chownSync(place.state, NOBODY, NOBODY)
    await place.refused(args, 'forbidden', 4)
  })

  test('a folder that cannot be written is a typed refusal, and reads go on', async (context) => {
    // reason: modes do not bind root, and only root can become another login to be bound by them
    if (!isRoot) context.skip(because('not root: cannot run as a login that modes bind'))
    const place = sandbox()
    chmodSync(place.folder, 0o755)
    mkdirSync(place.state)
    chownSync(place.state, NOBODY, NOBODY)
    const as = { uid: NOBODY }
    await place.ok(['task', 'add', 'Kept', '--id', '1'], as)
    for (const name of readdirSync(place.state)) chmodSync(join(place.state, name), 0o400)
    chmodSync(place.state, 0o500)
    const refusal = await place.refused(['task', 'add', 'More'], 'unavailable', 75, as)
    expect(refusal.next).toContain('LEASEHOLD_DIR')
    expect(await place.ok(['task', 'show', '1'], as)).toMatchObject({ title: 'Kept' })
    chmodSync(place.state, 0o700)
    for (const name of readdirSync(place.state)) chmodSync(join(place.state, name), 0o600)
    await place.ok(['task', 'add', 'More'], as)
    // No folder yet, and none to be made.
    chmodSync(place.home, 0o555)
    const env = { LEASEHOLD_DIR: join(place.home, 'new') }
    await place.refused(['task', 'add', 'x'], 'unavailable', 75, { ...as, env })
    const unreadable = { ...as, env: { LEASEHOLD_DIR: place.path('locked') } }
    mkdirSync(place.path('locked'), { mode: 0 })
    chownSync(place.path('locked'), NOBODY, NOBODY)
    await place.refused(['task', 'add', 'x'], 'unavailable', 75, unreadable)
    await place.refused(['task', 'list'], 'unavailable', 75, unreadable)
  })

  test('a file or a dangling link in the place of the folder or database is refused', async () => {
    const place = sandbox()
    writeFileSync(place.state, 'a file')
    await place.refused(['task', 'add', 'x'], 'invalid', 2)
    const elsewhere = place.path('elsewhere')
    mkdirSync(elsewhere, { mode: 0o700 })
    symlinkSync(place.path('target.db'), join(elsewhere, 'leasehold.db'))
    const env = { LEASEHOLD_DIR: elsewhere }
    await place.refused(['task', 'add', 'x'], 'unavailable', 75, { env })
    expect(readdirSync(place.folder)).not.toContain('target.db')
  })

  test('network file systems are known by their type, also where it reads as negative', () => {
    expect(networkName(0x6969)).toBe('NFS')
    expect(networkName(0xff534d42)).toBe('CIFS')
    expect(networkName(0xff534d42 | 0)).toBe('CIFS')
    expect(networkName(0x00c36400)).toBe('Ceph')
    for (const local of [0xef53, 0x58465342, 0x9123683e, 0x01021994, 0x794c7630]) {
      expect(networkName(local)).toBeUndefined()
    }
  })

  const MOUNTS = `proc /proc proc rw 0 0
/dev/sda1 / ext4 rw,relatime 0 0
ada@far:/home /mnt/far fuse.sshfs rw,nosuid,user_id=0 0 0
share /mnt/share virtiofs rw,relatime 0 0
/dev/sdb1 /mnt/a\\040disk fuseblk rw,user_id=0 0 0
/dev/sdc1 /mnt/far/own ext4 rw 0 0
gluster:/v /srv/g fuse.glusterfs rw 0 0
tmpfs /mnt/far/own tmpfs rw 0 0`

  test('a mount is found by the longest path, and of two in one place by the last', () => {
    const types = ['/mnt/far/x', '/mnt/far/own/x', '/mnt/farther', '/mnt/a disk/x', '/srv/g'].map(
      (path) => mountType(path, MOUNTS),
    )
    expect(types).toEqual(['fuse.sshfs', 'tmpfs', 'ext4', 'fuseblk', 'fuse.glusterfs'])
  })

  test('what FUSE serves is refused unless it is known to be of this machine', () => {
    for (const type of ['fuse.sshfs', 'virtiofs', 'fuse.glusterfs', 'fuse.s3fs', 'fuse', 'nfs4']) {
      expect(isNetworkType(type), type).toBe(true)
    }
    for (const type of ['ext4', 'fuseblk', 'fuse.fuse-overlayfs', 'overlay', 'tmpfs', 'fusectl']) {
      expect(isNetworkType(type), type).toBe(false)
    }
  })

  test('a folder that is to be made is judged by the one it will be made in', () => {
    const place = sandbox()
    expect(() => refuseUnsafeFolder(join(place.folder, 'a', 'b', 'c'))).not.toThrow()
  })
})
