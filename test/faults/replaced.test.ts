import { copyFileSync, cpSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { openDatabase } from '../../src/stores/sqlite/driver.ts'
import { SCHEMA_VERSION } from '../../src/stores/sqlite/migrate.ts'
import { clientOf, daemonOn } from '../support/daemons.ts'
import { sandbox, type Sandbox, TEST_CLI } from '../support/processes.ts'

const SIDES = ['', '-wal', '-shm']

const take = (place: Sandbox, name: string, agent: string) =>
  place.ok(['lock', 'acquire', name, '--agent', agent])

const databaseOf = (place: Sandbox) => join(place.state, 'leasehold.db')

describe('under a running server', () => {
  test('a removed database ends it, and nobody is given a lock in another one', async () => {
    const place = sandbox()
    const { running } = await daemonOn(place)
    await take(place, 'x', 'a')
    for (const side of SIDES) rmSync(databaseOf(place) + side, { force: true })
    const { code, err } = await running.ended
    expect({ code, err }).toMatchObject({ code: 75 })
    expect(err).toMatch(/had to stop: .*was removed while this process had it open/)
    const told = await place.refused(['lock', 'acquire', 'x', '--agent', 'b'], 'damaged', 76)
    expect(told.message).toMatch(/has lost what was committed/)
  })

  test('a removed folder ends it, and the next server is the only one', async () => {
    const place = sandbox()
    const { running } = await daemonOn(place)
    await take(place, 'x', 'a')
    rmSync(place.state, { recursive: true })
    expect((await running.ended).err).toMatch(/had to stop/)
    await daemonOn(place)
    expect(await take(place, 'x', 'b')).toMatchObject({ holder: 'b' })
  })

  test('a restore over a damaged file moves it along: one holder, whomever one asks', async () => {
    const place = sandbox()
    const { running, url } = await daemonOn(place)
    const { fence } = await take(place, 'x', 'a')
    await place.ok(['db', 'backup', place.path('copy')])
    const damaged = `${databaseOf(place)}.new`
    writeFileSync(damaged, 'garbage')
    renameSync(damaged, databaseOf(place))
    for (const side of ['-wal', '-shm']) rmSync(databaseOf(place) + side)
    await place.ok(['db', 'restore', place.path('copy'), '--yes'])
    const { token } = await place.ok(['token', 'create', '--role', 'agent', '--agent', 'b'])
    const client = await clientOf({ url, token })
    const lease = await client.lock.acquire({ name: 'x' })
    expect('fence' in lease && lease.fence).toBeGreaterThan(fence)
    const direct = { env: { LEASEHOLD_DIR: place.path('seen') } }
    cpSync(place.state, place.path('seen'), { recursive: true })
    expect(await place.ok(['lock', 'status', 'x'], direct)).toMatchObject({ lock_holder: 'b' })
    running.kill('SIGTERM')
    expect(await running.ended).toMatchObject({ code: 0 })
  })

  test('an older backup put in place by hand is damaged, whomever one asks', async () => {
    const place = sandbox()
    const { running } = await daemonOn(place)
    await place.ok(['db', 'backup', place.path('copy')])
    await take(place, 'x', 'a')
    for (const side of ['-wal', '-shm']) rmSync(databaseOf(place) + side)
    renameSync(place.path('copy'), databaseOf(place))
    await place.refused(['lock', 'acquire', 'x', '--agent', 'b'], 'damaged', 76)
    running.kill('SIGKILL')
    await running.ended
    await place.refused(['lock', 'acquire', 'x', '--agent', 'b'], 'damaged', 76)
    const told = await place.refused(['lock', 'status', 'x'], 'damaged', 76)
    expect(told.next).toMatch(/db restore BACKUP/)
  })

  test('a newer program that migrates the store ends it', async () => {
    const place = sandbox()
    const { running } = await daemonOn(place)
    await take(place, 'x', 'a')
    const db = openDatabase(databaseOf(place), { readOnly: false, timeout_ms: 5_000 })
    db.exec(`BEGIN IMMEDIATE; CREATE TABLE newer (x); PRAGMA user_version = ${SCHEMA_VERSION + 1};
      COMMIT`)
    db.close()
    expect((await running.ended).err).toMatch(/had to stop: .*by a newer leasehold/)
  })
})

test('a copy of a state folder does not reach the server of the original', async () => {
  const place = sandbox()
  await daemonOn(place)
  await take(place, 'x', 'a')
  cpSync(place.state, place.path('copied'), { recursive: true })
  const copy = { env: { LEASEHOLD_DIR: place.path('copied') } }
  await place.ok(['lock', 'acquire', 'y', '--agent', 'b'], copy)
  expect(await place.ok(['lock', 'status', 'y'])).toMatchObject({ is_locked: false })
  expect(await place.ok(['lock', 'status', 'y'], copy)).toMatchObject({ is_locked: true })
})

describe('fences after the WAL of a killed server was lost', () => {
  async function lose(program?: string[], env?: Record<string, string>) {
    const place = sandbox()
    if (env) Object.assign(place.env, env)
    const { running } = await daemonOn(place)
    let last = 0
    for (let i = 0; i < 5; i += 1) last = (await take(place, `lock-${i}`, 'a')).fence
    running.kill('SIGKILL')
    await running.ended
    rmSync(`${databaseOf(place)}-wal`)
    const how = program ? { program } : {}
    return { last, next: await place.cli(['--json', 'lock', 'acquire', 'z'], how), place }
  }

  test('are not given again: the store is damaged until it is restored', async () => {
    const { next, place } = await lose()
    expect(next).toMatchObject({ code: 76, out: '' })
    expect(next.error.next).toMatch(/db restore BACKUP/)
    const { problems } = (await place.refused(['db', 'check'], 'damaged', 76)).details
    expect(problems.join()).toMatch(/has lost what was committed/)
  })

  test('are given again by a bug planted in S3, which does not ask the witness', async () => {
    const { next } = await lose([process.execPath, TEST_CLI], { LEASEHOLD_PLANT: 'S3 witness' })
    expect(next.code).not.toBe(76)
  })
})

test('a backup that was put in place by hand is used in WAL mode', async () => {
  const place = sandbox()
  await take(place, 'x', 'a')
  await place.ok(['db', 'backup', place.path('copy')])
  for (const side of SIDES) rmSync(databaseOf(place) + side, { force: true })
  copyFileSync(place.path('copy'), databaseOf(place))
  await take(place, 'y', 'a')
  const db = openDatabase(databaseOf(place), { readOnly: true })
  expect(db.prepare('PRAGMA journal_mode').get()).toEqual({ journal_mode: 'wal' })
  db.close()
})
