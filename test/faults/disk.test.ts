import { execFileSync, spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readlinkSync, rmSync, statfsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test, type TestContext } from 'vitest'
import { Refusal } from '../../src/core/refusal.ts'
import { call } from '../../src/operations/call.ts'
import * as tasks from '../../src/operations/tasks.ts'
import { openStore, placeOf } from '../../src/stores/open.ts'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { callerOf } from '../support/helpers.ts'
import { readMeta } from '../../src/daemon/runner/run_folder.ts'
import { runFolder } from '../../src/machine/run_output.ts'
import { daemonOn } from '../support/daemons.ts'
import {
  because,
  isAlive,
  type Running,
  sandbox,
  type Sandbox,
  until,
} from '../support/processes.ts'

/** Programs of the system, where it has them; no package brings them. */
const [MOUNT, UMOUNT, MKFS] = ['mount', 'umount', 'mkfs.ext4'] as const

const me = callerOf('writer')

/** A small disk of its own, where this login may mount one. */
function smallDisk(place: Sandbox, size: string, context: TestContext, name = 'disk'): string {
  const dir = place.path(name)
  mkdirSync(dir, { recursive: true, mode: 0o700 })
  const options = ['-t', 'tmpfs', '-o', `size=${size},mode=0700`, 'tmpfs', dir]
  const mounted = spawnSync(MOUNT, options, { encoding: 'utf8' })
  // reason: a full disk takes a disk that can be filled, and only root can mount one
  if (mounted.status !== 0) context.skip(because(`no small disk: ${mounted.stderr.trim()}`))
  onTestFinished(() => void execFileSync(UMOUNT, ['--lazy', dir]))
  return dir
}

/** The same with blocks that are smaller than a page of memory. */
function smallBlocks(place: Sandbox, context: TestContext): string {
  const [dir, image] = [place.path('blocks'), place.path('image')]
  mkdirSync(dir, { mode: 0o700 })
  writeFileSync(image, Buffer.alloc(8 * 1024 * 1024))
  const made = spawnSync(MKFS, ['-q', '-b', '1024', '-m', '0', image], { encoding: 'utf8' })
  const mounted = made.status === 0 && spawnSync(MOUNT, ['-o', 'loop', image, dir]).status === 0
  // reason: a file system of its own takes mkfs, a loop device and root
  if (!mounted) context.skip(because('no file system with blocks of 1 KiB'))
  onTestFinished(() => void execFileSync(UMOUNT, ['--lazy', dir]))
  return dir
}

/** Leaves about `left` bytes on the disk; removing the file gives them back. */
function fill(dir: string, left: number): string {
  const file = join(dir, 'filler')
  const { bavail, bsize } = statfsSync(dir)
  writeFileSync(file, Buffer.alloc(Math.max(0, bavail * bsize - left)))
  return file
}

describe('a full disk', () => {
  for (const [kind, left] of [
    ['sqlite', 200_000],
    ['file', 300_000],
  ] as const) {
    test(`on ${kind}, amid a batch: refused, nothing lost, goes on`, async (context) => {
      const place = sandbox()
      const disk = smallDisk(place, '4m', context)
      const dir = join(disk, 'state')
      mkdirSync(dir, { mode: 0o700 })
      const env = { LEASEHOLD_DIR: dir, ...(kind === 'file' && { LEASEHOLD_STORE: 'file:' }) }
      const store = openStore(placeOf(env, place.folder))
      onTestFinished(() => store.close())
      const add = (i: number) =>
        call(store, tasks.create, { title: `t${i}`, body: 'x'.repeat(20_000) }, me)
      await add(0)
      const filler = fill(disk, left)

      const asked = await Promise.allSettled(Array.from({ length: 40 }, (_, i) => add(i + 1)))
      const told = asked.filter((each) => each.status === 'rejected').map((each) => each.reason)
      const kept = asked.flatMap((each) => (each.status === 'fulfilled' ? [each.value.title] : []))
      expect(told.length).toBeGreaterThan(0)
      for (const refusal of told) {
        expect(refusal).toBeInstanceOf(Refusal)
        expect(refusal).toMatchObject({ code: 'unavailable' })
        expect(refusal.message).toMatch(/disk is full|cannot say whether/)
        expect(refusal.next).not.toBe('')
      }
      const titles = async () => {
        const { items } = await call(store, tasks.list, { limit: 1000 }, me)
        return items.map(({ title }) => title)
      }
      expect(await titles()).toEqual(expect.arrayContaining(['t0', ...kept]))

      rmSync(filler)
      await add(99)
      expect(await titles()).toEqual(expect.arrayContaining(['t0', ...kept, 't99']))
      const seen = await titles()
      expect(new Set(seen).size).toBe(seen.length)
      await store.close()
      const { items } = await place.ok(['task', 'list', '--limit', '1000'], { env })
      expect(items.map(({ title }: { title: string }) => title).toSorted()).toEqual(seen.toSorted())
      expect(await place.ok(['db', 'check'], { env })).toMatchObject({ ok: true, problems: [] })
    })

    test(`on ${kind}, a command says so with exit 75 and can still read`, async (context) => {
      const place = sandbox()
      const disk = smallDisk(place, '2m', context)
      const env = {
        LEASEHOLD_DIR: join(disk, 'state'),
        LEASEHOLD_STORE: kind === 'file' ? 'file:' : undefined,
      }
      await place.ok(['task', 'add', 'Kept', '--id', '1'], { env })
      const filler = fill(disk, 0)
      const add = ['task', 'add', 'Later', '--id', '2']
      await place.refused(add, 'unavailable', 75, { env })
      expect(await place.ok(['task', 'show', '1'], { env })).toMatchObject({ title: 'Kept' })
      rmSync(filler)
      await place.ok(add, { env })
      expect(await place.ok(['db', 'check'], { env })).toMatchObject({ ok: true })
    })
  }
})

test('a full disk with blocks of 1 KiB is told, by no signal, and is read', async (context) => {
  const place = sandbox()
  const disk = smallBlocks(place, context)
  const env = { LEASEHOLD_DIR: join(disk, 'state') }
  await place.ok(['task', 'add', 'Kept', '--id', '1'], { env })
  // Room for the ends of the pages of SQLite's index, and for no more than some of the rest.
  for (const left of [10, 12, 14]) {
    const filler = fill(disk, left * 1024)
    expect(await place.ok(['task', 'show', '1'], { env })).toMatchObject({ title: 'Kept' })
    await place.refused(['task', 'add', 'Later'], 'unavailable', 75, { env })
    await place.refused(['serve', '--port', '0'], 'unavailable', 75, { env })
    rmSync(filler)
  }
  await place.ok(['task', 'add', 'Later'], { env })
  expect(await place.ok(['db', 'check'], { env })).toMatchObject({ ok: true })
})

/** The process has the database open, so it is at the lock that we hold, or past it. */
async function untilAtTheStore({ pid }: Running, database: string): Promise<void> {
  await until(`${pid} opens the database`, () =>
    readdirSync(`/proc/${pid}/fd`).some((fd) => linkOf(`/proc/${pid}/fd/${fd}`) === database),
  )
}

function linkOf(path: string): string {
  try {
    return readlinkSync(path)
  } catch {
    return ''
  }
}

describe('a write lock that another process holds', () => {
  async function held() {
    const place = sandbox()
    await place.ok(['task', 'add', 'First'])
    const database = join(place.state, 'leasehold.db')
    const db = openDatabase(database, { readOnly: false })
    onTestFinished(() => db.close())
    db.exec('BEGIN IMMEDIATE')
    return { place, database, db }
  }

  test('is waited for, and the write succeeds when it is released', async () => {
    const { place, database, db } = await held()
    const env = { LEASEHOLD_BUSY_TIMEOUT_MS: '60000' }
    const writers = ['a', 'b', 'c'].map((title) => {
      return place.start(['--json', 'task', 'add', title], { env, input: '' })
    })
    for (const writer of writers) await untilAtTheStore(writer, database)
    expect((await place.ok(['task', 'list'])).items, 'readers are not blocked').toHaveLength(1)
    db.exec('ROLLBACK')
    for (const writer of writers) expect(await writer.ended).toMatchObject({ code: 0, err: '' })
    expect((await place.ok(['task', 'list'])).items).toHaveLength(4)
  })

  test('is unavailable after busy_timeout_ms without progress, nothing written', async () => {
    const { place, db } = await held()
    const env = { LEASEHOLD_BUSY_TIMEOUT_MS: '200' }
    const { message } = await place.refused(['task', 'add', 'x'], 'unavailable', 75, { env })
    expect(message).toMatch(/no progress for 0\.2 s/)
    db.exec('ROLLBACK')
    expect((await place.ok(['task', 'list'])).items).toHaveLength(1)
  })

  test('is waited for much longer while its holder makes progress', async () => {
    const { place, db } = await held()
    const env = { LEASEHOLD_BUSY_TIMEOUT_MS: '700' }
    // The writer may get in between a COMMIT and the next BEGIN, which then waits for it.
    db.exec('PRAGMA busy_timeout = 10000')
    const busy = setInterval(() => {
      db.exec('CREATE TABLE IF NOT EXISTS theirs (n); INSERT INTO theirs VALUES (1)')
      db.exec('COMMIT; BEGIN IMMEDIATE')
    }, 20)
    onTestFinished(() => clearInterval(busy))
    for (let hasWaited = false; !hasWaited;) {
      const writer = place.start(['--json', 'task', 'add', 'x'], { env, input: '' })
      const since = performance.now()
      let isOver = false
      const ended = writer.ended.then(({ code, err }) => {
        isOver = true
        return { code, err }
      })
      // Its start, and three times its patience.
      const waited = () => performance.now() - since > 3_000
      await until('it has waited for long', () => isOver || waited())
      hasWaited = !isOver
      if (hasWaited) {
        clearInterval(busy)
        db.exec('ROLLBACK')
      }
      expect(await ended).toEqual({ code: 0, err: '' })
    }
  })
})

describe('a daemon that is started on a full disk', () => {
  /** From not a byte to enough: it may fail at each of its steps. */
  test.for([0, 4, 16, 32, 64, 128])('with %i KB left', async (left, context) => {
    const place = sandbox()
    const disk = smallDisk(place, '4m', context)
    const env = { LEASEHOLD_DIR: join(disk, 'state') }
    await place.ok(['task', 'add', 'Kept', '--id', '1'], { env })
    await place.ok(['lock', 'acquire', 'a', '--agent', 'ada'], { env })
    const filler = fill(disk, left * 1024)
    const start = () => {
      const running = place.start(['--json', 'serve', '--port', '0'], { env, input: '' })
      onTestFinished(async () => {
        running.kill('SIGKILL')
        await running.ended
      })
      return running
    }
    let daemon = start()
    const url = () => /"url":"([^"]+)"/.exec(daemon.out)?.[1]
    const ended = daemon.ended.then(({ code, error }) => ({ code, error }))
    const first = await Promise.race([until('it serves', url), ended])
    if (typeof first === 'object') {
      expect(first).toMatchObject({ code: 75, error: { code: 'unavailable' } })
      expect(first.error.message).toMatch(/disk is full/)
    } else {
      expect(await place.ok(['task', 'show', '1'], { env })).toMatchObject({ title: 'Kept' })
    }
    rmSync(filler)
    if (typeof first === 'object') daemon = start()
    await until('it serves', url)
    await place.ok(['task', 'add', 'Later', '--id', '2'], { env })
    await until('it dispatches, and what was held is held', async () => {
      const { items } = await place.ok(['lock', 'list'], { env })
      const names = items.map(({ name }: { name: string }) => name).join('\n')
      return /^a$/m.test(names) && /^leasehold:dispatcher/m.test(names)
    })
  })
})

test('meta.json of a run that ended without room for it is made true later', async (context) => {
  const place = sandbox()
  const disk = smallDisk(place, '256k', context, 'state/runs')
  const go = place.path('go')
  const command = ['/bin/sh', '-c', `while [ ! -e ${go} ]; do sleep 0.05; done`]
  const config = { projects: { web: { agent: 'brief' } }, agents: { brief: { command } } }
  writeFileSync(join(place.state, 'config.json'), JSON.stringify(config), { mode: 0o600 })
  const { running } = await daemonOn(place)
  const add = ['queue', 'add', 'do it', '--project', 'web', '--user', 'u']
  const { task } = await place.ok(add)
  const run = `${task.id}.1`
  const meta = () => readMeta(runFolder(place.state, run))
  await until('it runs', () => meta()?.pid)
  const filler = fill(disk, 0)
  writeFileSync(go, '')
  const shown = () => place.ok(['runs', 'show', run])
  await until('it ended', async () => (await shown()).status === 'completed')
  const runner = meta()!.runner_pid
  await until('its runner is gone', () => !isAlive(runner))
  await running.said(/settle/)
  expect(meta()).toMatchObject({ status: 'running' })
  rmSync(filler)
  await until('it is made true', () => meta()?.status === 'completed')
  expect(meta()).toMatchObject({ exit_code: 0, lock_released: true })
})

test('a daemon ends although it cannot take its own files away', async (context) => {
  const place = sandbox()
  const { running } = await daemonOn(place)
  const file = join(place.state, 'server.json')
  // What something is mounted on cannot be removed, as nothing can on a disk that is read-only.
  const mounted = spawnSync(MOUNT, ['--bind', file, file], { encoding: 'utf8' })
  // reason: only root can mount
  if (mounted.status !== 0) context.skip(because(`no mount: ${mounted.stderr.trim()}`))
  onTestFinished(() => void execFileSync(UMOUNT, ['--lazy', file]))
  running.kill('SIGTERM')
  expect(await running.ended).toMatchObject({ code: 0, err: '' })
})
