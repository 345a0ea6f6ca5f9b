import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { dispatching, type Dispatching, HELD, script } from '../support/dispatching.ts'
import { because, isAlive, until } from '../support/processes.ts'

const [MOUNT, UMOUNT] = ['mount', 'umount'] as const

/** Takes the only place of a writer in the store; the answer gives it back. */
async function occupy(all: Dispatching): Promise<() => void> {
  const db = openDatabase(join(all.place.state, 'leasehold.db'), { readOnly: false })
  onTestFinished(() => db.close())
  await until('the store is ours', () => {
    try {
      db.exec('BEGIN IMMEDIATE')
      return true
    } catch {
      return false
    }
  })
  return () => db.exec('ROLLBACK')
}

/** Nobody says that a runner tries in vain: this is long enough for several tries. */
async function letTry(): Promise<void> {
  const since = performance.now()
  await until('it was tried in vain', () => performance.now() - since > 1_500)
}

/** The daemon lives, or what it said last. */
function expectAlive({ daemon }: Dispatching): void {
  expect(isAlive(daemon.running.pid), daemon.running.err.slice(-600)).toBe(true)
}

test('a store that is busy while config.json changes: the change counts when it can', async () => {
  const all = dispatching({ slots: { max: 1 } })
  await all.serve({ LEASEHOLD_BUSY_TIMEOUT_MS: '100' })
  const release = await occupy(all)
  all.configure({ slots: { max: 2 } })
  await all.daemon.running.said(/the new configuration has to wait/)
  release()
  expectAlive(all)
  await all.add('ada-1', 'ada')
  await all.become('ada-1', 'done')
  await until('there are two slots', async () => {
    return (await all.daemon.ok('queue.status')).active.slots_max === 2
  })
})

test('a store that is busy while a run ends: told later, and the next one starts', async () => {
  const all = dispatching({ agents: { held: script(HELD) } })
  await all.serve({ LEASEHOLD_BUSY_TIMEOUT_MS: '100' })
  await all.add('ada-1', 'ada')
  await all.add('ada-2', 'ada')
  await all.seen('start', 1)
  const release = await occupy(all)
  all.write('go')
  await all.seen('end', 1)
  await letTry()
  expect(all.lines('start')).toHaveLength(1)
  release()
  await all.become('ada-1', 'done')
  await all.become('ada-2', 'done')
  expect(all.lines('start').map(({ run }) => run)).toEqual(['ada-1.1', 'ada-2.1'])
})

test('a store that let a runner wait too long to renew: the run is lost, not failed', async () => {
  const ttl_ms = 6_000
  const runs = { ttl_seconds: ttl_ms / 1000, grace_seconds: 0.1 }
  const all = dispatching({ agents: { held: script(HELD) }, runs })
  await all.serve({ LEASEHOLD_BUSY_TIMEOUT_MS: '100' })
  await all.add('ada-1', 'ada')
  const [begun] = await all.seen('start', 1)
  const release = await occupy(all)
  // After two thirds of the TTL its runner stops it, in good time: the lease is live still.
  await until('its runner stops it', () => !isAlive(begun!.pid))
  all.write('go')
  release()
  await until('the run is over', async () => {
    return (await all.daemon.ok('run.get', { id: 'ada-1.1' })).ended_at
  })
  expect(await all.daemon.ok('run.get', { id: 'ada-1.1' })).toMatchObject({ status: 'lost' })
  await all.become('ada-1', 'done')
})

test('no room left for what runs write: the daemon lives, and the store is right', async (c) => {
  const all = dispatching({ agents: { held: script(HELD) }, runs: { grace_seconds: 0.3 } })
  const disk = join(all.place.state, 'runs')
  mkdirSync(disk, { mode: 0o700 })
  const options = ['-t', 'tmpfs', '-o', 'size=64k,mode=0700', 'tmpfs', disk]
  const mounted = spawnSync(MOUNT, options, { encoding: 'utf8' })
  // reason: a full disk takes a disk that can be filled, and only root can mount one
  if (mounted.status !== 0) c.skip(because(`no small disk: ${mounted.stderr.trim()}`))
  onTestFinished(() => void execFileSync(UMOUNT, ['--lazy', disk]))
  await all.serve()
  await all.add('ada-1', 'ada')
  await all.seen('start', 1)
  const { bavail, bsize } = statfsSync(disk)
  writeFileSync(join(disk, 'filler'), Buffer.alloc(bavail * bsize))
  await all.place.ok(['--force', 'queue', 'cancel', 'ada-1'])
  await until('the runner is gone', () => all.runners().length === 0)
  await letTry()
  expectAlive(all)
  expect(await all.task('ada-1')).toMatchObject({ status: 'cancelled' })
  rmSync(join(disk, 'filler'))
  all.write('go')
  await all.add('ada-2', 'ada')
  await all.become('ada-2', 'done')
})
