import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type IncomingMessage, request } from 'node:http'
import { describe, expect, onTestFinished, test } from 'vitest'
import { dispatchNext } from '../../src/core/queue/dispatch.ts'
import type { Refusal } from '../../src/core/refusal.ts'
import { Access } from '../../src/operations/access.ts'
import { TokenWatch } from '../../src/operations/token_watch.ts'
import { sha256 } from '../../src/machine/digest.ts'
import { expectRefusal, MachineSim, openSqlite, temporaryFolder } from '../support/helpers.ts'
import { postgresUrl } from '../support/postgres.ts'
import { sandbox, type Sandbox, until } from '../support/processes.ts'
import { QueueVerbs } from '../support/queue_verbs.ts'
import { finish, send, type Served, servingPlace, startDaemon, unseen } from './serving.ts'

const idOf = (secret: string) => sha256(secret).slice(0, 12)

/** A stream of events that is open: `ended` tells how long it lasted from now. */
async function openStream(daemon: Served, headers: Record<string, string>) {
  const asked = request(new URL('/v1/events', daemon.url), { headers, agent: false })
  onTestFinished(() => void asked.destroy())
  // Cut off it says so; that is what is waited for.
  asked.on('error', () => undefined)
  asked.end()
  const [response] = (await once(asked, 'response')) as [IncomingMessage]
  expect(response.statusCode).toBe(200)
  let over = false
  response.on('error', () => undefined)
  response.on('close', () => (over = true))
  response.resume()
  return { isOver: () => over, ended: () => until('the stream ends', () => over) }
}

const bearing = (secret: string) => ({ authorization: `Bearer ${secret}` })

/** A stream of a token that nothing happens to, to compare with. */
async function withOther(daemon: Served) {
  return openStream(daemon, bearing(await daemon.token('viewer')))
}

describe('a stream ends when its token does not count any more', () => {
  test('because it was revoked, through the daemon or past it', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    const other = await withOther(daemon)
    for (const how of ['by HTTP', 'by a command', 'on the store']) {
      const secret = await daemon.token('viewer')
      const streams = [
        await openStream(daemon, bearing(secret)),
        await openStream(daemon, bearing(secret)),
      ]
      const revoke = () => place.ok(['token', 'revoke', idOf(secret)])
      if (how === 'by HTTP') await daemon.ok('token.revoke', { id: idOf(secret) })
      else if (how === 'by a command') await revoke()
      else await unseen(place, revoke)
      for (const stream of streams) await stream.ended()
      const again = await send(daemon.url, '/v1/events', { token: secret })
      expect({ how, status: again.status }).toEqual({ how, status: 401 })
    }
    expect(other.isOver()).toBe(false)
  })

  test('because it expired, though nobody did anything', async () => {
    const daemon = await startDaemon(servingPlace())
    const other = await withOther(daemon)
    const secret = await daemon.token('viewer', { ttl_seconds: 2 })
    const stream = await openStream(daemon, bearing(secret))
    expect(stream.isOver()).toBe(false)
    await stream.ended()
    expect(other.isOver()).toBe(false)
  })

  test('because its page was signed out, in whichever tab', async () => {
    const daemon = await startDaemon(servingPlace())
    const ends = { origin: daemon.url, 'content-type': 'application/json' }
    for (const secret of [await linked(daemon), await daemon.token('admin')]) {
      const body = JSON.stringify({ secret })
      const begun = await send(daemon.url, '/v1/session', { method: 'POST', body, headers: ends })
      const [set] = begun.headers['set-cookie'] as unknown as [string]
      const cookie = set.split(';')[0]!
      const stream = await openStream(daemon, { cookie })
      const headers = { ...ends, cookie }
      const path = '/v1/session/end'
      expect((await send(daemon.url, path, { method: 'POST', body: '{}', headers })).status).toBe(
        200,
      )
      await stream.ended()
    }
  })

  test('through another daemon on the same PostgreSQL', async () => {
    const [here, there] = [servingPlace(), sandbox()]
    onTestFinished(() => finish(there))
    const url = postgresUrl(here.folder)
    for (const place of [here, there]) place.env['LEASEHOLD_STORE'] = url
    const daemons = [await startDaemon(here), await startDaemon(there)] as const
    const secret = await daemons[0].token('viewer')
    const stream = await openStream(daemons[1], bearing(secret))
    await daemons[0].ok('token.revoke', { id: idOf(secret) })
    await stream.ended()
    const again = await send(daemons[1].url, '/v1/events', { token: secret })
    expect(again.status).toBe(401)
  })
})

describe('a wait ends when its token does not count any more', () => {
  test('and the lock goes to the next in line', async () => {
    const place = servingPlace()
    const daemon = await startDaemon(place)
    await daemon.ok('lock.acquire', { name: 'build', agent: 'holder' })
    const secret = await daemon.agentToken('mallory')
    const wait = { name: 'build', wait_seconds: 60 }
    const asked = daemon.post('lock.acquire', wait, { token: secret })
    await until('it waits', () => waiting(place, 1))
    const next = daemon.ok('lock.acquire', { ...wait, agent: 'ada' })
    await until('another waits behind it', () => waiting(place, 2))
    await place.ok(['token', 'revoke', idOf(secret)])
    expect((await asked).json.error).toMatchObject({ code: 'unauthorized' })
    await until('it left the line', () => waiting(place, 1))
    await daemon.ok('lock.release', { name: 'build', agent: 'holder' })
    expect(await next).toMatchObject({ name: 'build', holder: 'ada' })
  })
})

describe('a token that cannot be checked', () => {
  test('is not called revoked: its bearer is told to ask again', async () => {
    const folder = temporaryFolder()
    // Of noise nothing can be read: any error of a look will do.
    writeFileSync(join(folder, 'leasehold.db'), 'noise'.repeat(2_000), { mode: 0o600 })
    const store = openSqlite(folder, new MachineSim())
    onTestFinished(() => store.close())
    const watch = new TokenWatch(store)
    const told = await new Promise<Refusal>((resolve) => void watch.watch('a hash', resolve))
    expect(told).toMatchObject({ code: 'unavailable' })
    expect(told.next).toMatch(/same request id/)
  })
})

describe('the token of a run', () => {
  test('counts no longer than its lease, though nobody has swept that', async () => {
    const machine = new MachineSim()
    const store = openSqlite(temporaryFolder(), machine)
    onTestFinished(() => store.close())
    const verbs = new QueueVerbs(store)
    await verbs.register('d')
    await verbs.enqueue({ id: '1' })
    const process = machine.spawn()
    const ask = { dispatcher: 'dispatcher:d', ttl_ms: 60_000, process, agentFor: () => 'run' }
    await store.write((view) => dispatchNext(view, { ...ask, token_hash: sha256('secret') }))
    const bearer = () => new Access(store, 'of an admin').bearerOf('secret')
    expect(await bearer()).toMatchObject({ role: 'agent', agent: 'run:1.1' })
    machine.advance(60_000)
    await expectRefusal(bearer(), 'unauthorized')
  })
})

async function waiting(place: Sandbox, n: number): Promise<boolean> {
  return (await place.ok(['lock', 'status', 'build'])).waiters.length === n
}

/** The secret of a link that signs a page in, as the command line makes one. */
async function linked(daemon: Served): Promise<string> {
  const secret = 'the secret of a link'
  const link = { secret_hash: sha256(secret), role: 'admin', for_agent: 'web:ada@here' }
  const headers = { 'content-type': 'application/json' }
  const body = JSON.stringify(link)
  const sending = { method: 'POST', body, headers, token: daemon.secret }
  expect((await send(daemon.url, '/v1/session/link', sending)).status).toBe(200)
  return secret
}
